"""``scan``: the stored events of which a filter holds by its latest decision.

Law: equals the definition: F of the event as merged, F's temporal operators asked of
the history before the event's latest publication. Without temporal operators that is
F of the merged event: complete events are decided on their one row, where the table
can prune; halves are merged by id first. What columns cannot say is asked of ``naive``
for the rows that are left. With temporal operators the ordered pass decides, or joins
(``joins.preferred``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from datastore.query import Spelling
from datastore.spark.compile import Compiled, compile_subscription, heads
from datastore.spark.joins import How, preferred, standing
from datastore.spark.ordered import Rows, decisions
from datastore.spark.project import (
    BOTH,
    MAPS,
    Cells,
    cells,
    names_of,
    narrow,
    narrow_cells,
    read_entries,
)
from datastore.spark.source import History
from kbn.errors import NoOntologyError
from kbn.matching.naive import matches
from kbn.matching.world import NOTHING_KNOWN, Knowledge, World
from kbn.model.filters import Subscription, needs_history, needs_ontology

_NOTHING = NOTHING_KNOWN.knowledge
#: What a scan says of each event.
FOUND = ("uid", "start_ms", "end_ms", "place_ms", "first_seq", "last_seq", "inserted", "updated")
_HALVES = ("START", "END")


def scan(
    history: History,
    asked: Subscription,
    *,
    knowledge: Knowledge | None = None,
    spelling: Spelling | None = None,
    max_open: int | None = None,
    how: How = "auto",
) -> DataFrame:
    """``FOUND`` of the events of which the filter holds, in no order; see ``by_start``.

    Raises ``NoOntologyError`` for a semantic operator without knowledge.
    """
    if needs_ontology(asked) and knowledge is None:
        raise NoOntologyError("a semantic operator")
    known = _NOTHING if knowledge is None else knowledge
    if needs_history(asked):
        if preferred(history, [asked], how):
            held_of = standing(
                history, asked, knowledge=known, spelling=spelling, max_open=max_open
            )
            return held_of.select(*_versions())
        return _decided(history, asked, known, spelling, max_open)
    names = names_of((asked,))
    held = cells(names, history.promoted, history.flat)
    log = history.frame
    whole = _met(
        log.where(~f.col("part").isin(*_HALVES)) if history.halves else log,
        compile_subscription(asked, {**held, **heads()}, spelling),
        asked=asked,
        names=names,
        held=held,
        knowledge=known,
    )
    if not history.halves:
        return whole.select(*_alone())
    halves = merged(narrow(log.where(f.col("part").isin(*_HALVES)), held), names)
    test = compile_subscription(asked, {**narrow_cells(names), **heads()}, spelling)
    halves = _met(halves, test, asked=asked, names=names, held=None, knowledge=known)
    return whole.select(*_alone()).unionAll(halves.select(*FOUND))


def by_start(found: DataFrame) -> DataFrame:
    """In the order of answers: by start (by end where no start is known), then arrival."""
    return found.orderBy("place_ms", "first_seq")


def merged(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Narrow rows of STARTs and ENDs as one row for each event; END's attributes win."""
    made: list[Column] = [
        f.max("start_ms").alias("start_ms"),
        f.max("end_ms").alias("end_ms"),
        f.min("seq").alias("first_seq"),
        f.max("seq").alias("last_seq"),
        f.min_by("at", "seq").alias("at"),
        f.min_by("arrived", "seq").alias("inserted"),
        f.max_by("arrived", "seq").alias("updated"),
        f.when(f.count("*") > 1, f.lit(BOTH)).otherwise(f.first("part")).alias("part"),
    ]
    for place, one in enumerate(narrow_cells(names).values()):
        there = one.null | one.bag.isNotNull()
        for kind in MAPS:
            there = there | one.kind(kind).isNotNull()
        rank = f.when(there, f.when(f.col("part") == "END", 2).otherwise(1))
        kinds = [f.col(f"n{place}_{kind}") for kind in (*MAPS, "z", "g")]
        made.append(f.max_by(f.struct(*kinds), rank).alias(f"n{place}"))
    found = rows.groupBy("uid").agg(*made)
    flat = [f.col(f"n{place}.*") for place in range(len(names))]
    head = ("uid", "part", "at", "start_ms", "end_ms", "first_seq", "last_seq")
    place_ms = f.coalesce("start_ms", "end_ms").alias("place_ms")
    rest = [f.col("first_seq").alias("seq"), f.col("inserted").alias("arrived")]
    found = found.select(*head, "inserted", "updated", place_ms, *rest, *flat)
    absent = [f"n{place}_z" for place in range(len(names))]
    return found.fillna(False, absent) if absent else found


def _met(
    rows: DataFrame,
    test: Compiled,
    *,
    asked: Subscription,
    names: Sequence[str],
    held: Mapping[str, Cells] | None,
    knowledge: Knowledge,
) -> DataFrame:
    """The rows of which the filter holds; ``held`` None: they are narrow already."""
    if test.condition is not None:
        rows = rows.where(test.condition)
    if test.exact:
        return rows
    if held is not None:
        rows = narrow(rows, held)
    world = World(knowledge=knowledge)

    def meet(batches: Rows) -> Rows:
        for batch in batches:
            met = [
                matches(asked, entry.notification, world) for entry in read_entries(batch, names)
            ]
            yield batch.filter(pa.array(met, pa.bool_()))

    return rows.mapInArrow(meet, rows.schema)


def _alone() -> list[Column]:
    """``FOUND`` of a row that is a whole event; a plain one is an instant at its ``at``."""
    plain = f.col("part") == "PLAIN"
    start = f.when(plain, f.col("at")).otherwise(f.col("start_ms"))
    return [
        f.col("uid"),
        start.alias("start_ms"),
        f.when(plain, f.col("at")).otherwise(f.col("end_ms")).alias("end_ms"),
        start.alias("place_ms"),
        f.col("seq").alias("first_seq"),
        f.col("seq").alias("last_seq"),
        f.col("arrived").alias("inserted"),
        f.col("arrived").alias("updated"),
    ]


def _versions() -> list[Column]:
    """``FOUND`` of the latest versions of events."""
    return [
        f.col("uid"),
        f.col("begun").alias("start_ms"),
        f.col("ended").alias("end_ms"),
        f.coalesce("begun", "ended").alias("place_ms"),
        f.col("first_seq"),
        f.col("seq").alias("last_seq"),
        f.col("inserted"),
        f.col("arrived").alias("updated"),
    ]


def _decided(
    history: History,
    asked: Subscription,
    knowledge: Knowledge,
    spelling: Spelling | None,
    max_open: int | None,
) -> DataFrame:
    made = decisions(history, asked, knowledge=knowledge, spelling=spelling, max_open=max_open)
    latest = made.groupBy("uid").agg(f.max_by("holds", "seq").alias("holds"))
    standing = latest.where("holds").select("uid")
    rows = narrow(history.frame.join(standing, "uid", "left_semi"), {})
    plain = f.col("part") == "PLAIN"
    rows = rows.withColumns(
        {
            "start_ms": f.when(plain, f.col("at")).otherwise(f.col("start_ms")),
            "end_ms": f.when(plain, f.col("at")).otherwise(f.col("end_ms")),
        }
    )
    return merged(rows, ()).select(*FOUND)
