"""The columns of the Delta log, and entries as columns; ``decode`` reads them back.

Times and promoted attributes come first, since only the first 32 columns have
statistics. A promoted attribute has a flat column per type (``a_1__l``); every other
value is in the map of its type. Old files lack columns promoted later, so a reader
looks into both. The order of attributes within an event is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kbn.model.publications import LogEntry
from kbn.model.values import Bag, Scalar

DAY = 86_400_000
#: A member of a bag; null has none of the four.
MEMBER = pa.struct(
    [("b", pa.bool_()), ("l", pa.int64()), ("d", pa.float64()), ("s", pa.string())]
)  # fmt: skip
HEAD = (
    ("seq", pa.int64()),
    ("at", pa.int64()),
    ("arrived", pa.int64()),
    ("day", pa.int64()),
    ("uid", pa.string()),
    ("part", pa.string()),
    ("start_ms", pa.int64()),
    ("end_ms", pa.int64()),
)
FLAT = {"l": pa.int64(), "d": pa.float64(), "s": pa.string()}
MAPS = {"bools": pa.bool_(), "longs": pa.int64(), "doubles": pa.float64(), "strings": pa.string()}
_BAGS = pa.map_(pa.string(), pa.list_(MEMBER))
#: The columns of attributes that are not promoted.
ATTRIBUTES: tuple[tuple[str, pa.DataType], ...] = (
    *((name, pa.map_(pa.string(), kind)) for name, kind in MAPS.items()),
    ("nulls", pa.list_(pa.string())),
    ("bags", _BAGS),
)
#: The map that holds values of a Python type, and the suffix of its flat column.
_HOMES: dict[type, tuple[str, str | None]] = {
    bool: ("bools", None),
    int: ("longs", "l"),
    float: ("doubles", "d"),
    str: ("strings", "s"),
}


def log_schema(promoted: Iterable[int]) -> pa.Schema:
    """The table's columns, with flat ones for these numbers of promoted names."""
    return pa.schema([*HEAD, *flat_fields(promoted), *ATTRIBUTES])


def flat_fields(promoted: Iterable[int]) -> list[tuple[str, pa.DataType]]:
    """The flat columns of these numbers."""
    return [
        (f"a_{number}__{suffix}", kind) for number in promoted for suffix, kind in FLAT.items()
    ]


def to_columns(entries: Sequence[LogEntry], promoted: Mapping[str, int]) -> pa.Table:
    """Entries as a table of ``log_schema``; ``promoted`` numbers the names."""
    size = len(entries)
    flat: dict[str, list[Any]] = {
        f"a_{number}__{suffix}": [None] * size
        for number in promoted.values()
        for suffix in FLAT
    }  # fmt: skip
    maps: dict[str, _Map] = {name: _Map() for name in (*MAPS, "bags")}
    # Bound once: this loop is most of what a drain costs.
    adds = {
        kind: (maps[column].keys.append, maps[column].values.append, suffix)
        for kind, (column, suffix) in _HOMES.items()
    }
    ends_of = [(held.offsets.append, held.keys) for held in maps.values()]
    nulls: list[list[str]] = []
    for at, entry in enumerate(entries):
        absent: list[str] = []
        for name, value in entry.notification.attributes.items():
            add = adds.get(type(value))
            if add is None:
                if value is None:
                    absent.append(name)
                else:
                    assert isinstance(value, Bag)
                    maps["bags"].keys.append(name)
                    maps["bags"].values.append([_member(each) for each in value.members])
            elif name in promoted and add[2] is not None:
                flat[f"a_{promoted[name]}__{add[2]}"][at] = value
            else:
                add[0](name)
                add[1](value)
        nulls.append(absent)
        for close, keys in ends_of:
            close(len(keys))
    seqs, uids, parts, ats, arrivals, starts, ends, _ = zip(*entries, strict=True)
    columns: dict[str, Any] = {
        "seq": seqs,
        "at": ats,
        "arrived": arrivals,
        "day": [arrived // DAY for arrived in arrivals],
        "uid": uids,
        "part": [part.value for part in parts],
        "start_ms": starts,
        "end_ms": ends,
        **flat,
    }
    schema = log_schema(promoted.values())
    arrays = {name: pa.array(held, schema.field(name).type) for name, held in columns.items()}
    arrays |= {name: maps[name].array(schema.field(name).type) for name in maps}
    arrays["nulls"] = pa.array(nulls, schema.field("nulls").type)
    return pa.table([arrays[name] for name in schema.names], schema=schema)


class _Map:
    """A map column in the making: keys and values in a row, and where each entry ends."""

    __slots__ = ("keys", "offsets", "values")

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.values: list[Any] = []
        self.offsets = [0]

    def array(self, kind: pa.MapType) -> pa.Array:
        return pa.MapArray.from_arrays(
            pa.array(self.offsets, pa.int32()),
            pa.array(self.keys, pa.string()),
            pa.array(self.values, kind.item_type),
        )


def _member(value: Scalar) -> dict[str, Scalar]:
    if value is None:
        return {"b": None, "l": None, "d": None, "s": None}
    if isinstance(value, bool):
        return {"b": value}
    if isinstance(value, int):
        return {"l": value}
    return {"d": value} if isinstance(value, float) else {"s": value}
