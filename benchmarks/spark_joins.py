"""Joins against the ordered pass in Spark: ``python -m benchmarks.spark_joins --json``.

The same publications and two-level filter as ``benchmarks.spark``'s ``replay-1m`` (AFTER over
DURING), the same with AFTER twice, and a filter by which most publications of a kind
find nothing. Each round replays by either way in turn; ``ratio_to_ordered`` above 1 means that
joins are slower on this machine's cores. Answers are compared first.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from statistics import median

from benchmarks._report import Report, arguments
from benchmarks.spark import REPLAYED, alarms, logged, timed
from datastore.spark.joins import How
from datastore.spark.replay import replay
from datastore.spark.session import make_session
from datastore.spark.source import History
from kbn.language import parse_subscription

ASKED = {
    "after-during": REPLAYED,
    "after-after": (
        'sev = "critical" and KBN_START_TIME after(2s)'
        ' { sev = "warning" and KBN_START_TIME after(2s) { sev = "critical" } }'
    ),
    "sparse": 'sev = "critical" and KBN_START_TIME after(20ms) { sev = "warning" and zone = 7 }',
}
MASTER = "local[*]"


def compared(report: Report, history: History, case: str, rounds: int) -> None:
    asked = parse_subscription(ASKED[case])

    def job(how: How) -> set[int]:
        return {row.seq for row in replay(history, [asked], how=how).collect()}

    ordered, joined = job("ordered"), job("joins")
    wrong = {} if ordered == joined else {"void": True, "reason": "the two ways differ"}
    figures = [
        (timed(lambda: job("ordered"))[0], timed(lambda: job("joins"))[0]) for _ in range(rounds)
    ]
    count = history.last_seq
    cores = history.frame.sparkSession.sparkContext.defaultParallelism
    ratio = median(b / a for a, b in figures)
    report.add(
        case, "ratio_to_ordered", ratio, "1", rounds,
        publications=count, delivered=len(ordered), cores=cores, **wrong,
    )  # fmt: skip
    for place, name in enumerate(("ordered_s", "joins_s")):
        report.add(case, name, median(one[place] for one in figures), "s", rounds)


def main() -> None:
    json, cases, quick = arguments("spark_joins", tuple(ASKED))
    report = Report("spark_joins", json)
    folder = Path(tempfile.mkdtemp(prefix="kbn-bench-"))
    spark = make_session(MASTER)
    try:
        history = logged(folder / "log", spark, alarms(50_000 if quick else 1_000_000))
        for case in cases:
            compared(report, history, case, 3 if quick else 5)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
