"""One stuck subscriber among a hundred: what the others notice.

Rounds with and without it alternate in one run against one broker. A round
publishes one event at a time and notes when each of the others was told;
``p99_change_ms`` is the difference of the medians of the rounds' 99th percentiles.
The stuck one's own drops are asked of the broker at the end.
"""

from __future__ import annotations

import asyncio
import time

import kbn
from benchmarks._broker import median_of, percentile, served
from benchmarks._report import Report, arguments
from senp import encode_frame

OTHERS = 99
PAD = "x" * 2_000


async def _stuck(port: int) -> asyncio.StreamWriter:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.readexactly(1)
    for packet in (
        b'senp{version=1 method="HLO" id="stuck"}',
        b'senp{version=1 method="SUB" id="stuck/1"} filter{ n any}',
    ):
        writer.write(encode_frame(packet))
    writer.transport.pause_reading()
    return writer


async def _round(publisher: kbn.Client, streams: list[kbn.Stream], events: int) -> float:
    taken: list[float] = []

    async def heard(stream: kbn.Stream, begun: float) -> None:
        await anext(stream)
        taken.append((time.perf_counter() - begun) * 1000)

    for n in range(events):
        begun = time.perf_counter()
        waiting = [asyncio.ensure_future(heard(stream, begun)) for stream in streams]
        await publisher.publish(n=n, pad=PAD)
        await asyncio.gather(*waiting)
    return percentile(taken, 99)


async def _run(report: Report, rounds: int, events: int) -> None:
    with served("--limits-queue", "262144") as broker:
        publisher = await kbn.connect(broker.url).open()
        clients = [await kbn.connect(broker.url).open() for _ in range(OTHERS)]
        streams = [await client.subscribe("n any").ready() for client in clients]
        await _round(publisher, streams, events)
        pairs = []
        for _ in range(rounds):
            without = await _round(publisher, streams, events)
            writer = await _stuck(broker.port)
            # Past its queue and the kernel's buffers, so that the policy applies.
            for _ in range(100):
                await publisher.publish_many({"n": 0, "pad": PAD * 25} for _ in range(2))
                for stream in streams:
                    for _ in range(2):
                        await anext(stream)
            with_it = await _round(publisher, streams, events)
            writer.transport.abort()
            pairs.append((without, with_it))
        drops = {str(row["subscriber"]): dict(row) for row in await publisher.drops()}
        for client in [publisher, *clients]:
            await client.close()
    without, with_it = median_of(pairs)
    report.add("one-of-100", "p99_ms_without", without, "ms", rounds)
    report.add("one-of-100", "p99_ms_with", with_it, "ms", rounds)
    report.add("one-of-100", "p99_change_ms", with_it - without, "ms", rounds)
    report.add("one-of-100", "p99_change_percent", (with_it / without - 1) * 100, "%", rounds)
    own = drops.get("stuck/1", {}).get("queue_full", 0)
    others = sum(name != "stuck/1" for name in drops)
    void = {} if own and not others else {"void": True, "reason": f"drops: {drops}"}
    report.add("one-of-100", "dropped_of_the_stuck_one", own, "", 1, others=others, **void)


def main() -> None:
    options = arguments("stuck", ("one-of-100",))
    rounds, events = (3, 30) if options.quick else (7, 100)
    asyncio.run(_run(Report("stuck", options.json), rounds, events))


if __name__ == "__main__":
    main()
