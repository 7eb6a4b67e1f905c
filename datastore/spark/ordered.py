"""The ordered pass: the log in the order of its numbers, through the pure ``replay``.

Law: the pass says of every entry what the broker said, or would have said, when it
arrived. Parallel by subscription: each group of them is one task that reads, sorted,
only what can matter to it: entries of events that have parts to come, and complete
ones that some filter of the group, inner ones included, may match by its content.
Nothing is crossed; the rows are sorted once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from datastore.query import Spelling
from datastore.spark.compile import compile_subscription, heads
from datastore.spark.project import (
    Cells,
    cells,
    names_of,
    narrow,
    read_entries,
    temporal_names,
)
from datastore.spark.source import History
from kbn.matching.world import NOTHING_KNOWN, Knowledge
from kbn.model.filters import Constraint, Subscription, constraints_within
from kbn.model.operators import During
from kbn.model.publications import LogEntry
from kbn.model.time import END_TIME
from kbn.temporal.memory import inner_hash
from kbn.temporal.replay import Replay

_NOTHING = NOTHING_KNOWN.knowledge
Rows: TypeAlias = Iterator[pa.RecordBatch]
Pass: TypeAlias = Callable[[Rows], Rows]


def deliveries(
    history: History,
    asked: Sequence[Subscription],
    *,
    upto: int | None = None,
    groups: int = 1,
    knowledge: Knowledge = _NOTHING,
    spelling: Spelling | None = None,
    max_open: int | None = None,
) -> DataFrame:
    """(seq, key): each publication with the number of each subscription that it matches, as
    of its own arrival. ``upto`` leaves out entries above that seq."""
    made = [
        _ordered(
            history,
            dict(some),
            _delivering(dict(some), knowledge, max_open),
            upto=upto,
            spelling=spelling,
        )
        for some in _dealt(list(enumerate(asked)), groups)
    ]
    return reduce(DataFrame.unionAll, made)


def decisions(
    history: History,
    asked: Subscription,
    *,
    knowledge: Knowledge = _NOTHING,
    spelling: Spelling | None = None,
    max_open: int | None = None,
) -> DataFrame:
    """(uid, seq, holds): what a filter was decided to be of each event, where it holds or
    ceases to hold. The one with the greatest seq stands."""
    deciding = _deciding(asked, knowledge, max_open)
    return _ordered(history, {0: asked}, deciding, spelling=spelling, schema=_DECIDED)


_DELIVERED = "seq long, key int"
_DECIDED = "uid string, seq long, holds boolean"


def _ordered(
    history: History,
    asked: Mapping[int, Subscription],
    work: Pass,
    *,
    upto: int | None = None,
    spelling: Spelling | None,
    schema: str = _DELIVERED,
) -> DataFrame:
    held = cells(names_of(asked.values()), history.promoted, history.flat)
    log = history.frame if upto is None else history.frame.where(f.col("seq") <= upto)
    wanted = relevant(asked.values(), {**held, **heads()}, spelling)
    if wanted is not None:
        log = log.where(wanted)
    rows = narrow(log, held).repartition(1).sortWithinPartitions("seq")
    return rows.mapInArrow(work, schema)


def relevant(
    asked: Iterable[Subscription], held: Mapping[str, Cells], spelling: Spelling | None
) -> Column | None:
    """Which entries can matter; None: all. A half event may become anything."""
    conditions = []
    for one in dict.fromkeys(_levels(asked)):
        made = compile_subscription(one, held, spelling).condition
        if made is None:
            return None
        conditions.append(made)
    return f.col("part").isin("START", "END") | reduce(or_, conditions)


def _levels(asked: Iterable[Subscription]) -> Iterator[Subscription]:
    """The subscriptions and every one that stands inside them."""
    for one in asked:
        yield one
        for constraint in constraints_within(one):
            if constraint.inner is not None:
                yield constraint.inner


def _dealt(
    asked: list[tuple[int, Subscription]], groups: int
) -> Iterator[list[tuple[int, Subscription]]]:
    """As many hands as there are groups, none of them empty."""
    count = max(1, min(groups, len(asked)))
    for number in range(count):
        yield asked[number::count]


def _delivering(
    asked: Mapping[int, Subscription], knowledge: Knowledge, max_open: int | None
) -> Pass:
    names, temporal = names_of(asked.values()), temporal_names(asked.values())

    def deliver(batches: Rows) -> Rows:
        keyed: dict[Hashable, Subscription] = dict(asked.items())
        replay = Replay(keyed, knowledge, max_open)
        for batch in batches:
            seqs: list[int] = []
            keys: list[Hashable] = []
            for entry in read_entries(batch, names, temporal):
                found = replay.feed(entry)
                if found:
                    seqs.extend([entry.seq] * len(found))
                    keys.extend(found)
            if seqs:
                yield pa.record_batch(
                    {"seq": pa.array(seqs, pa.int64()), "key": pa.array(keys, pa.int32())}
                )

    return deliver


def _deciding(asked: Subscription, knowledge: Knowledge, max_open: int | None) -> Pass:
    names, temporal = names_of((asked,)), temporal_names((asked,))
    # As an inner filter it is decided of every event, as merged, and asked of nobody.
    wrapped = Subscription.of(Constraint(END_TIME, During(), asked))
    name = inner_hash(asked)

    def decide(batches: Rows) -> Rows:
        replay = Replay({0: wrapped}, knowledge, max_open)
        for batch in batches:
            made: list[tuple[LogEntry, bool]] = []
            for entry in read_entries(batch, names, temporal):
                for decision in replay.learn(entry)[0]:
                    if decision.inner == name:
                        made.append((entry, decision.holds))
            if made:
                yield pa.record_batch(
                    {
                        "uid": pa.array([entry.uid for entry, _ in made], pa.string()),
                        "seq": pa.array([entry.seq for entry, _ in made], pa.int64()),
                        "holds": pa.array([holds for _, holds in made], pa.bool_()),
                    }
                )

    return decide
