"""Scans over the merged events: ``python -m benchmarks.spark_events --json``.

``scan-halves``: a content filter over history of which half the events are told by START and
END, counted, over the same predicate written by hand in Spark SQL over the table of merged
events (``ratio_to_handwritten``), with promoted attributes and in the maps
(``unpromoted_…``); ``log_ratio_to_handwritten`` is the scan that has no such table and
merges the log. ``hot_ratio_to_handwritten``: the last fiftieth is not derived yet.
``derived_per_s``: how fast the table is made of the log, without a JVM.

Ratios come from rounds that alternate in one run; the answers are compared first.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from benchmarks._report import Report, arguments
from datastore.delta.archive import Archive
from datastore.delta.derive import Deriver
from datastore.delta.merged import MergedTable
from datastore.spark.scan import scan
from datastore.spark.session import make_session
from datastore.spark.source import History, delta_log, read_merged
from datastore.testing.histories import entry
from kbn.language import parse_subscription
from kbn.model import LogEntry
from kbn.model.publications import Part

CASES = ("scan-halves",)
ASKED = 'symbol = "S7" and price < 40 or volume > 9990'
PROMOTED = "(a_1__s = 'S7' AND (a_2__l < 40 OR a_2__d < 40)) OR (a_3__l > 9990 OR a_3__d > 9990)"
IN_MAPS = (
    "(strings['symbol'] = 'S7' AND (longs['price'] < 40 OR doubles['price'] < 40))"
    " OR (longs['volume'] > 9990 OR doubles['volume'] > 9990)"
)
NAMES = ("symbol", "price", "volume")
#: Events are ended so many events later.
_LATER = 400


def told(count: int) -> Iterator[LogEntry]:
    """Half of the events are plain, the others start and end; the END changes the price."""
    draw = random.Random(1)
    waiting: deque[str] = deque()
    for seq in range(1, count + 1):
        now = seq * 1000
        said = {
            "symbol": f"S{int(1000 * draw.random() ** 2)}",
            "price": draw.randrange(100),
            "volume": draw.randrange(10_000),
        }
        if seq % 3 == 0:
            yield entry(seq, f"e{seq}", Part.PLAIN, now, None, now, **said)
        elif seq % 3 == 1 or len(waiting) <= _LATER:
            waiting.append(f"e{seq}")
            yield entry(seq, f"e{seq}", Part.START, now, None, now, **said)
        else:
            yield entry(seq, waiting.popleft(), Part.END, None, now, now, price=said["price"])


def written(folder: Path, count: int, names: tuple[str, ...]) -> tuple[Archive, MergedTable]:
    archive = Archive(folder / "log", read_only=False, names=names)
    coming, run = told(count), 0
    while some := list(islice(coming, 100_000)):
        run += 1
        archive.write(some, "bench", run)
    return archive, MergedTable(folder / "events", "bench", archive.promoted())


def scanning(report: Report, spark: SparkSession, folder: Path, count: int, rounds: int) -> None:
    asked = parse_subscription(ASKED)
    for prefix, names, by_hand in (("", NAMES, PROMOTED), ("unpromoted_", (), IN_MAPS)):
        archive, merged = written(folder / (prefix or "promoted"), count, names)
        deriver = Deriver(archive, merged)
        part = count - count // 50

        def derived(upto: int, deriver: Deriver = deriver) -> None:
            while deriver.step(lambda: (upto, frozenset())):
                pass

        taken = timed(partial(derived, part))[0]
        lagging = read_merged(spark, merged)
        derived(count)
        log = History(
            delta_log(spark, str(archive.path), archive.version()),
            count,
            count * 1000,
            promoted=archive.promoted(),
            flat=archive.flat_names(),
        )
        whole = replace(log, merged=read_merged(spark, merged))
        works: dict[str, Callable[[], int]] = {
            "hand": lambda: whole.merged.frame.where(by_hand).count(),  # noqa: B023
            "": lambda: scan(whole, asked).count(),  # noqa: B023
            "hot_": lambda: scan(replace(log, merged=lagging), asked).count(),  # noqa: B023
            "log_": lambda: scan(log, asked).count(),  # noqa: B023
        }
        found = {name: work() for name, work in works.items()}
        wrong: dict[str, object] = {}
        if len(set(found.values())) > 1:
            wrong = {"void": True, "reason": f"the answers differ: {found}"}
        times: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(rounds):
            for name, work in works.items():
                times[name].append(timed(work)[0])
        for name in ("", "hot_", "log_"):
            ratio = median(
                mine / hand for mine, hand in zip(times[name], times["hand"], strict=True)
            )
            metric = f"{prefix}{name}ratio_to_handwritten"
            report.add("scan-halves", metric, ratio, "1", rounds, entries=count, **wrong)
        seconds = median(times[""])
        report.add("scan-halves", f"{prefix}seconds", seconds, "s", rounds, found=found[""])
        report.add("scan-halves", f"{prefix}derived_per_s", part / taken, "1/s", 1)


def timed(work: Callable[[], object]) -> tuple[float, object]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def main() -> None:
    json, _, quick = arguments("spark_events", CASES)
    report = Report("spark_events", json)
    folder = Path(tempfile.mkdtemp(prefix="kbn-bench-"))
    spark = make_session("local[2]")
    try:
        scanning(report, spark, folder, 200_000 if quick else 3_000_000, 3 if quick else 5)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
