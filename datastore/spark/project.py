"""Only what is asked for: the attributes that filters name, as flat columns, and back.

Law: for subscriptions that name no other attributes, matching and merging the entries
of ``read_entries(narrow(log, names))`` give the same answers as those of the log itself:
a filter looks at the attributes it names, and merging is attribute by attribute.
The four temporal attributes follow from the columns of the entry and are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kbn.model.filters import Subscription, constraints_within
from kbn.model.notifications import Notification
from kbn.model.publications import LogEntry, Part
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME
from kbn.model.values import Bag, Scalar, Value

HEAD = ("seq", "uid", "part", "at", "arrived", "start_ms", "end_ms")
TEMPORAL = (PUB_ID, PUB_TYPE, START_TIME, END_TIME)
#: The kinds of a value: the suffix of its column, and the map that holds it.
MAPS = {"b": "bools", "l": "longs", "d": "doubles", "s": "strings"}
#: The part of a merged event that has started and ended.
BOTH = "BOTH"
_PARTS = {**{part.value: part for part in Part}, BOTH: Part.END}
_SEEN = {
    "START": Bag(["START"]),
    "END": Bag(["END"]),
    "INSTANT": Bag(["START", "END", "INSTANT"]),
    BOTH: Bag(["START", "END"]),
}


def names_of(subscriptions: Iterable[Subscription]) -> tuple[str, ...]:
    """The attributes that stand anywhere in these, but for the temporal ones; sorted."""
    found = {c.name for asked in subscriptions for c in constraints_within(asked)}
    return tuple(sorted(found.difference(TEMPORAL)))


class Cells:
    """The columns that hold one attribute of a log's row, by kind."""

    def __init__(self, name: str, number: int | None = None, *, flat: bool = False) -> None:
        self.name = name
        self._number = number
        self._flat = flat

    def kind(self, kind: str) -> Column:
        """The value if it is a bool (b), long (l), double (d), string (s); null otherwise."""
        held = f.col(MAPS[kind]).getItem(self.name)
        if self._number is None or kind == "b":
            return held
        promoted = f.col(f"a_{self._number}__{kind}")
        return promoted if self._flat else f.coalesce(promoted, held)

    @property
    def bag(self) -> Column:
        return f.col("bags").getItem(self.name)

    @property
    def null(self) -> Column:
        """Whether the value is null; never null itself."""
        return f.coalesce(f.array_contains("nulls", self.name), f.lit(False))


class NarrowCells(Cells):
    """The columns of one attribute after ``narrow``."""

    def __init__(self, name: str, place: int) -> None:
        super().__init__(name)
        self._place = place

    def kind(self, kind: str) -> Column:
        return f.col(f"n{self._place}_{kind}")

    @property
    def bag(self) -> Column:
        return f.col(f"n{self._place}_g")

    @property
    def null(self) -> Column:
        return f.col(f"n{self._place}_z")


def narrow_cells(names: Iterable[str]) -> dict[str, Cells]:
    """Where ``narrow`` puts these attributes, in its order."""
    return {name: NarrowCells(name, place) for place, name in enumerate(names)}


def cells(
    names: Iterable[str], promoted: Mapping[str, int], flat: frozenset[str] = frozenset()
) -> dict[str, Cells]:
    """The columns of a log that hold these attributes."""
    return {name: Cells(name, promoted.get(name), flat=name in flat) for name in names}


def narrow(log: DataFrame, held: Mapping[str, Cells], more: Iterable[str] = ()) -> DataFrame:
    """The head of each entry and six columns for each attribute, numbered in order; and
    ``more`` columns as they are."""
    columns = [f.col(name) for name in dict.fromkeys((*HEAD, *more))]
    for at, one in enumerate(held.values()):
        columns += [one.kind(kind).alias(f"n{at}_{kind}") for kind in MAPS]
        columns += [one.null.alias(f"n{at}_z"), one.bag.alias(f"n{at}_g")]
    return log.select(*columns)


def read_entries(
    batch: pa.RecordBatch, names: Iterable[str], temporal: frozenset[str] = frozenset(TEMPORAL)
) -> Iterator[LogEntry]:
    """The entries of a batch of ``narrow``, with these attributes only."""
    attributes = _attributes(batch, names)
    heads = [batch.column(name).to_pylist() for name in HEAD]
    with_id, with_type = PUB_ID in temporal, PUB_TYPE in temporal
    with_start, with_end = START_TIME in temporal, END_TIME in temporal
    for said, seq, uid, told, at, arrived, start, end in zip(attributes, *heads, strict=True):
        part = _PARTS[told]
        if part is not Part.PLAIN:
            if with_id:
                said[PUB_ID] = uid
            if with_type:
                said[PUB_TYPE] = _SEEN[told]
            if with_start and start is not None:
                said[START_TIME] = start
            if with_end and end is not None:
                said[END_TIME] = end
        yield LogEntry(seq, uid, part, at, arrived, start, end, Notification.trusted(said))


def _attributes(batch: pa.RecordBatch, names: Iterable[str]) -> list[dict[str, Value]]:
    attributes: list[dict[str, Value]] = [{} for _ in range(batch.num_rows)]
    for at, name in enumerate(names):
        for kind in MAPS:
            _fill(attributes, name, batch.column(f"n{at}_{kind}"))
        for said, absent in zip(attributes, batch.column(f"n{at}_z").to_pylist(), strict=True):
            if absent:
                said[name] = None
        bags = batch.column(f"n{at}_g")
        if bags.null_count < len(bags):
            for said, members in zip(attributes, bags.to_pylist(), strict=True):
                if members is not None:
                    said[name] = Bag(map(_scalar, members))
    return attributes


def temporal_names(subscriptions: Iterable[Subscription]) -> frozenset[str]:
    """Which of the temporal attributes stand anywhere in these."""
    found = {c.name for asked in subscriptions for c in constraints_within(asked)}
    return frozenset(found.intersection(TEMPORAL))


def _fill(attributes: list[dict[str, Value]], name: str, column: pa.Array) -> None:
    missing = column.null_count
    if missing == len(column):
        return
    values: list[Any] = column.to_pylist()
    if not missing:
        for said, value in zip(attributes, values, strict=True):
            said[name] = value
        return
    for said, value in zip(attributes, values, strict=True):
        if value is not None:
            said[name] = value


def _scalar(member: Mapping[str, Scalar]) -> Scalar:
    return next((value for value in member.values() if value is not None), None)
