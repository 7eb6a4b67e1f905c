"""``kbn bench``: a bounded load on a broker of this machine, and what it bore.

Two phases. *Throughput*: publications in batches, each of them for exactly one of
the subscriptions, until so many or so many seconds. *Latency*: publications one
at a time, from the call to the notification in this same process. The events
carry names that only this run's subscriptions ask for.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kbn.cli.connecting import AsJson, There, talks

if TYPE_CHECKING:
    from kbn.client.aio import Client
    from kbn.client.options import Told
    from kbn.client.stream import Stream

_BATCH = 500


@talks
def bench(
    count: Annotated[
        int, typer.Option("--count", min=1, max=10_000_000, help="Publications at most.")
    ] = 50_000,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, max=600, help="Stop publishing after so long.")
    ] = 5.0,
    subscriptions: Annotated[
        int, typer.Option("--subs", min=1, max=10_000, help="Subscriptions to hold meanwhile.")
    ] = 100,
    *,
    there: There,
    as_json: AsJson = False,
) -> None:
    """Put a bounded load on a broker of this machine; print rates and latencies."""
    import asyncio

    from kbn.broker.addresses import parse_address
    from kbn.errors import RefusedError

    broker = there.broker
    if not parse_address(broker).is_loopback:
        raise RefusedError("forbidden", f"bench loads this machine's brokers only, not {broker}")
    figures = asyncio.run(_load(broker, there.options(), count, seconds, subscriptions))
    if as_json:
        typer.echo(json.dumps(figures))
        return
    for name, value in figures.items():
        typer.echo(f"{name:24} {value:,}")


async def _load(
    broker: str, options: Told, count: int, seconds: float, subscriptions: int
) -> dict[str, float]:
    import asyncio

    from kbn.client.aio import connect

    run = time.time_ns()
    async with connect(broker, **options) as ear, connect(broker, **options) as mouth:
        streams = [
            ear.subscribe(f"bench_run = {run} and bench_slot = {slot}", queue=100_000)
            for slot in range(subscriptions)
        ]
        for stream in streams:
            await stream.ready()
        listening = asyncio.gather(*(_count(stream) for stream in streams))
        begun = time.perf_counter()
        published = await _publish(mouth, run, subscriptions, count, begun + seconds)
        acknowledged = time.perf_counter()
        # One more for each subscription ends its count: order is kept per publisher.
        await mouth.publish_many(
            {"bench_run": run, "bench_slot": slot, "last": True} for slot in range(subscriptions)
        )
        delivered = sum(await listening)
        ended = time.perf_counter()
        latencies = sorted(await _latencies(mouth, streams[0], run))
    return {
        "publications": published,
        "deliveries": delivered,
        "publications_per_s": round(published / (acknowledged - begun)),
        "deliveries_per_s": round(delivered / (ended - begun)),
        "latency_ms_p50": _percentile(latencies, 50),
        "latency_ms_p99": _percentile(latencies, 99),
    }


async def _publish(mouth: Client, run: int, slots: int, count: int, end: float) -> int:
    published = 0

    def events() -> Iterator[dict[str, int]]:
        for n in range(published, min(published + _BATCH, count)):
            yield {"bench_run": run, "bench_slot": n % slots, "n": n}

    while published < count and time.perf_counter() < end:
        published += await mouth.publish_many(events())
    return published


async def _count(stream: Stream) -> int:
    """How many came before the last one."""
    heard = 0
    async for notification in stream:
        if "last" in notification:
            break
        heard += 1
    return heard


async def _latencies(mouth: Client, stream: Stream, run: int, rounds: int = 500) -> list[float]:
    taken = []
    for n in range(rounds):
        begun = time.perf_counter()
        await mouth.publish(bench_run=run, bench_slot=0, n=n)
        await anext(stream)
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


def _percentile(ordered: list[float], percent: int) -> float:
    return round(ordered[min(len(ordered) * percent // 100, len(ordered) - 1)], 3)
