"""STARTs and ENDs put together by id, as columns: the merge of ``datastore.merge``, at once.

Law: the row of a pair is ``merge([start, end])``: END's attributes win whatever their types,
``KBN_PUB_TYPE`` is what has been seen. Nothing here looks at one row after the other: an
attribute is a number made of its row and its name, so that what END overrides is a set.
The log has one START and one END of an event at most, since a second is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from datastore.delta.schema import MEMBER, flat_fields
from kbn.model.time import PUB_TYPE

_MAPS = ("bools", "longs", "doubles", "strings", "bags")
_BOTH = pa.array([[{"s": "START"}, {"s": "END"}]], pa.list_(MEMBER))


class Pairs(NamedTuple):
    """Rows of the log, the first two of one length: the n-th of each tell one event."""

    starts: pa.Table
    ends: pa.Table
    #: Those of which there is no other half here.
    alone: pa.Table


def paired(log: pa.Table) -> Pairs:
    """The halves of the same events, side by side."""
    starts = log.filter(pc.equal(log.column("part"), "START"))
    ends = log.filter(pc.equal(log.column("part"), "END"))
    place = pc.index_in(starts.column("uid"), value_set=ends.column("uid"))
    met = pc.is_valid(place)
    unmet = pc.is_in(ends.column("uid"), value_set=starts.column("uid"))
    # Taken, not filtered: lists then begin at the beginning of their values.
    return Pairs(
        starts.take(pc.indices_nonzero(met)),
        ends.take(place.drop_null()),
        pa.concat_tables([starts.filter(pc.invert(met)), ends.filter(pc.invert(unmet))]),
    )


def attributes(pairs: Pairs, promoted: Mapping[str, int]) -> dict[str, pa.Array]:
    """The columns of the merged attributes of all pairs; promoted ones are in no map."""
    size = pairs.starts.num_rows
    before = _Said(pairs.starts)
    after = _Said(pairs.ends)
    names = _Names([*before.names(), *after.names(), pa.array(promoted, pa.string())])
    told = {
        name: _any_valid([pairs.ends.column(c) for c, _ in flat_fields((number,))])
        for name, number in promoted.items()
    }
    overridden = pa.concat_arrays(
        [names.of(said.rows, said.names) for said in after.lists.values()]
        + [names.of(pc.indices_nonzero(at), name) for name, at in told.items()]
    )
    every = pa.array(range(size), pa.int64())
    made: dict[str, pa.Array] = {}
    for column, old in before.lists.items():
        new = after.lists[column]
        kept = pc.invert(pc.is_in(names.of(old.rows, old.names), value_set=overridden))
        both = [old.where(kept), new]
        if column == "bags":
            both = [one.where(pc.not_equal(one.names, PUB_TYPE)) for one in both]
            seen = _BOTH.take(pa.array([0] * size, pa.int64()))
            both.append(_List(every, pa.array([PUB_TYPE] * size, pa.string()), seen))
        made[column] = _joined(both, every, pairs.starts.schema.field(column).type)
    for name, number in promoted.items():
        gone = pc.is_in(names.of(every, name), value_set=overridden)
        for column, kind in flat_fields((number,)):
            left = pc.if_else(gone, pa.scalar(None, kind), _one(pairs.starts, column))
            made[column] = pc.coalesce(_one(pairs.ends, column), left)
    return made


class _List(NamedTuple):
    """The entries of a column of maps or lists: of which row, with which name and value."""

    rows: pa.Array
    names: pa.Array
    values: pa.Array | None

    def where(self, mask: pa.Array) -> _List:
        values = None if self.values is None else self.values.filter(mask)
        return _List(self.rows.filter(mask), self.names.filter(mask), values)


class _Said:
    """What one side says, column by column."""

    def __init__(self, rows: pa.Table) -> None:
        self.lists: dict[str, _List] = {}
        for column in (*_MAPS, "nulls"):
            held = _one(rows, column)
            names, values = (
                (held.values, None) if column == "nulls" else (held.keys, held.items)
            )  # fmt: skip
            where = pc.list_parent_indices(pa.ListArray.from_arrays(held.offsets, names))
            self.lists[column] = _List(where.cast(pa.int64()), names, values)

    def names(self) -> list[pa.Array]:
        return [said.names for said in self.lists.values()]


class _Names:
    """A number for each pair of a row and a name."""

    def __init__(self, names: Iterable[pa.Array]) -> None:
        self._all = pc.unique(pa.concat_arrays([held.cast(pa.string()) for held in names]))

    def of(self, rows: pa.Array, names: pa.Array | str) -> pa.Array:
        if isinstance(names, str):
            code = pa.scalar(self._all.index(names).as_py(), pa.int64())
        else:
            code = pc.index_in(names.cast(pa.string()), value_set=self._all).cast(pa.int64())
        return pc.add(pc.multiply(rows.cast(pa.int64()), max(1, len(self._all))), code)


def _joined(parts: list[_List], every: pa.Array, kind: pa.DataType) -> pa.Array:
    """Entries of several lists as one column again, a row for each of ``every``."""
    rows = pa.concat_arrays([one.rows for one in parts])
    order = pc.sort_indices(rows)
    # One more for each row, so that those without any are counted, too.
    counted = pc.value_counts(pc.take(*_sorted(pa.concat_arrays([rows, every]))))
    ends = pc.cumulative_sum(pc.subtract(counted.field("counts"), 1)).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    names = pa.concat_arrays([one.names.cast(pa.string()) for one in parts]).take(order)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(offsets, names).cast(kind)
    values = pa.concat_arrays(
        [one.values.cast(kind.item_type) for one in parts if one.values is not None]
    )
    return pa.MapArray.from_arrays(offsets, names, values.take(order)).cast(kind)


def _sorted(held: pa.Array) -> tuple[pa.Array, pa.Array]:
    return held, pc.sort_indices(held)


def _one(table: pa.Table, column: str) -> pa.Array:
    if column not in table.column_names:
        field = dict(flat_fields((int(column.split("_")[1]),)))[column]
        return pa.nulls(table.num_rows, field)
    held = table.column(column).combine_chunks()
    return held if isinstance(held, pa.Array) else pa.concat_arrays(held.chunks)


def _any_valid(columns: Iterable[pa.ChunkedArray]) -> pa.ChunkedArray:
    first, *rest = [pc.is_valid(column) for column in columns]
    for one in rest:
        first = pc.or_(first, one)
    return first
