"""``rematch``: many subscriptions against much history, in one pass.

Law: the pairs are those of ``replay``, subscription by subscription. Those without
temporal operators are matched wherever a row lies, by the broker's own predicate index,
which travels with the task; the others take the ordered pass, all in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from datastore.query import Spelling
from datastore.spark.ordered import Rows, deliveries
from datastore.spark.project import cells, names_of, narrow, read_entries, temporal_names
from datastore.spark.source import History
from kbn.errors import NoOntologyError
from kbn.matching.index import PredicateIndex
from kbn.matching.world import NOTHING_KNOWN, Knowledge, World
from kbn.model.filters import Subscription, needs_history, needs_ontology


def pairs(
    history: History,
    asked: Sequence[Subscription],
    *,
    knowledge: Knowledge | None = None,
    spelling: Spelling | None = None,
) -> DataFrame:
    """(seq, key) of every publication and every subscription that it matches."""
    return _all(history, asked, knowledge, spelling, counted=False)


def rematch(
    history: History,
    asked: Sequence[Subscription],
    *,
    knowledge: Knowledge | None = None,
    spelling: Spelling | None = None,
) -> DataFrame:
    """(key, count, first, last) of each subscription that something matches."""
    found = _all(history, asked, knowledge, spelling, counted=True)
    return found.groupBy("key").agg(
        f.sum("count").alias("count"), f.min("first").alias("first"), f.max("last").alias("last")
    )


_COUNTED = "key int, count long, first long, last long"
_PAIRS = "seq long, key int"


def _all(
    history: History,
    asked: Sequence[Subscription],
    knowledge: Knowledge | None,
    spelling: Spelling | None,
    *,
    counted: bool,
) -> DataFrame:
    if knowledge is None and any(needs_ontology(one) for one in asked):
        raise NoOntologyError("a semantic operator")
    known = NOTHING_KNOWN.knowledge if knowledge is None else knowledge
    plain = {key: one for key, one in enumerate(asked) if not needs_history(one)}
    temporal = [key for key, one in enumerate(asked) if needs_history(one)]
    made = []
    if plain:
        made.append(_plainly(history, plain, known, counted=counted))
    if temporal:
        found = deliveries(
            history, [asked[key] for key in temporal], knowledge=known, spelling=spelling
        )
        numbers = f.array(*[f.lit(key) for key in temporal])
        found = found.select("seq", f.get(numbers, f.col("key")).cast("int").alias("key"))
        made.append(_counts(found) if counted else found)
    if not made:
        empty = history.frame.sparkSession.createDataFrame([], _COUNTED if counted else _PAIRS)
        made.append(empty)
    return reduce(DataFrame.unionAll, made)


def _counts(found: DataFrame) -> DataFrame:
    return found.groupBy("key").agg(
        f.count("*").alias("count"), f.min("seq").alias("first"), f.max("seq").alias("last")
    )


def _plainly(
    history: History, asked: dict[int, Subscription], knowledge: Knowledge, *, counted: bool
) -> DataFrame:
    names, temporal = names_of(asked.values()), temporal_names(asked.values())
    rows = narrow(history.frame, cells(names, history.promoted, history.flat))

    def match(batches: Rows) -> Rows:
        index = PredicateIndex()
        for key, one in asked.items():
            index.add(key, one)
        world = World(knowledge=knowledge)
        held: dict[int, list[int]] = {}
        for batch in batches:
            seqs: list[int] = []
            keys: list[int] = []
            for entry in read_entries(batch, names, temporal):
                found: set[int] = index.match(entry.notification, world)  # type: ignore[assignment]
                if counted:
                    _count(held, entry.seq, found)
                else:
                    seqs.extend([entry.seq] * len(found))
                    keys.extend(found)
            if seqs:
                yield pa.record_batch(
                    {"seq": pa.array(seqs, pa.int64()), "key": pa.array(keys, pa.int32())}
                )
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

    return rows.mapInArrow(match, _COUNTED if counted else _PAIRS)


def _count(held: dict[int, list[int]], seq: int, found: set[int]) -> None:
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
