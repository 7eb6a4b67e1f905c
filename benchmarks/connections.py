"""Connections opened, idle and closed: what each costs, what leaks and what is kept.

``peak_growth_kib`` compares the broker's memory while all are open, the second time
and the sixth: a leak would add to it each time. ``kept_kib`` is what the process
still holds over its start once all are closed: the allocator gives back only a
part, by how its pages happen to be used, so that figure varies between runs.
"""

from __future__ import annotations

import asyncio
import time

from benchmarks._broker import Served, allow_many_files, served
from benchmarks._report import Report, arguments
from senp import ACCEPTED, encode_frame

HELLO = encode_frame(b'senp{version=1 method="HLO" ttl=30}')
_AT_ONCE = 200
QUIET = 3.0


async def _open(port: int, session: bool) -> asyncio.StreamWriter:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if await reader.readexactly(1) != ACCEPTED:
        raise ConnectionError("the broker is full")
    if session:
        writer.write(HELLO)
        size = int.from_bytes(await reader.readexactly(2))
        await reader.readexactly(size)
    return writer


async def _round(broker: Served, count: int, session: bool) -> tuple[float, int, int]:
    begun = time.perf_counter()
    writers: list[asyncio.StreamWriter] = []
    while len(writers) < count:
        more = min(_AT_ONCE, count - len(writers))
        writers += await asyncio.gather(*(_open(broker.port, session) for _ in range(more)))
    taken = time.perf_counter() - begun
    open_kib = broker.resident_kib()
    for writer in writers:
        writer.transport.abort()
    # The broker answers a last caller only after it has dealt with those who left.
    (await _open(broker.port, True)).transport.abort()
    # The broker gives pages back in a quiet moment.
    await asyncio.sleep(QUIET)
    return taken, open_kib, broker.resident_kib()


async def _run(report: Report, case: str, count: int) -> None:
    session = case == "session"
    with served("--limits-connections", "50000") as broker:
        before = broker.resident_kib()
        rounds = [await _round(broker, count, session) for _ in range(6)]
    name = f"{case}-{count}"
    report.add(name, "opened_per_s", count / rounds[0][0], "1/s", 1)
    report.add(name, "kib_each", (rounds[0][1] - before) / count, "KiB", 1)
    report.add(name, "kept_kib", rounds[-1][2] - before, "KiB", 1, before=before)
    report.add(name, "peak_growth_kib", rounds[-1][1] - rounds[1][1], "KiB", 1)


def main() -> None:
    options = arguments("connections", ("session", "legacy"))
    report = Report("connections", options.json)
    count = min(1_000 if options.quick else 10_000, allow_many_files() - 100)
    for case in options.cases:
        asyncio.run(_run(report, case, count))


if __name__ == "__main__":
    main()
