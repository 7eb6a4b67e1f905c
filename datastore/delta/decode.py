"""Columns of the Delta log as entries again, a few rows at a time.

Law: ``from_columns`` undoes ``to_columns``, whatever was promoted when. Cost: about 5 µs of
CPU an entry. Maps and bags are taken apart as flat columns: boxed row by row they cost five
times as much, most of it for the cycle collector, and let no other thread of the process
run meanwhile. A broker's loop waits for as long as ``AT_ONCE`` rows take, not for a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pyarrow as pa

from datastore.delta.schema import FLAT, MAPS
from kbn.model.notifications import Notification
from kbn.model.publications import LogEntry, Part
from kbn.model.values import Bag, Scalar, Value

#: Rows that are boxed in one go.
AT_ONCE = 250
_PARTS = {part.value: part for part in Part}
_TIMES = ("seq", "uid", "part", "at", "arrived", "start_ms", "end_ms")


def from_columns(table: pa.Table, promoted: Mapping[str, int]) -> Iterator[LogEntry]:
    """The entries of a table that ``to_columns`` made, in the order of its rows."""
    for batch in table.to_batches(max_chunksize=AT_ONCE):
        yield from _entries(batch, promoted)


def _entries(batch: pa.RecordBatch, promoted: Mapping[str, int]) -> Iterator[LogEntry]:
    said: list[dict[str, Value]] = [{} for _ in range(batch.num_rows)]
    for name in MAPS:
        _add_pairs(said, batch.column(name), _plain)
    _add_pairs(said, batch.column("bags"), _bags)
    nulls = batch.column("nulls")
    if len(nulls.flatten()):
        for held, names in zip(said, nulls.to_pylist(), strict=True):
            held.update(dict.fromkeys(names or ()))
    there = set(batch.schema.names)
    for name, number in promoted.items():
        for suffix in FLAT:
            column = f"a_{number}__{suffix}"
            if column in there and (flat := batch.column(column)).null_count < len(flat):
                for held, value in zip(said, flat.to_pylist(), strict=True):
                    if value is not None:
                        held[name] = value
    heads = zip(*(batch.column(name).to_pylist() for name in _TIMES), strict=True)
    for (seq, uid, part, at, arrived, start, end), held in zip(heads, said, strict=True):
        yield LogEntry(
            seq, uid, _PARTS[part], at, arrived, start, end, Notification.trusted(held)
        )  # fmt: skip


def _add_pairs(said: list[dict[str, Value]], column: pa.MapArray, read: Any) -> None:
    """Names and values of a map column to the entries they are of."""
    if column.null_count:
        # Rows that others wrote: a missing map is an empty one.
        column = column.fill_null(pa.scalar([], column.type))
    ends = column.offsets.to_pylist()
    first, count = ends[0], ends[-1] - ends[0]
    if not count:
        return
    names = column.keys.slice(first, count).to_pylist()
    values = read(column.items.slice(first, count))
    pairs = list(zip(names, values, strict=True))
    for held, (low, high) in zip(said, pairwise(ends), strict=True):
        if low < high:
            held.update(pairs[low - first : high - first])


def _plain(values: pa.Array) -> list[Value]:
    found: list[Value] = values.to_pylist()
    return found


def _bags(values: pa.ListArray) -> list[Value]:
    kinds = [kind.to_pylist() for kind in values.flatten().flatten()]
    members = [_scalar(*member) for member in zip(*kinds, strict=True)]
    ends = values.offsets.to_pylist()
    first = ends[0]
    return [Bag(members[low - first : high - first]) for low, high in pairwise(ends)]


def _scalar(b: Scalar, l: Scalar, d: Scalar, s: Scalar) -> Scalar:  # noqa: E741 - as in MEMBER
    if s is not None:
        return s
    if l is not None:
        return l
    return d if b is None else b
