"""From log entries to merged events, as a store keeps them.

The law is that of ``kbn.model.events``. A plain publication is an instant at its
``at``. Cost: an event of one publication, which most are, is not merged at all.
"""

from __future__ import annotations

from collections.abc import Iterable

from datastore.store import StoredEvent
from kbn.model.events import merge_all
from kbn.model.publications import LogEntry, Part


def merge(entries: Iterable[LogEntry]) -> StoredEvent:
    """The event that these entries, all of one id, make together."""
    held = sorted(entries)
    first, last = held[0], held[-1]
    if first is last:
        seq, uid, _, _, arrived, _, _, said = first
        return StoredEvent(uid, *times(first), seq, seq, arrived, arrived, said)
    # No broker accepts a part twice, or a second one of a whole; if so, the first stands.
    told = {entry.part: entry for entry in reversed(held)}
    whole = told.get(Part.INSTANT) or told.get(Part.PLAIN)
    event = merge_all(sorted(told.values()) if whole is None else [whole])
    assert event is not None, "there is a first entry"
    return StoredEvent(
        event.id,
        event.start,
        event.end,
        first.seq,
        last.seq,
        first.arrived,
        last.arrived,
        event.notification,
    )


def times(entry: LogEntry) -> tuple[int | None, int | None]:
    """Start and end as one entry alone tells them."""
    if entry.part is Part.PLAIN:
        return entry.at, entry.at
    return entry.start, entry.end


def place(start: int | None, end: int | None) -> int:
    """The time that orders an event: its start, or its end where no start is known."""
    if start is not None:
        return start
    assert end is not None, "an event has a start or an end"
    return end
