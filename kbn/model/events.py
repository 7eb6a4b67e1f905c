"""An event as its publications tell it: what is known after each of them.

Law: ``merge`` over any set of entries that do not conflict gives the same times,
parts and attributes in every order; ``first_seq`` and ``last_seq`` say in which
order they came. START opens the event, END closes it and its attributes win,
INSTANT and PLAIN do both. ``KBN_PUB_TYPE`` of the merged event is what has been
seen of it. Cost: one dict of the attributes when a second part arrives, else
nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kbn.model.notifications import Notification
from kbn.model.publications import LogEntry, Part
from kbn.model.time import PUB_TYPE
from kbn.model.values import Bag, Value

_BOTH = frozenset({Part.START, Part.END})
_ALONE = {part: frozenset({part}) for part in Part}
_FINAL = frozenset({_BOTH, _ALONE[Part.INSTANT], _ALONE[Part.PLAIN]})
_SEEN = {PUB_TYPE: Bag(["START", "END"])}


class MergedEvent(NamedTuple):
    """All that is known of one event. Made by ``merge`` only."""

    id: str
    #: The numbers of its first and its newest publication.
    first_seq: int
    last_seq: int
    #: None while unknown: an END may come alone, an event may still be going on.
    start: int | None
    end: int | None
    #: Which publications have been seen.
    parts: frozenset[Part]
    #: The attributes merged so far, ``KBN_PUB_TYPE`` among them unless it is plain.
    notification: Notification
    #: What START, INSTANT or PLAIN said, and what END said, each as published.
    opened: Notification | None
    closed: Notification | None

    @property
    def final(self) -> bool:
        """Whether no further publication about it can be accepted."""
        return self.parts in _FINAL

    @property
    def order(self) -> tuple[int, int]:
        """Where it stands among events: by start (by end if only that is known), then arrival."""
        moment = self.end if self.start is None else self.start
        assert moment is not None, "an event has a start or an end"
        return (moment, self.first_seq)


def merge(known: MergedEvent | None, entry: LogEntry) -> MergedEvent:
    """The event after one more accepted publication about it, in whatever order they come."""
    said = entry.notification
    if known is None:
        ended = entry.part is Part.END
        return MergedEvent(
            entry.uid,
            entry.seq,
            entry.seq,
            entry.start,
            entry.end,
            _ALONE[entry.part],
            said,
            None if ended else said,
            said if ended else None,
        )
    opened, closed = (known.opened, said) if entry.part is Part.END else (said, known.closed)
    assert opened is not None, "the second publication brings the other part"
    assert closed is not None, "the second publication brings the other part"
    attributes: dict[str, Value] = {**opened.attributes, **closed.attributes, **_SEEN}
    return MergedEvent(
        known.id,
        known.first_seq,
        entry.seq,
        known.start if entry.start is None else entry.start,
        known.end if entry.end is None else entry.end,
        _BOTH,
        Notification.trusted(attributes),
        opened,
        closed,
    )


def merge_all(entries: Iterable[LogEntry]) -> MergedEvent | None:
    """The event that these entries tell, all about one id; None if there is none."""
    event: MergedEvent | None = None
    for entry in entries:
        event = merge(event, entry)
    return event
