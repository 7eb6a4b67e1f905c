"""From log entries to merged events.

Law: START opens, END sets the end and its attributes win, INSTANT does both; the
merged ``KBN_PUB_TYPE`` is what has been seen. The result does not depend on the
order of arrival; of two entries for one part the first accepted stands. A plain
publication is an instant at its ``at`` and keeps exactly its own attributes.
"""

from __future__ import annotations

from collections.abc import Iterable

from datastore.store import StoredEvent
from kbn.model.notifications import Notification
from kbn.model.publications import LogEntry, Part
from kbn.model.time import PUB_TYPE
from kbn.model.values import Bag

_SEEN_BOTH = Bag(("START", "END"))


def merge(entries: Iterable[LogEntry]) -> StoredEvent:
    """The event that these entries, all of one id, make together."""
    held = sorted(entries)
    first, last = held[0], held[-1]
    if first is last:
        seq, uid, _, _, arrived, _, _, said = first
        return StoredEvent(uid, *times(first), seq, seq, arrived, arrived, said)
    parts: dict[Part, LogEntry] = {}
    for entry in held:
        parts.setdefault(entry.part, entry)
    whole = parts.get(Part.INSTANT) or parts.get(Part.PLAIN)
    start, end = parts.get(Part.START), parts.get(Part.END)
    if whole is not None:
        began, ended = times(whole)
        notification = whole.notification
    elif start is not None and end is not None:
        began, ended = start.start, end.end
        notification = Notification.trusted(
            {
                **start.notification.attributes,
                **end.notification.attributes,
                PUB_TYPE: _SEEN_BOTH,
            }
        )
    else:
        began, ended = times(first)
        notification = parts[first.part].notification
    return StoredEvent(
        first.uid, began, ended, first.seq, last.seq, first.arrived, last.arrived, notification
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
