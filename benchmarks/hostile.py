"""A thousand malformed packets a second beside a well-behaved client: what it notices.

Rounds with and without them alternate in one run against one broker. A round
publishes one event at a time and waits for its notification.
"""

from __future__ import annotations

import asyncio
import time

import kbn
from benchmarks._broker import median_of, percentile, served
from benchmarks._report import Report, arguments
from senp import encode_frame

RATE = 1_000
#: As a peer might send them: no packet, a number that is none, an unknown method, a long tail.
BAD = (
    b"nonsense",
    b'senp{version=1 method="PUB" ttl=30} event{ a=+5}',
    b'senp{version=1 method="XYZ" ttl=30}',
    b'senp{version=1 method="SUB" ttl=30 id="x"} filter{ ' + b"a =1 " * 2_000,
)


async def _hostile(port: int, case: str, sent: list[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.readexactly(1)
    if case == "session":
        writer.write(encode_frame(b'senp{version=1 method="HLO" ttl=30}'))
    drinking = asyncio.ensure_future(_drink(reader))
    begun = time.perf_counter()
    try:
        while True:
            due = int((time.perf_counter() - begun) * RATE)
            while sent[0] < due:
                writer.write(encode_frame(BAD[sent[0] % len(BAD)]))
                sent[0] += 1
            await asyncio.sleep(0.005)
    finally:
        drinking.cancel()
        writer.transport.abort()


async def _drink(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass


async def _round(client: kbn.Client, stream: kbn.Stream, events: int) -> list[float]:
    taken = []
    for n in range(events):
        begun = time.perf_counter()
        await client.publish(n=n)
        await anext(stream)
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


async def _run(report: Report, case: str, rounds: int, events: int) -> None:
    with served() as broker:
        client = await kbn.connect(broker.url).open()
        stream = await client.subscribe("n any").ready()
        await _round(client, stream, events)
        halves, tails, total = [], [], 0
        for _ in range(rounds):
            without = await _round(client, stream, events)
            sent = [0]
            attack = asyncio.ensure_future(_hostile(broker.port, case, sent))
            with_it = await _round(client, stream, events)
            attack.cancel()
            await asyncio.wait([attack])
            total += sent[0]
            halves.append((percentile(without, 50), percentile(with_it, 50)))
            tails.append((percentile(without, 99), percentile(with_it, 99)))
        await client.close()
    for metric, pairs in (("p50", halves), ("p99", tails)):
        quiet, loud = median_of(pairs)
        report.add(case, f"{metric}_ms_without", quiet, "ms", rounds)
        report.add(case, f"{metric}_ms_with", loud, "ms", rounds, malformed=total)


def main() -> None:
    options = arguments("hostile", ("session", "legacy"))
    rounds, events = (3, 300) if options.quick else (7, 2_000)
    report = Report("hostile", options.json)
    for case in options.cases:
        asyncio.run(_run(report, case, rounds, events))


if __name__ == "__main__":
    main()
