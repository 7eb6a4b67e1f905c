"""``rematch``: many subscriptions against much history, in one pass.

Law: the pairs are those of ``replay``, subscription by subscription. Those without
temporal operators are matched wherever a row lies (``plain``); the others take the
ordered pass, dealt to as many groups as run at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from datastore.query import Spelling
from datastore.spark.chunks import parallelism
from datastore.spark.ordered import deliveries
from datastore.spark.plain import COUNTED, PAIRS, matched
from datastore.spark.source import History
from kbn.errors import NoOntologyError
from kbn.matching.world import NOTHING_KNOWN, Knowledge
from kbn.model.filters import Subscription, needs_history, needs_ontology


def pairs(
    history: History,
    asked: Sequence[Subscription],
    *,
    knowledge: Knowledge | None = None,
    spelling: Spelling | None = None,
    groups: int | None = None,
) -> DataFrame:
    """(seq, key) of every publication and every subscription that it matches."""
    return _all(history, asked, knowledge, spelling, groups=groups, counted=False)


def rematch(
    history: History,
    asked: Sequence[Subscription],
    *,
    knowledge: Knowledge | None = None,
    spelling: Spelling | None = None,
    groups: int | None = None,
) -> DataFrame:
    """(key, count, first, last) of each subscription that something matches."""
    found = _all(history, asked, knowledge, spelling, groups=groups, counted=True)
    return found.groupBy("key").agg(
        f.sum("count").alias("count"), f.min("first").alias("first"), f.max("last").alias("last")
    )


def _all(
    history: History,
    asked: Sequence[Subscription],
    knowledge: Knowledge | None,
    spelling: Spelling | None,
    *,
    groups: int | None,
    counted: bool,
) -> DataFrame:
    if knowledge is None and any(needs_ontology(one) for one in asked):
        raise NoOntologyError("a semantic operator")
    known = NOTHING_KNOWN.knowledge if knowledge is None else knowledge
    plain = {key: one for key, one in enumerate(asked) if not needs_history(one)}
    temporal = [key for key, one in enumerate(asked) if needs_history(one)]
    made = []
    if plain:
        made.append(
            matched(
                history,
                plain,
                knowledge=known,
                spelling=spelling,
                counted=counted,
            )
        )
    if temporal:
        if groups is None:
            groups = parallelism(history.frame.sparkSession)
        found = deliveries(
            history,
            [asked[key] for key in temporal],
            groups=groups,
            knowledge=known,
            spelling=spelling,
        )
        numbers = f.array(*[f.lit(key) for key in temporal])
        found = found.select("seq", f.get(numbers, f.col("key")).cast("int").alias("key"))
        made.append(_counts(found) if counted else found)
    if not made:
        empty = history.frame.sparkSession.createDataFrame([], COUNTED if counted else PAIRS)
        made.append(empty)
    return reduce(DataFrame.unionAll, made)


def _counts(found: DataFrame) -> DataFrame:
    return found.groupBy("key").agg(
        f.count("*").alias("count"), f.min("seq").alias("first"), f.max("seq").alias("last")
    )
