"""Only what is asked for: the attributes that filters name, as flat columns, and back.

Law: for subscriptions that name no other attributes, matching and merging the entries
of ``read_entries(narrow(log, names))`` give the same answers as those of the log itself:
a filter looks at the attributes it names, and merging is attribute by attribute.
The four temporal attributes follow from the columns of the entry and are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kbn.model.filters import Constraint, Subscription, constraints_within
from kbn.model.notifications import Notification
from kbn.model.operators import Content
from kbn.model.publications import LogEntry, Part
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME
from kbn.model.values import Bag, Scalar, Value

HEAD = ("seq", "uid", "part", "at", "arrived", "start_ms", "end_ms")
#: The head without the stamps, for which no filter asks.
EVENT_HEAD = ("seq", "uid", "part", "start_ms", "end_ms")
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


def narrow(
    log: DataFrame,
    held: Mapping[str, Cells],
    lean: Mapping[str, frozenset[str]] | None = None,
    *,
    head: Iterable[str] = HEAD,
    more: Iterable[Column] = (),
) -> DataFrame:
    """The head of each entry and six columns for each attribute, numbered in order.

    With ``lean``, the kinds that matter by name (``kinds_of``), other columns are left out: a
    value of another kind is told as null. Each column costs as much as the rest of a row.
    """
    columns = [f.col(name) for name in head]
    for at, one in enumerate(held.values()):
        kinds = None if lean is None else lean.get(one.name)
        told = list(MAPS) if kinds is None else [kind for kind in MAPS if kind in kinds]
        columns += [one.kind(kind).alias(f"n{at}_{kind}") for kind in told]
        if kinds is None:
            columns += [one.null.alias(f"n{at}_z"), one.bag.alias(f"n{at}_g")]
        else:
            other = [one.kind(kind).isNotNull() for kind in MAPS if kind not in kinds]
            there = reduce(or_, [*other, one.bag.isNotNull()], one.null)
            columns.append(there.alias(f"n{at}_z"))
    return log.select(*columns, *more)


def kinds_of(subscriptions: Iterable[Subscription]) -> dict[str, frozenset[str]]:
    """By attribute, the kinds of value that its constraints tell apart, where these are few.

    Law: if every value of another kind is put as null, nothing matches otherwise. An operator
    of content that has a scalar as its operand holds of all other kinds, or of none.
    """
    found: dict[str, frozenset[str]] = {}
    open_ones: set[str] = set()
    for constraint in (c for asked in subscriptions for c in constraints_within(asked)):
        kinds = _kinds(constraint)
        if kinds is None:
            open_ones.add(constraint.name)
        else:
            found[constraint.name] = found.get(constraint.name, frozenset()) | kinds
    return {name: kinds for name, kinds in found.items() if name not in open_ones}


def _kinds(asked: Constraint) -> frozenset[str] | None:
    op = asked.op
    if op is Content.ANY:
        return frozenset()
    if not isinstance(op, Content):
        return None
    value = asked.value
    if value is None or isinstance(value, Bag):
        return None
    if isinstance(value, bool):
        return frozenset("b")
    return frozenset("s") if isinstance(value, str) else frozenset("ld")


def read_entries(
    batch: pa.RecordBatch, names: Iterable[str], temporal: frozenset[str] = frozenset(TEMPORAL)
) -> Iterator[LogEntry]:
    """The entries of a batch of ``narrow``, with these attributes only."""
    said = _told(batch, names, temporal)
    columns = {name: _values(batch, name) for name in HEAD}
    columns["part"] = [_PARTS[told] for told in columns["part"]]
    return map(LogEntry._make, zip(*columns.values(), said, strict=True))


def read_notifications(
    batch: pa.RecordBatch, names: Iterable[str], temporal: frozenset[str] = frozenset(TEMPORAL)
) -> list[Notification]:
    """What the entries of a batch say, with these attributes only."""
    return _told(batch, names, temporal)


def _told(
    batch: pa.RecordBatch, names: Iterable[str], temporal: frozenset[str]
) -> list[Notification]:
    attributes = _attributes(batch, names)
    if temporal:
        parts = _values(batch, "part")
        plain = Part.PLAIN.value
        if PUB_ID in temporal:
            for said, part, uid in zip(attributes, parts, _values(batch, "uid"), strict=True):
                if part != plain:
                    said[PUB_ID] = uid
        if PUB_TYPE in temporal:
            for said, part in zip(attributes, parts, strict=True):
                if part != plain:
                    said[PUB_TYPE] = _SEEN[part]
        for name, column in ((START_TIME, "start_ms"), (END_TIME, "end_ms")):
            if name in temporal:
                for said, part, ms in zip(attributes, parts, _values(batch, column), strict=True):
                    if ms is not None and part != plain:
                        said[name] = ms
    return list(map(Notification.trusted, attributes))


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    """A column's values; zeros where ``narrow`` left it out."""
    at = batch.schema.get_field_index(name)
    return [0] * batch.num_rows if at < 0 else batch.column(at).to_pylist()


def _attributes(batch: pa.RecordBatch, names: Iterable[str]) -> list[dict[str, Value]]:
    attributes: list[dict[str, Value]] = [{} for _ in range(batch.num_rows)]
    there = set(batch.schema.names)
    for at, name in enumerate(names):
        for kind in MAPS:
            if f"n{at}_{kind}" in there:
                _fill(attributes, name, batch.column(f"n{at}_{kind}"))
        absent = batch.column(f"n{at}_z")
        if pc.any(absent).as_py():
            for said, is_null in zip(attributes, absent.to_pylist(), strict=True):
                if is_null:
                    said[name] = None
        bags = batch.column(f"n{at}_g") if f"n{at}_g" in there else None
        if bags is not None and bags.null_count < len(bags):
            for said, members in zip(attributes, bags.to_pylist(), strict=True):
                if members is not None:
                    said[name] = Bag(map(_scalar, members))
    return attributes


def head_of(temporal: frozenset[str]) -> tuple[str, ...]:
    """The columns that publications alone are read from, if these attributes are asked."""
    columns = {PUB_ID: "uid", START_TIME: "start_ms", END_TIME: "end_ms"}
    asked = [column for name, column in columns.items() if name in temporal]
    return ("seq", "part", *asked) if temporal else ("seq",)


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
