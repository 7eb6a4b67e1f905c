"""What was known of each event after each publication about it: its *versions*.

Law: the version of a publication is the event as ``kbn.model.events.merge`` leaves it after
that publication, and it is what the history says to every X with ``seq`` < X.seq <= ``next``,
where ``next`` is the number of the event's next publication (null: none came).

A whole event has one version, its row. An event told in two parts has two, which a
window over its id finds; only halves are shuffled for that. Cost: one pass over the log.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from datastore.spark.project import BOTH, HEAD, MAPS, Cells, narrow

#: What a version has beside the columns of ``narrow``. ``begun`` and ``ended`` are the times
#: of the event as merged; ``start_ms`` and ``end_ms`` those of the row, as it is matched.
MORE = ("next", "begun", "ended", "first_seq", "inserted")
HALVES = ("START", "END")
_SUFFIXES = (*MAPS, "z", "g")


def whole_versions(log: DataFrame, held: Mapping[str, Cells]) -> DataFrame:
    """Of rows that are whole events: nothing follows them."""
    return narrow(log, held).withColumns(
        {
            "next": f.lit(None).cast("long"),
            "begun": f.col("start_ms"),
            "ended": f.col("end_ms"),
            "first_seq": f.col("seq"),
            "inserted": f.col("arrived"),
        }
    )


def half_versions(
    log: DataFrame, held: Mapping[str, Cells], *, published: bool = False
) -> DataFrame:
    """Of STARTs and ENDs. ``published``: attributes and times as that publication told them,
    with the merged times beside them; otherwise everything is merged."""
    rows = narrow(log, held)
    told = Window.partitionBy("uid").orderBy("seq")
    # The row before, if there is one, is the event's other part.
    before = {
        f"before_{name}": f.lag(name).over(told)
        for name in ("seq", "arrived", "start_ms", "end_ms")
    }  # fmt: skip
    places = range(0 if published else len(held))
    before |= {f"before_{place}": f.lag(_packed(place)).over(told) for place in places}
    rows = rows.withColumns({"next": f.lead("seq").over(told), **before})
    rows = rows.withColumns(
        {
            "begun": f.coalesce("start_ms", "before_start_ms"),
            "ended": f.coalesce("end_ms", "before_end_ms"),
            "first_seq": f.coalesce("before_seq", "seq"),
            "inserted": f.coalesce("before_arrived", "arrived"),
            **{f"n{place}": _merged(place) for place in places},
        }
    )
    if published:
        return rows.drop(*before)
    second = f.col("before_seq").isNotNull()
    merged = {
        "start_ms": f.col("begun"),
        "end_ms": f.col("ended"),
        "part": f.when(second, f.lit(BOTH)).otherwise(f.col("part")),
    }
    head = [merged.get(name, f.col(name)).alias(name) for name in HEAD]
    flat = [_unpacked(place, suffix) for place in places for suffix in _SUFFIXES]
    return rows.select(*head, *MORE, *flat)


def _packed(place: int) -> Column:
    return f.struct(*[f.col(f"n{place}_{suffix}").alias(suffix) for suffix in _SUFFIXES])


def _merged(place: int) -> Column:
    """END's value of an attribute where it has one, otherwise START's."""
    last, own, before = f.col("part") == "END", _packed(place), f.col(f"before_{place}")
    winner = f.when(last, own).otherwise(before)
    there = f.coalesce(winner["z"], f.lit(False))
    for suffix in (*MAPS, "g"):
        there = there | winner[suffix].isNotNull()
    return f.when(there, winner).otherwise(f.when(last, before).otherwise(own))


def _unpacked(place: int, suffix: str) -> Column:
    held: Column = f.col(f"n{place}")[suffix]
    if suffix == "z":
        held = f.coalesce(held, f.lit(False))
    return held.alias(f"n{place}_{suffix}")
