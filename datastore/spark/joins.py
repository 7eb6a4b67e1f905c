"""Temporal operators as joins: every event's versions, met by keys of time.

Law: ``standing`` says what ``ordered.decisions`` says in the end, ``deliveries`` what
``ordered.deliveries`` says. An inner filter is decided of every version: content as
columns (what they cannot say is asked of ``naive``), each temporal operator as a left-semi
join with the versions of which its own inner filter holds, and so on inwards.

Parallel by rows, so one subscription alone becomes faster with more cores. FILTER counts
among all events and the relations ``before`` and ``after`` reach over all of time: these take
the ordered pass. Cost of a join: each row once per class of lengths (some twenty), then a look at
those that share its bucket until one is admitted; most that share a bucket are near enough to
be. It degrades where many are near and none is admitted: thousands that last at the same time
and are over for everybody who asks later, or lie open far beyond ``max_open``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from datastore.query import Spelling
from datastore.spark.buckets import RELATIONS, Joined, Keys, meeting
from datastore.spark.compile import compile_subscription, heads
from datastore.spark.ordered import Rows
from datastore.spark.project import cells, names_of, narrow_cells, read_entries
from datastore.spark.source import History
from datastore.spark.versions import HALVES, half_versions, whole_versions
from kbn.matching.naive import matches
from kbn.matching.world import NOTHING_KNOWN, Knowledge, World
from kbn.model.filters import Constraint, Filter, Subscription, constraints_within
from kbn.model.operators import Relation, Window

#: ``auto`` takes joins where history is long and cores are many; either way can be asked for.
How: TypeAlias = Literal["auto", "ordered", "joins"]
#: Joins overtake the ordered pass from so many entries on, given so many cores for each
#: subscription: their plan costs seconds, whatever it is about.
ENTRIES, CORES = 500_000, 4
_NOTHING = NOTHING_KNOWN.knowledge
#: What is carried of a row from join to join.
_CARRIED = ("seq", "next", "uid", "start_ms", "end_ms", "begun", "ended")
_TOLD = ("first_seq", "inserted", "arrived")


def preferred(history: History, asked: Sequence[Subscription], how: How = "auto") -> bool:
    """Whether these go by joins: if all of them can, and it is asked for or worth it."""
    if how == "ordered" or not asked or not all(map(joinable, asked)):
        return False
    if how == "joins":
        return True
    return history.last_seq >= ENTRIES and _cores(history) >= CORES * len(asked)


def _cores(history: History) -> int:
    """How many tasks the session runs at once; by Spark Connect it does not say."""
    session = history.frame.sparkSession
    try:
        return session.sparkContext.defaultParallelism
    except PySparkException:
        return 0


def joinable(asked: Subscription) -> bool:
    """Whether every temporal operator, at every level, can be a join."""
    return all(_joins(constraint) for constraint in constraints_within(asked))


def _joins(constraint: Constraint) -> bool:
    op = constraint.op
    if isinstance(op, Relation):
        return op.kind in RELATIONS
    return not isinstance(op, Window)


def standing(
    history: History,
    asked: Subscription,
    *,
    knowledge: Knowledge = _NOTHING,
    spelling: Spelling | None = None,
    max_open: int | None = None,
) -> DataFrame:
    """Each event of which the filter holds by its latest decision, one row: its version, by
    the columns ``seq uid begun ended first_seq inserted arrived``."""
    joins = _Joins(history, knowledge, spelling, max_open)
    found = joins.holding(asked, latest=True)
    return _once(found, asked).select("seq", "uid", "begun", "ended", *_TOLD)


def deliveries(
    history: History,
    asked: Sequence[Subscription],
    *,
    knowledge: Knowledge = _NOTHING,
    spelling: Spelling | None = None,
    max_open: int | None = None,
) -> DataFrame:
    """(seq, key): each publication with the number of each subscription that it matches."""
    joins = _Joins(history, knowledge, spelling, max_open)
    made = []
    for key, one in enumerate(asked):
        found = _once(joins.holding(one, published=True), one)
        made.append(found.select("seq", f.lit(key).alias("key")))
    return reduce(DataFrame.unionAll, made)


def _once(rows: DataFrame, asked: Subscription) -> DataFrame:
    """Alternatives may find the same row."""
    return rows.dropDuplicates(["seq"]) if len(asked) > 1 else rows


@dataclass(frozen=True)
class _Joins:
    """The joins over one history."""

    history: History
    knowledge: Knowledge
    spelling: Spelling | None
    max_open: int | None

    def holding(
        self, asked: Subscription, *, latest: bool = False, published: bool = False
    ) -> DataFrame:
        """The versions of which a filter holds, once for each alternative that does.
        ``latest``: only those that nothing followed. ``published``: matched as published,
        instead of as merged."""
        plain = [one for one in asked if not _temporal(one)]
        found = [self._content(plain, latest=latest, published=published)] if plain else []
        for one in asked:
            if _temporal(one):
                rows = self._content([one], latest=latest, published=published)
                found.append(reduce(self._met, _temporal(one), rows))
        return reduce(DataFrame.unionAll, found)

    def _content(self, filters: Sequence[Filter], *, latest: bool, published: bool) -> DataFrame:
        """The versions with the content of one of these, and with the times that their temporal
        operators name."""
        asked = Subscription(filters)
        content = Subscription(Filter(c for c in one if c.inner is None) for one in filters)
        names = names_of((content,))
        held = cells(names, self.history.promoted, self.history.flat)
        before = compile_subscription(asked, {**held, **heads()}, self.spelling).condition
        inside = {**narrow_cells(names), **heads()}
        after = compile_subscription(asked, inside, self.spelling).condition
        log = self.history.frame
        whole = log.where(~f.col("part").isin(*HALVES)) if self.history.halves else log
        rows = whole_versions(whole if before is None else whole.where(before), held)
        if self.history.halves:
            log = log.where(f.col("part").isin(*HALVES))
            halves = half_versions(log, held, published=published)
            if latest:
                halves = halves.where(f.col("next").isNull())
            rows = rows.unionByName(halves if after is None else halves.where(after))
        if not compile_subscription(content, inside, self.spelling).exact:
            rows = self._asked(rows, content, names)
        return rows.select(*_CARRIED, *_TOLD)

    def _asked(self, rows: DataFrame, content: Subscription, names: Sequence[str]) -> DataFrame:
        """Those that the definition matches; temporal constraints are left out of it."""
        world = World(knowledge=self.knowledge)

        def ask(batches: Rows) -> Rows:
            for batch in batches:
                met = [
                    matches(content, entry.notification, world)
                    for entry in read_entries(batch, names)
                ]
                yield batch.filter(pa.array(met, pa.bool_()))

        return rows.mapInArrow(ask, rows.schema)

    def _met(self, rows: DataFrame, constraint: Constraint) -> DataFrame:
        """The rows for which the operator finds an event of which its inner filter holds."""
        op, inner = constraint.op, constraint.inner
        assert isinstance(op, Joined)
        assert inner is not None
        last_seq = self.history.last_seq
        keys = meeting(constraint.name, op, max_open=self.max_open, last_seq=last_seq)
        stored = self.holding(inner).select(
            f.col("seq").alias("y_seq"),
            f.col("next").alias("y_next"),
            f.col("uid").alias("y_uid"),
            f.col("begun").alias("y_start"),
            f.col("ended").alias("y_end"),
        )
        stored, rows = _keyed(stored, keys.y, "y_key"), _keyed(rows, keys.x, "key")
        found = rows.join(stored, (f.col("key") == f.col("y_key")) & keys.holds, "left_semi")
        found = found.select(*_CARRIED, *_TOLD)
        return found.dropDuplicates(["seq"]) if keys.several else found


def _temporal(asked: Filter) -> list[Constraint]:
    return [constraint for constraint in asked if constraint.inner is not None]


def _keyed(rows: DataFrame, keys: Keys, name: str) -> DataFrame:
    # Exploded even if it is one: Spark pushes a semi-join into the sides of a union, and
    # so doubles its plan at every level, but not beyond what is exploded.
    return rows.withColumn("each", f.explode(keys.over)).withColumn(name, keys.key(f.col("each")))
