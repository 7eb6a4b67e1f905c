"""What the log keeps: one entry per accepted publication, one decision per inner filter.

``LogEntry`` is the truth of history; ``Decision`` is what one inner filter said of
an event when that entry was accepted. Both are plain records, so that the
temporal memory, every store and Spark speak of the same things.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from kbn.model.notifications import Notification


class Part(StrEnum):
    """Which part of its event a publication tells; PLAIN ones carry no temporal attribute."""

    START = "START"
    END = "END"
    INSTANT = "INSTANT"
    PLAIN = "PLAIN"


class LogEntry(NamedTuple):
    """One accepted publication, as published; times in milliseconds since the epoch."""

    #: The broker's own arrival number: strictly rising, given on acceptance.
    seq: int
    #: The event's id: ``PUB_ID``, or the stamped uid of a plain publication.
    uid: str
    part: Part
    #: The moment the first broker stamped on it; the instant of a plain publication.
    at: int
    #: When it arrived at this broker.
    arrived: int
    start: int | None
    end: int | None
    notification: Notification


class Decision(NamedTuple):
    """Whether an inner filter held of an event, after the publication ``seq`` about it.

    The newest decision of an (inner, event) pair stands. ``start`` and ``end`` are
    those of the event as merged so far.
    """

    inner: str
    event: str
    seq: int
    holds: bool
    start: int | None
    end: int | None
