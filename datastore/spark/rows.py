"""From frames back to entries and events, a partition at a time.

The driver holds two partitions at most, the one that is read and the next: if it is told
how many rows there are, of about ``TOGETHER`` rows each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame, Row

from datastore.merge import merge
from datastore.spark.project import MAPS, TEMPORAL
from datastore.spark.source import History
from datastore.store import StoredEvent
from kbn.model.notifications import Notification
from kbn.model.publications import LogEntry, Part
from kbn.model.values import Bag, Value

_PARTS = {part.value: part for part in Part}
TOGETHER = 20_000


def entry_of(row: Row, promoted: Mapping[str, int]) -> LogEntry:
    """The entry of a row of the log's schema, with or without flat columns."""
    held = row.asDict()
    said: dict[str, Value] = {}
    for column in MAPS.values():
        said.update(held[column] or {})
    said.update(dict.fromkeys(held["nulls"] or ()))
    for name, members in (held["bags"] or {}).items():
        said[name] = Bag(next((v for v in member if v is not None), None) for member in members)
    for name, number in promoted.items():
        for kind in ("l", "d", "s"):
            value: Any = held.get(f"a_{number}__{kind}")
            if value is not None:
                said[name] = value
    return LogEntry(
        held["seq"],
        held["uid"],
        _PARTS[held["part"]],
        held["at"],
        held["arrived"],
        held["start_ms"],
        held["end_ms"],
        # Maps keep no order: the temporal attributes last.
        Notification.trusted({name: said[name] for name in sorted(said, key=_place)}),
    )


def _place(name: str) -> tuple[int, str]:
    return (TEMPORAL.index(name) + 1 if name in TEMPORAL else 0, name)


def publications(
    history: History, found: DataFrame, count: int | None = None
) -> Iterator[tuple[LogEntry, int]]:
    """The publications of (seq, key), ``count`` of them, as published, by seq and key."""
    rows = history.frame.join(found, "seq")
    for row in _in_order(rows, count, ("seq", "key")):
        yield entry_of(row, history.promoted), row["key"]


def events(
    history: History, found: DataFrame, count: int | None = None
) -> Iterator[StoredEvent]:  # fmt: skip
    """The merged events of (uid, place_ms, first_seq), ``count`` of them, in that order."""
    rows = history.frame.join(found.select("uid", "place_ms", "first_seq"), "uid")
    told = _in_order(rows, count, ("place_ms", "first_seq"), "seq")
    entries = (entry_of(row, history.promoted) for row in told)
    for _, of_one in groupby(entries, key=lambda entry: entry.uid):
        yield merge(of_one)


def _in_order(
    rows: DataFrame, count: int | None, by: tuple[str, ...], *then: str
) -> Iterator[Row]:  # fmt: skip
    """The rows sorted by all of these, those that agree in ``by`` never apart."""
    if count is None:
        ordered = rows.orderBy(*by, *then)
    else:
        parts = max(1, -(-count // TOGETHER))
        ordered = rows.repartitionByRange(parts, *by).sortWithinPartitions(*by, *then)
    return ordered.toLocalIterator(prefetchPartitions=True)
