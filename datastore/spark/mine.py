"""``mine``: what is in the history, and what follows what.

``attributes`` says of each attribute how many publications have it, in which type, and
about how many values it takes (HyperLogLog, 5 % off at most as a rule): what is worth an
index or a flat column. ``sequences`` says which kinds of events follow each other, how
often, after what time, and which AFTER limits would have caught them. Kinds are the
values of one attribute; neighbours are neighbours by (start, first seq), in all of history
or among events that share another attribute. Each row looks back at the few before it:
one sort, no join, so n log n for any length.
"""

from __future__ import annotations

from collections.abc import Callable

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


def sequences(
    history: History, by: str, *, per: str | None = None, length: int = 2, cover: float = 0.95
) -> DataFrame:
    """(kinds, count, p50_ms, p95_ms, after_ms) of runs of two to ``length`` neighbours.

    ``kinds`` are (type, value), first to last; the other arrays have one number for each gap.
    A gap reaches from the end of the one (its start while it is open) to the start of the
    next, and is negative where they overlap. ``after_ms`` are AFTER limits that together
    would have caught the share ``cover`` of the runs; null where no limit would have.
    """
    order = Window.partitionBy("per").orderBy("place", "first_seq")
    told = _told(history, by, per)
    last = {name: f.lag(name).over(order) for name in ("until", "ended", "last_seq")}
    gap = f.col("place") - last["until"]
    # AFTER is strict, wants an end that was known by then, and a time to count back from.
    caught = last["ended"] & (gap > 0) & f.col("timed") & (last["last_seq"] < f.col("first_seq"))
    steps = told.select(
        "per", "place", "first_seq", "kind", gap.alias("gap"),
        f.when(caught, gap).otherwise(_NEVER).alias("reach"),
    )  # fmt: skip
    back = {
        f"{name}_{at}": f.lag(name, at).over(order)
        for name in ("kind", "gap", "reach")
        for at in range(1, length)
    }
    now = {f"{name}_0": f.col(name) for name in ("kind", "gap", "reach")}
    steps = steps.select(*[column.alias(name) for name, column in {**now, **back}.items()])
    runs = []
    for size in range(2, length + 1):
        kinds = f.array(*[f.col(f"kind_{at}") for at in reversed(range(size))])
        gaps = {
            f"{name}{at}": f.col(f"{name}_{size - 2 - at}") if at < size - 1 else f.lit(None)
            for name in ("gap", "reach")
            for at in range(length - 1)
        }
        columns = [column.cast("long").alias(name) for name, column in gaps.items()]
        whole = f.col(f"kind_{size - 1}").isNotNull()
        runs.append(f.when(whole, f.struct(kinds.alias("kinds"), *columns)))
    each = steps.select(f.explode(f.array_compact(f.array(*runs))).alias("run")).select("run.*")
    # Limits of which each misses so little that together they miss no more than asked.
    shares = [1 - (1 - cover) / size for size in range(1, length)]
    made = [f.count("*").alias("count")]
    for at in range(length - 1):
        made.append(f.percentile_approx(f"gap{at}", [0.5, 0.95]).alias(f"gap{at}"))
        made.append(f.percentile_approx(f"reach{at}", shares).alias(f"reach{at}"))
    counted = each.groupBy("kinds").agg(*made)
    gaps_of = f.size("kinds") - 1

    def every(column: Callable[[int], Column]) -> Column:
        return f.slice(f.array(*[column(at) for at in range(length - 1)]), f.lit(1), gaps_of)

    def limit(at: int) -> Column:
        found = f.get(f.col(f"reach{at}"), gaps_of - 1)
        return f.when(found < _NEVER, found)

    return counted.select(
        "kinds",
        "count",
        every(lambda at: f.get(f.col(f"gap{at}"), f.lit(0))).alias("p50_ms"),
        every(lambda at: f.get(f.col(f"gap{at}"), f.lit(1))).alias("p95_ms"),
        every(limit).alias("after_ms"),
    )


#: A gap that no AFTER reaches over.
_NEVER = 2**62


def _told(history: History, by: str, per: str | None) -> DataFrame:
    """(kind, per, place, until, ended, timed, first_seq, last_seq) of each merged event."""
    names = [by] if per is None else [by, per]
    held = cells(names, history.promoted, history.flat)
    halves = f.col("part").isin("START", "END")
    rows = narrow(history.frame, held)
    whole = rows.where(~halves).withColumns({"first_seq": f.col("seq"), "last_seq": f.col("seq")})
    split = merged(rows.where(halves), names)
    kept = ["first_seq", "last_seq", "part", "start_ms", "end_ms", *_columns(len(names))]
    events = whole.select(kept).unionAll(split.select(kept))
    kinds = narrow_cells(names)

    def typed(name: str) -> Column:
        said = [
            f.when(
                kinds[name].kind(kind).isNotNull(),
                f.struct(
                    f.lit(_TYPES[kind]).alias("type"),
                    kinds[name].kind(kind).cast("string").alias("value"),
                ),
            )
            for kind in MAPS
        ]
        return f.coalesce(*said)

    return events.select(
        typed(by).alias("kind"),
        (f.lit(0) if per is None else typed(per)).alias("per"),
        f.coalesce("start_ms", "end_ms").alias("place"),
        f.coalesce("end_ms", "start_ms").alias("until"),
        f.col("end_ms").isNotNull().alias("ended"),
        ((f.col("part") != "PLAIN") & f.col("start_ms").isNotNull()).alias("timed"),
        "first_seq",
        "last_seq",
    ).where(f.col("kind").isNotNull() & f.col("per").isNotNull())


def _columns(count: int) -> list[str]:
    kinds = (*MAPS, "z", "g")
    return [f"n{at}_{kind}" for at in range(count) for kind in kinds]
