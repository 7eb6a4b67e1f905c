"""``mine``: what is in the history, and what follows what.

``attributes`` says of each attribute how many publications have it, in which type, and
about how many values it takes (HyperLogLog, 5 % off at most as a rule): what is worth an
index or a flat column. ``sequences`` says which kind of event is followed by which, how
often, and after what time: the 95 % gap is the limit an AFTER would have needed to
catch 95 of 100. Kinds are the values of one attribute; neighbours are neighbours by
(start, first seq), in all of history or among events that share another attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from datastore.spark.project import MAPS, TEMPORAL, cells, narrow, narrow_cells
from datastore.spark.scan import merged
from datastore.spark.source import History

_TYPES = {"b": "bool", "l": "long", "d": "double", "s": "string"}


def attributes(history: History) -> DataFrame:
    """(name, type, count, values) of every attribute but the temporal ones."""
    held = []
    for kind, column in MAPS.items():
        entries = f.coalesce(f.map_entries(column), f.lit([]).cast(_ENTRIES[kind]))
        held.append(f.transform(entries, _saying(kind)))
    for name, number in history.promoted.items():
        for kind in ("l", "d", "s"):
            flat = f.col(f"a_{number}__{kind}")
            one = f.array(_said(f.lit(name), kind, flat))
            held.append(f.when(flat.isNotNull(), one).otherwise(f.slice(one, 1, 0)))
    bags = f.coalesce(f.map_keys("bags"), f.lit([]).cast("array<string>"))
    held.append(f.transform(bags, lambda name: _said(name, "bag", f.lit(""))))
    each = history.frame.select(f.explode(f.concat(*held)).alias("a")).select("a.*")
    each = each.where(~f.col("name").isin(*TEMPORAL))
    return each.groupBy("name", "type").agg(
        f.count("*").alias("count"), f.approx_count_distinct("value").alias("values")
    )


_ENTRIES = {
    "b": "array<struct<key:string,value:boolean>>",
    "l": "array<struct<key:string,value:bigint>>",
    "d": "array<struct<key:string,value:double>>",
    "s": "array<struct<key:string,value:string>>",
}


def _saying(kind: str) -> Callable[[Column], Column]:
    return lambda entry: _said(entry["key"], kind, entry["value"])


def _said(name: Column, kind: str, value: Column) -> Column:
    return f.struct(
        name.alias("name"),
        f.lit(_TYPES.get(kind, kind)).alias("type"),
        value.cast("string").alias("value"),
    )


def sequences(history: History, by: str, *, per: str | None = None) -> DataFrame:
    """(kind, follows, count, p50_ms, p95_ms): ``kind`` came next after ``follows``.

    The gap reaches from the end of the one (its start while it is open) to the start of
    the other, and is negative where they overlap.
    """
    names = [by] if per is None else [by, per]
    held = cells(names, history.promoted, history.flat)
    halves = f.col("part").isin("START", "END")
    rows = narrow(history.frame, held)
    whole = rows.where(~halves).withColumns({"first_seq": f.col("seq")})
    split = merged(rows.where(halves), names)
    kept = ["first_seq", "start_ms", "end_ms", *_columns(len(names))]
    events = whole.select(kept).unionAll(split.select(kept))
    kinds = narrow_cells(names)

    def text(name: str) -> Column:
        return f.coalesce(*[kinds[name].kind(kind).cast("string") for kind in MAPS])

    place = f.coalesce("start_ms", "end_ms")
    told = events.select(
        text(by).alias("kind"),
        (f.lit(0) if per is None else text(per)).alias("per"),
        place.alias("place"),
        f.coalesce("end_ms", "start_ms").alias("until"),
        "first_seq",
    ).where(f.col("kind").isNotNull() & f.col("per").isNotNull())
    order = Window.partitionBy("per").orderBy("place", "first_seq")
    paired = told.select(
        "kind",
        f.lag("kind").over(order).alias("follows"),
        (f.col("place") - f.lag("until").over(order)).alias("gap"),
    ).where(f.col("follows").isNotNull())
    return paired.groupBy("follows", "kind").agg(
        f.count("*").alias("count"),
        f.percentile_approx("gap", 0.5).alias("p50_ms"),
        f.percentile_approx("gap", 0.95).alias("p95_ms"),
    )


def _columns(count: int) -> list[str]:
    kinds = (*MAPS, "z", "g")
    return reduce(list.__add__, ([f"n{at}_{kind}" for kind in kinds] for at in range(count)), [])
