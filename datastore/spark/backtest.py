"""``backtest``: how two versions of a subscription differ over the same history.

Both are replayed in one job, each in a task of its own. Counts over time are told in
buckets of equal length between the first and the last arrival of the window.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from datastore.query import Spelling
from datastore.spark.replay import ALWAYS, Arrivals, replay
from datastore.spark.source import History
from kbn.matching.world import Knowledge
from kbn.model.filters import Subscription


class Bucket(NamedTuple):
    """How many publications of one stretch of arrivals each version delivers."""

    begins: int
    old: int
    new: int


class Difference(NamedTuple):
    """Counts, the first few on either side alone (by seq), and the counts over time."""

    both: int
    only_old: int
    only_new: int
    old_samples: tuple[int, ...]
    new_samples: tuple[int, ...]
    buckets: tuple[Bucket, ...]
    #: How long a bucket is, in milliseconds.
    step: int

    @property
    def old(self) -> int:
        return self.both + self.only_old

    @property
    def new(self) -> int:
        return self.both + self.only_new


def told(
    history: History,
    old: Subscription,
    new: Subscription,
    window: Arrivals = ALWAYS,
    *,
    knowledge: Knowledge | None = None,
    spelling: Spelling | None = None,
) -> DataFrame:
    """(seq, old, new, arrived) of the publications that either version delivers."""
    found = replay(history, [old, new], window, groups=2, knowledge=knowledge, spelling=spelling)
    sides = found.groupBy("seq").agg(
        f.max(f.col("key") == 0).alias("old"), f.max(f.col("key") == 1).alias("new")
    )
    return sides.join(history.frame.select("seq", "arrived"), "seq")


def compare(rows: DataFrame, *, buckets: int = 48, samples: int = 5) -> Difference:
    """The difference that the rows of ``told`` show; one small job each, over cached rows."""
    rows = rows.cache()
    try:
        return _compare(rows, buckets, samples)
    finally:
        rows.unpersist()


_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
#: Lengths that people read at a glance.
_STEPS = (
    *(size for ten in (1, 10, 100) for size in (ten, 2 * ten, 5 * ten)),
    *(unit * count for unit in (_SECOND, _MINUTE) for count in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * count for count in (1, 2, 3, 6, 12)),
)


def _round(step: int) -> int:
    """The next length that is easy to read; whole days if it is longer than one."""
    return next((size for size in _STEPS if size >= step), -(-step // _DAY) * _DAY)


def _compare(rows: DataFrame, buckets: int, samples: int) -> Difference:
    low, high, both, only_old, only_new = rows.agg(
        f.min("arrived"),
        f.max("arrived"),
        f.count_if(f.col("old") & f.col("new")),
        f.count_if(f.col("old") & ~f.col("new")),
        f.count_if(~f.col("old") & f.col("new")),
    ).collect()[0]
    if low is None:
        return Difference(0, 0, 0, (), (), (), 1)
    step = _round(-(-(high - low + 1) // buckets))
    number = f.floor((f.col("arrived") - low) / step).cast("int")
    counted = rows.groupBy(number.alias("number")).agg(
        f.count_if("old").alias("old"), f.count_if("new").alias("new")
    )
    held = {row.number: (row.old, row.new) for row in counted.collect()}
    last = (high - low) // step
    filled = tuple(
        Bucket(low + at * step, *held.get(at, (0, 0))) for at in range(last + 1)
    )  # fmt: skip

    def some(side: str, other: str) -> tuple[int, ...]:
        alone = rows.where(f.col(side) & ~f.col(other)).orderBy("seq").limit(samples)
        return tuple(row.seq for row in alone.select("seq").collect())

    return Difference(
        both, only_old, only_new, some("old", "new"), some("new", "old"), filled, step
    )
