"""Subscriptions without temporal operators: matched wherever a row lies.

Law: the pairs are those of the definition, publication by publication. The broker's own
predicate index travels with the task, so the cost of a row is what it matches, not how
many ask. A few subscriptions are columns first, so that the table can skip what none of
them can match. Nothing is shuffled, nothing is sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    head_of,
    kinds_of,
    names_of,
    narrow,
    read_notifications,
    temporal_names,
)
from datastore.spark.reading import Reading
from datastore.spark.source import History
from kbn.matching.index import PredicateIndex
from kbn.matching.world import NOTHING_KNOWN, Knowledge, World
from kbn.model.filters import Subscription
from kbn.temporal.chunks import Chunk

Rows: TypeAlias = Iterator[pa.RecordBatch]
Pass: TypeAlias = Callable[[Rows], Rows]

PAIRS = "seq long, key int"
COUNTED = "key int, count long, first long, last long"
#: More subscriptions than these are no longer worth a condition of their own.
_FEW = 32
_NOTHING = NOTHING_KNOWN.knowledge


def matched(
    history: History,
    asked: Mapping[int, Subscription],
    *,
    span: Chunk | None = None,
    knowledge: Knowledge = _NOTHING,
    spelling: Spelling | None = None,
    counted: bool = False,
    reading: Reading | None = None,
) -> DataFrame:
    """``PAIRS`` of what matches, or ``COUNTED`` by task: to be summed up by key."""
    names, temporal = names_of(asked.values()), temporal_names(asked.values())
    held = cells(names, history.promoted, history.flat)
    log = history.frame
    if span is not None:
        log = log.where((f.col("seq") > span.after) & (f.col("seq") <= span.upto))
    wanted = _any_of(asked, {**held, **heads()}, spelling)
    if wanted is not None:
        log = log.where(wanted)
    rows = narrow(log, held, kinds_of(asked.values()), head=head_of(temporal))
    if reading is not None:
        rows = reading.watch(rows)
    work = _counting if counted else _pairing

    def match(batches: Rows) -> Rows:
        index = PredicateIndex()
        for key, one in asked.items():
            index.add(key, one)
        world = World(knowledge=knowledge)

        def found(batch: pa.RecordBatch) -> Iterator[tuple[int, set[int]]]:
            seqs = batch.column("seq").to_pylist()
            told = read_notifications(batch, names, temporal)
            for seq, notification in zip(seqs, told, strict=True):
                yield seq, index.match(notification, world)  # type: ignore[misc]

        return work(map(found, batches))

    return rows.mapInArrow(match, COUNTED if counted else PAIRS)


def _any_of(
    asked: Mapping[int, Subscription], held: Mapping[str, Cells], spelling: Spelling | None
) -> Column | None:
    if len(asked) > _FEW:
        return None
    made = [compile_subscription(one, held, spelling).condition for one in asked.values()]
    conditions = [condition for condition in made if condition is not None]
    return reduce(or_, conditions) if len(conditions) == len(made) else None


_Found: TypeAlias = Iterator[Iterator[tuple[int, set[int]]]]


def _pairing(batches: _Found) -> Rows:
    for batch in batches:
        seqs: list[int] = []
        keys: list[int] = []
        for seq, found in batch:
            if found:
                seqs.extend([seq] * len(found))
                keys.extend(found)
        if seqs:
            yield pa.record_batch(
                {"seq": pa.array(seqs, pa.int64()), "key": pa.array(keys, pa.int32())}
            )


def _counting(batches: _Found) -> Rows:
    held: dict[int, list[int]] = {}
    for batch in batches:
        for seq, found in batch:
            for key in found:
                one = held.get(key)
                if one is None:
                    held[key] = [1, seq, seq]
                else:
                    one[0] += 1
                    if seq < one[1]:
                        one[1] = seq
                    elif seq > one[2]:
                        one[2] = seq
    if held:
        columns = list(zip(*held.values(), strict=True))
        yield pa.record_batch(
            {
                "key": pa.array(held, pa.int32()),
                **{
                    name: pa.array(column, pa.int64())
                    for name, column in zip(("count", "first", "last"), columns, strict=True)
                },
            }
        )
