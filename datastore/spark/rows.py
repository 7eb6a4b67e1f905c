"""From frames back to entries and events, a partition at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from datastore.merge import merge
from datastore.spark.project import MAPS
from datastore.spark.source import History
from datastore.store import StoredEvent
from kbn.model.notifications import Notification
from kbn.model.publications import LogEntry, Part
from kbn.model.values import Bag, Value

_PARTS = {part.value: part for part in Part}


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
        Notification.trusted(said),
    )


def publications(history: History, found: DataFrame) -> Iterator[tuple[LogEntry, int]]:
    """The publications of (seq, key), as published, in the order of seq and key."""
    rows = history.frame.join(found, "seq").orderBy("seq", "key")
    for row in rows.toLocalIterator():
        yield entry_of(row, history.promoted), row["key"]


def events(history: History, found: DataFrame) -> Iterator[StoredEvent]:
    """The merged events of (uid, place_ms, first_seq), by place and first seq."""
    wanted = found.select("uid", "place_ms", "first_seq")
    rows = history.frame.join(wanted, "uid").orderBy("place_ms", "first_seq", f.col("seq"))
    entries = (entry_of(row, history.promoted) for row in rows.toLocalIterator())
    for _, told in groupby(entries, key=lambda entry: entry.uid):
        yield merge(told)
