"""The ordered pass: the log in the order of its numbers, through the pure ``replay``.

Law: the pass says of every entry what the broker said, or would have said, when it
arrived. Parallel by subscription first, each group of them a pass of its own; then by
chunks of seq, each after a warm-up (``chunks``), where their operators look back by
bounds. A task reads, sorted, only what can matter to it: entries of events that have
parts to come, and complete ones that some filter of the group, inner ones included, may
match by its content. Subscriptions without temporal operators need no order and are
matched wherever a row lies. Nothing is crossed; the rows are sorted once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from datastore.query import Spelling
from datastore.spark.chunks import CHUNK, LEAST, MARKS, Plan, cuttable, parallelism, planned
from datastore.spark.compile import compile_subscription, heads
from datastore.spark.plain import Pass, Rows, matched
from datastore.spark.project import (
    EVENT_HEAD,
    Cells,
    cells,
    kinds_of,
    names_of,
    narrow,
    read_entries,
    temporal_names,
)
from datastore.spark.source import History
from kbn.matching.world import NOTHING_KNOWN, Knowledge
from kbn.model.filters import Constraint, Subscription, constraints_within, needs_history
from kbn.model.operators import During
from kbn.model.publications import LogEntry, Part
from kbn.model.time import END_TIME
from kbn.temporal.chunks import Chunk
from kbn.temporal.memory import inner_hash
from kbn.temporal.replay import Replay

__all__ = ["Pass", "Rows", "decisions", "deliveries"]

_NOTHING = NOTHING_KNOWN.knowledge
_HALVES = (Part.START, Part.END)


def deliveries(
    history: History,
    asked: Sequence[Subscription],
    *,
    after: int = 0,
    upto: int | None = None,
    groups: int = 1,
    chunks: int | None = None,
    least: int = LEAST,
    knowledge: Knowledge = _NOTHING,
    spelling: Spelling | None = None,
    max_open: int | None = None,
) -> DataFrame:
    """(seq, key): each publication with the number of each subscription that it matches, as
    of its own arrival; those with after < seq <= upto only.

    Temporal subscriptions are dealt to so many ``groups``, each cut into so many ``chunks``
    (None: as many as run at once, if that is a gain), each of at least ``least`` entries
    that can matter.
    """
    span = Chunk(after, history.last_seq if upto is None else upto)
    plain = {key: one for key, one in enumerate(asked) if not needs_history(one)}
    temporal = [(key, one) for key, one in enumerate(asked) if needs_history(one)]
    made = []
    if plain:
        made.append(matched(history, plain, span=span, knowledge=knowledge, spelling=spelling))
    for some in _dealt(temporal, groups):
        ways = _Ways(history, dict(some), span, spelling, max_open=max_open)
        cut = ways.cut(_wanted(history, chunks, groups), least)
        made.append(ways.passed(_delivering(ways, cut, knowledge, max_open), cut, _DELIVERED))
    if not made:
        return history.frame.sparkSession.createDataFrame([], _DELIVERED)
    return reduce(DataFrame.unionAll, made)


def decisions(
    history: History,
    asked: Subscription,
    *,
    chunks: int | None = None,
    least: int = LEAST,
    knowledge: Knowledge = _NOTHING,
    spelling: Spelling | None = None,
    max_open: int | None = None,
) -> DataFrame:
    """(uid, seq, holds): what a filter was decided to be of each event, where it holds or
    may cease to hold. The one with the greatest seq stands."""
    # As an inner filter it is decided of every event, as merged, and asked of nobody.
    wrapped = Subscription.of(Constraint(END_TIME, During(), asked))
    ways = _Ways(
        history,
        {0: wrapped},
        Chunk(0, history.last_seq),
        spelling,
        told=False,
        max_open=max_open,
    )
    cut = ways.cut(_wanted(history, chunks, 1), least, silent=frozenset({0}))
    return ways.passed(_deciding(asked, ways, cut, knowledge, max_open), cut, _DECIDED)


#: More filters than these make a condition that takes longer to plan than rows to match.
_MANY = 200
#: With fewer tasks at once, planning and warming up cost what working side by side saves.
WORTHWHILE = 4
_DELIVERED = "seq long, key int"
#: What an entry is for, as far as its content says: to be told, to be kept, or both.
WHO = "who"
_ASKS, _KEPT = 1, 2
_DECIDED = "uid string, seq long, holds boolean"


def _wanted(history: History, chunks: int | None, groups: int) -> int:
    if chunks is not None:
        return max(1, chunks)
    if history.last_seq < 2 * LEAST:
        return 1
    at_once = parallelism(history.frame.sparkSession) // max(1, groups)
    return at_once if at_once >= WORTHWHILE else 1


class _Ways:
    """What one pass reads, in one piece or in chunks; ``told`` if it is not only decided."""

    def __init__(
        self,
        history: History,
        asked: Mapping[int, Subscription],
        span: Chunk,
        spelling: Spelling | None,
        *,
        told: bool = True,
        max_open: int | None = None,
    ) -> None:
        self.asked = asked
        self.span = span
        self.names = names_of(asked.values())
        self.temporal = temporal_names(asked.values())
        self._halves = history.halves
        self._max_open = max_open
        self._spelling = spelling
        self._held = cells(self.names, history.promoted, history.flat)
        self._log = history.frame.where(f.col("seq") <= span.upto)
        asking = _may_match(asked.values() if told else (), self._test, spelling)
        kept = _may_match(_inner(asked.values()), self._test, spelling)
        # A half event may become anything.
        kept = f.col("part").isin("START", "END") | kept
        self._who = (f.when(asking, _ASKS).otherwise(0) + f.when(kept, _KEPT).otherwise(0)).alias(
            WHO
        )
        self._log = self._log.where(asking | kept)

    @property
    def _test(self) -> dict[str, Cells]:
        return {**self._held, **heads()}

    def cut(self, count: int, least: int, silent: frozenset[int] = frozenset()) -> Plan | None:
        """Chunks; None: one piece. Looks at the data if it may be worth it."""
        if count < 2 and not self.span.after:
            return None
        can = cuttable(self.asked.values(), self._test, self._spelling)
        if can is None:
            return None
        asks, marks = can
        return planned(
            self._log,
            marks,
            asks,
            span=self.span,
            count=count,
            least=least,
            halves=self._halves,
            silent=silent,
            max_open=self._max_open,
        )

    def passed(self, work: Pass, cut: Plan | None, schema: str) -> DataFrame:
        lean = kinds_of(self.asked.values())
        if cut is None:
            rows = narrow(self._log, self._held, lean, head=EVENT_HEAD, more=(self._who,))
            rows = rows.repartition(1).sortWithinPartitions("seq")
            return rows.mapInArrow(work, schema)
        more = (self._who, *cut.marks.columns())
        rows = narrow(self._log, self._held, lean, head=EVENT_HEAD, more=more)
        kept = [name for name in rows.columns if name not in MARKS]
        return cut.spread(rows, kept).mapInArrow(work, schema)

    def begins(self, cut: Plan | None) -> tuple[int, ...]:
        """By chunk, the number after which something is told."""
        return (self.span.after,) if cut is None else tuple(c.after for c in cut.chunks)


def _may_match(
    asked: Iterable[Subscription], held: Mapping[str, Cells], spelling: Spelling | None
) -> Column:
    """Which entries some subscription may match by content; all, if these are many."""
    distinct = dict.fromkeys(asked)
    if len(distinct) > _MANY:
        return f.lit(True)
    made = [compile_subscription(one, held, spelling).condition for one in distinct]
    conditions = [condition for condition in made if condition is not None]
    if len(conditions) < len(made):
        return f.lit(True)
    return reduce(or_, conditions, f.lit(False))


def _inner(asked: Iterable[Subscription]) -> Iterator[Subscription]:
    """Every subscription that stands inside these."""
    for one in asked:
        for constraint in constraints_within(one):
            if constraint.inner is not None:
                yield constraint.inner


def _dealt(
    asked: list[tuple[int, Subscription]], groups: int
) -> Iterator[list[tuple[int, Subscription]]]:
    """As many hands as there are groups, none of them empty."""
    count = min(max(1, groups), len(asked))
    for number in range(count):
        yield asked[number::count]


def _delivering(ways: _Ways, cut: Plan | None, knowledge: Knowledge, max_open: int | None) -> Pass:
    # Plain values only: what a task needs travels to it.
    names, temporal, begins = ways.names, ways.temporal, ways.begins(cut)
    keyed: dict[Hashable, Subscription] = dict(ways.asked.items())

    def deliver(batches: Rows) -> Rows:
        replay = Replay(keyed, knowledge, max_open)
        for batch in batches:
            after = _begin(batch, begins)
            seqs: list[int] = []
            keys: list[Hashable] = []
            for who, entry in _read(batch, names, temporal):
                if who == _KEPT or entry.seq <= after:
                    if who != _ASKS:
                        replay.learn(entry)
                    continue
                found = replay.ask(entry) if who == _ASKS else replay.feed(entry)
                if found:
                    seqs.extend([entry.seq] * len(found))
                    keys.extend(found)
            if seqs:
                yield pa.record_batch(
                    {"seq": pa.array(seqs, pa.int64()), "key": pa.array(keys, pa.int32())}
                )

    return deliver


def _read(
    batch: pa.RecordBatch, names: Sequence[str], temporal: frozenset[str]
) -> Iterator[tuple[int, LogEntry]]:
    return zip(
        batch.column(WHO).to_pylist(), read_entries(batch, names, temporal), strict=True
    )  # fmt: skip


def _begin(batch: pa.RecordBatch, begins: Sequence[int]) -> int:
    """The number after which the chunk of a batch begins: a task has one chunk."""
    if len(begins) == 1 or not batch.num_rows:
        return begins[0]
    number: int = batch.column(CHUNK)[0].as_py()
    return begins[number]


def _deciding(
    asked: Subscription, ways: _Ways, cut: Plan | None, knowledge: Knowledge, max_open: int | None
) -> Pass:
    names, temporal, begins = ways.names, ways.temporal, ways.begins(cut)
    keyed: dict[Hashable, Subscription] = dict(ways.asked.items())
    name = inner_hash(asked)

    def decide(batches: Rows) -> Rows:
        replay = Replay(keyed, knowledge, max_open)
        for batch in batches:
            after = _begin(batch, begins)
            made: list[tuple[LogEntry, bool]] = []
            for entry in read_entries(batch, names, temporal):
                decided = replay.learn(entry)[0]
                if entry.seq > after:
                    holds = [one.holds for one in decided if one.inner == name]
                    # What an earlier chunk held of the event's other part is not known here.
                    if holds or (after and entry.part in _HALVES):
                        made.append((entry, any(holds)))
            if made:
                yield pa.record_batch(
                    {
                        "uid": pa.array([entry.uid for entry, _ in made], pa.string()),
                        "seq": pa.array([entry.seq for entry, _ in made], pa.int64()),
                        "holds": pa.array([holds for _, holds in made], pa.bool_()),
                    }
                )

    return decide
