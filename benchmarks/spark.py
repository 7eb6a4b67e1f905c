"""All of history in Spark: ``python -m benchmarks.spark --json``.

``scan-5m``: a content filter over 5 million events in a Delta log, counted, over the
same predicate written by hand in Spark SQL over the same table (``ratio_to_handwritten``);
with promoted attributes, and ``unpromoted`` in the typed maps. All are whole events: where
some come in two parts those are merged first, which the text by hand does not do.
``replay-1m``: a two-level temporal filter over 1 million publications
(``seconds_per_million``, as the job chooses), in one task (``single_seconds_per_million``)
and in two chunks side by side (``chunked_seconds_per_million``); at half that number too,
for how it grows (``growth``: 2 is linear); over a plain Python loop with the entries in
memory (``ratio_to_loop``); and over the naive matcher, measured on the first 10,000
publications and extrapolated to all of them by the square of their number
(``speedup_over_naive``), its answers compared.
``rematch``: 10,000 subscriptions against 1 million events; the answers about the first
events are compared with the naive matcher's.

Ratios come from rounds that alternate in one run. ``peak_mib`` is the JVM's high-water mark
(resident) plus the greatest size of each Python worker, looked at four times a second
(shared pages by their share); this process, which holds the log for the loop, is left out.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import median

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks._report import Report, arguments
from datastore.delta.archive import Archive
from datastore.delta.schema import to_columns
from datastore.spark.chunks import LEAST
from datastore.spark.ordered import deliveries
from datastore.spark.rematch import rematch
from datastore.spark.scan import scan
from datastore.spark.session import make_session
from datastore.spark.source import History, delta_log, flat_names
from datastore.testing.histories import entry
from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import World
from kbn.model import LogEntry, Notification, Subscription
from kbn.model.publications import Part
from kbn.temporal import replay as loop

CASES = ("scan-5m", "replay-1m", "rematch")
SYMBOLS = [f"S{number}" for number in range(1000)]
SCANNED = 'symbol = "S7" and price < 40 or volume > 9990'
BY_HAND = "(a_1__s = 'S7' AND (a_2__l < 40 OR a_2__d < 40)) OR (a_3__l > 9990 OR a_3__d > 9990)"
IN_MAPS = (
    "(strings['symbol'] = 'S7' AND (longs['price'] < 40 OR doubles['price'] < 40))"
    " OR (longs['volume'] > 9990 OR doubles['volume'] > 9990)"
)
REPLAYED = (
    'sev = "critical" and KBN_START_TIME after(2s)'
    ' { sev = "warning" and KBN_START_TIME during { sev = "watch" } }'
)


class Peak:
    """The most memory that the JVM and the Python workers had while they were watched."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._jvms: dict[int, float] = {}
        self._workers: dict[int, float] = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        for pid in _family(os.getpid()):
            if _is_java(pid):
                # From now on; without the right to say so, since it began.
                with suppress(OSError):
                    Path(f"/proc/{pid}/clear_refs").write_text("5")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def mib(self) -> float:
        return sum(self._jvms.values()) + sum(self._workers.values())

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            for pid in _family(os.getpid()) - {os.getpid()}:
                if _is_java(pid):
                    seen, size = self._jvms, _said(f"/proc/{pid}/status", "VmHWM:")
                else:
                    seen, size = self._workers, _said(f"/proc/{pid}/smaps_rollup", "Pss:")
                seen[pid] = max(seen.get(pid, 0.0), size)


def _is_java(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "java"
    except OSError:
        return False


def _family(root: int) -> set[int]:
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat.rsplit(")", 1)[1].split()[1]), []).append(int(name))
    found, waiting = set(), [root]
    while waiting:
        one = waiting.pop()
        found.add(one)
        waiting += parents.get(one, ())
    return found


def _said(path: str, name: str) -> float:
    """A size that the system tells of a process, in mebibytes; 0 if it is gone."""
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) / 1024
    except OSError:
        return 0.0
    return 0.0


def timed(work: Callable[[], object]) -> tuple[float, object]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def stocks(count: int, first: int, draw: random.Random) -> list[LogEntry]:
    """Plain events of four attributes, a second apart."""
    return [
        LogEntry(
            seq, f"e{seq}", Part.PLAIN, seq * 1000, seq * 1000, seq * 1000, seq * 1000,
            Notification.trusted(
                {
                    "symbol": SYMBOLS[int(1000 * draw.random() ** 2)],
                    "price": draw.randrange(100),
                    "volume": draw.randrange(10_000),
                    "venue": "X",
                }
            ),
        )
        for seq in range(first, first + count)
    ]  # fmt: skip


def written(folder: Path, spark: SparkSession, count: int, promoted: Sequence[str]) -> History:
    """A Delta log of so many events: a block of them, repeated with other numbers."""
    archive = Archive(folder, read_only=False)
    archive.promote(promoted)
    block = min(count, 100_000)
    table = to_columns(stocks(block, 1, random.Random(1)), archive.promoted())
    for at in range(count // block):
        seqs = pa.array(range(at * block + 1, (at + 1) * block + 1), pa.int64())
        moments = pa.array([seq * 1000 for seq in range(at * block + 1, (at + 1) * block + 1)])
        days = pa.array([(at * block * 1000) // 86_400_000] * block, pa.int64())
        for name, column in (("seq", seqs), ("arrived", moments), ("at", moments), ("day", days)):
            table = table.set_column(table.column_names.index(name), name, column)
        write_deltalake(str(folder), table, mode="append", schema_mode="merge")
    archive.refresh()
    frame = delta_log(spark, str(folder))
    return History(
        frame,
        count,
        count * 1000,
        promoted=archive.promoted(),
        flat=flat_names(archive),
        halves=archive.has_halves(),
    )


def scanning(report: Report, spark: SparkSession, folder: Path, count: int, rounds: int) -> None:
    asked = parse_subscription(SCANNED)
    for metric, names, by_hand in (
        ("ratio_to_handwritten", ("symbol", "price", "volume"), BY_HAND),
        ("unpromoted_ratio_to_handwritten", (), IN_MAPS),
    ):
        history = written(folder / metric, spark, count, names)

        def ours(held: History = history) -> int:
            return scan(held, asked).count()

        def theirs(held: History = history, text: str = by_hand) -> int:
            return held.frame.where(text).count()

        wrong = _differ(ours(), theirs())
        figures = [(timed(ours)[0], timed(theirs)[0]) for _ in range(rounds)]
        ratio = median(mine / other for mine, other in figures)
        report.add("scan-5m", metric, ratio, "1", rounds, events=count, **wrong)
        report.add("scan-5m", f"{metric}_s", median(m for m, _ in figures), "s", rounds)


def alarms(count: int) -> list[LogEntry]:
    """Mixed publications: watches that last, warnings and criticals, noise."""
    draw = random.Random(3)
    log: list[LogEntry] = []
    now, seq, open_ones = 1_600_000_000_000, 0, []
    while seq < count:
        seq += 1
        now += draw.randrange(200)
        chance = draw.random()
        if chance < 0.1 and open_ones:
            name = open_ones.pop(draw.randrange(len(open_ones)))
            log.append(entry(seq, name, Part.END, None, now, now, sev="watch"))
        elif chance < 0.2:
            open_ones.append(f"e{seq}")
            log.append(
                entry(seq, f"e{seq}", Part.START, now, None, now, sev="watch", zone=seq % 9)
            )
        elif chance < 0.4:
            sev = draw.choice(("warning", "critical"))
            log.append(entry(seq, f"e{seq}", Part.INSTANT, now, now, now, sev=sev, zone=seq % 9))
        else:
            log.append(
                entry(seq, f"e{seq}", Part.PLAIN, now, None, now, sev="noise", load=seq % 97)
            )
    return log


def logged(folder: Path, spark: SparkSession, log: Sequence[LogEntry]) -> History:
    archive = Archive(folder, read_only=False)
    archive.promote(("sev",))
    for at in range(0, len(log), 100_000):
        archive.write(log[at : at + 100_000], "bench", at + 1)
    frame = delta_log(spark, str(folder))
    return History(
        frame, log[-1].seq, log[-1].arrived, promoted=archive.promoted(), flat=flat_names(archive)
    )


def replaying(report: Report, spark: SparkSession, folder: Path, count: int, rounds: int) -> None:
    asked = parse_subscription(REPLAYED)
    log = alarms(count)
    whole = logged(folder / "whole", spark, log)
    half = logged(folder / "half", spark, log[: count // 2])

    def job(history: History, chunks: int | None = None) -> set[int]:
        least = min(LEAST, count // 20)
        return {
            row.seq for row in deliveries(history, [asked], chunks=chunks, least=least).collect()
        }

    def in_memory() -> set[int]:
        return {delivery.seq for delivery in loop(log, {0: asked})[0]}

    ways: dict[str, Callable[[], set[int]]] = {
        "": lambda: job(whole),
        "single_": lambda: job(whole, 1),
        "chunked_": lambda: job(whole, 2),
        "half": lambda: job(half),
        "loop": in_memory,
    }
    told = in_memory()
    wrong = {name: _differ(ways[name](), told) for name in ("", "single_", "chunked_")}
    ways["half"]()
    figures = [{name: timed(work)[0] for name, work in ways.items()} for _ in range(rounds)]

    def middle(name: str, over: str | None = None) -> float:
        return median(one[name] / (one[over] if over else 1) for one in figures)

    for name in ("", "single_", "chunked_"):
        report.add(
            "replay-1m", f"{name}seconds_per_million", middle(name) / count * 1e6, "s", rounds,
            publications=count, delivered=len(told), **wrong[name],
        )  # fmt: skip
    report.add("replay-1m", "growth", middle("", "half"), "1", rounds, doubled=2)
    report.add("replay-1m", "ratio_to_loop", middle("", "loop"), "1", rounds)
    few = min(count, 2000 if rounds < 5 else 10_000)
    seconds, slowly = timed(lambda: naively(log[:few], asked))
    differs = _differ(sorted(seq for seq in told if seq <= log[few - 1].seq), slowly)
    report.add(
        "replay-1m", "speedup_over_naive", seconds * (count / few) ** 2 / middle(""), "1", 1,
        measured_at=few, extrapolated_to=count, naive_seconds=round(seconds, 2), **differs,
    )  # fmt: skip


def naively(log: Sequence[LogEntry], asked: Subscription) -> list[int]:
    history, told = NaiveHistory(), []
    for one in log:
        if matches(asked, one.notification, World(history=history.about(one))):
            told.append(one.seq)
        history.append(one)
    return told


def rematching(report: Report, spark: SparkSession, folder: Path, count: int, subs: int) -> None:
    draw = random.Random(5)
    asked = []
    for _ in range(subs):
        symbol = SYMBOLS[int(1000 * draw.random() ** 2)]
        text = f'symbol = "{symbol}" and price < {draw.randrange(100)}'
        if draw.random() < 0.5:
            text += f" and volume > {draw.randrange(10_000)}"
        asked.append(parse_subscription(text))
    history = written(folder / "rematch", spark, count, ("symbol", "price", "volume"))
    few = 200
    first = replace(history, frame=history.frame.where(f.col("seq") <= few))
    sample = {tuple(row) for row in rematch(first, asked).collect()}
    wrong = _differ(sample, slowly_rematched(history.frame, few, asked))
    seconds, found = timed(lambda: rematch(history, asked).agg(f.sum("count")).collect()[0][0])
    report.add(
        "rematch", "seconds", seconds, "s", 1,
        subscriptions=subs, events=count, matches=found, compared=few * subs, **wrong,
    )  # fmt: skip
    report.add("rematch", "events_per_s", count / seconds, "1/s", 1)


def slowly_rematched(
    log: DataFrame, few: int, asked: Sequence[Subscription]
) -> set[tuple[object, ...]]:
    """What ``rematch`` should say of the first few events, by the naive matcher."""
    rows = log.where(f.col("seq") <= few).select(
        "seq", f.col("a_1__s").alias("symbol"), f.col("a_2__l").alias("price"),
        f.col("a_3__l").alias("volume"),
    )  # fmt: skip
    held: dict[int, list[int]] = {}
    world = World()
    for row in rows.collect():
        said = row.asDict()
        seq = said.pop("seq")
        notification = Notification(said)
        for key, one in enumerate(asked):
            if matches(one, notification, world):
                held.setdefault(key, []).append(seq)
    return {(key, len(seqs), min(seqs), max(seqs)) for key, seqs in held.items()}


def _differ(mine: object, other: object) -> dict[str, object]:
    return {} if mine == other else {"void": True, "reason": f"{mine} instead of {other}"[:200]}


def main() -> None:
    json, cases, quick = arguments("spark", CASES)
    report = Report("spark", json)
    rounds = 3 if quick else 5
    folder = Path(tempfile.mkdtemp(prefix="kbn-bench-"))
    spark = make_session("local[2]")
    try:
        for case in cases:
            with Peak() as peak:
                if case == "scan-5m":
                    scanning(report, spark, folder, 200_000 if quick else 5_000_000, rounds)
                elif case == "replay-1m":
                    replaying(report, spark, folder, 50_000 if quick else 1_000_000, rounds)
                else:
                    size, subs = (50_000, 1000) if quick else (1_000_000, 10_000)
                    rematching(report, spark, folder, size, subs)
            report.add(case, "peak_mib", peak.mib, "MiB", 1)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
