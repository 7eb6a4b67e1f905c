"""Which part of which event a publication tells, and whether it may be told.

Refused with

- ``syntax``: a temporal attribute of the wrong type, an empty id, a ``KBN_PUB_TYPE``
  that is none of the three;
- ``temporal_missing``: a temporal attribute, but not all that its part needs, the id
  and the type included;
- ``time_range``: a time outside the years 1 to 9999;
- ``temporal_conflict``: START with an end, INSTANT with two times, an end before its
  start; and against what is known, START or END of an INSTANT, a second START or
  END with another time or content, a start that disagrees.

The same id, part and content again is no refusal but a duplicate. A publication
with no temporal attribute is PLAIN: an instant at the moment stamped on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kbn.errors import RefusedError
from kbn.model.events import MergedEvent
from kbn.model.notifications import Notification
from kbn.model.publications import Part
from kbn.model.settled import Settled, fingerprint
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME, TIME_MAX, TIME_MIN
from kbn.model.values import Bag, Value, identity, type_name

_PARTS = {
    ("START",): Part.START,
    ("END",): Part.END,
    ("END", "INSTANT", "START"): Part.INSTANT,
}


class Telling(NamedTuple):
    """One publication, understood: the event, the part, and the times it states itself."""

    event: str
    part: Part
    start: int | None
    end: int | None


def classify(notification: Notification, uid: str, at: int) -> Telling:
    """What a publication tells; ``uid`` and ``at`` are stamped and serve plain ones.

    Raises ``RefusedError`` for everything that is half temporal.
    """
    said = notification.attributes
    if PUB_TYPE not in said:
        for name in (PUB_ID, START_TIME, END_TIME):
            if name in said:
                raise RefusedError(
                    "temporal_missing", f"'{name}' without '{PUB_TYPE}': say START, END or INSTANT"
                )
        if not TIME_MIN <= at <= TIME_MAX:
            raise _out_of_range("at", at)
        return Telling(uid, Part.PLAIN, at, at)
    part = _part(said[PUB_TYPE])
    event = _id(said)
    start = _time(said, START_TIME)
    end = _time(said, END_TIME)
    if start is None and part is not Part.END:
        raise _missing(part, START_TIME)
    if end is None and part is not Part.START:
        raise _missing(part, END_TIME)
    if part is Part.START and end is not None:
        raise _conflict(f"a START has no '{END_TIME}': publish an END for it")
    if part is Part.INSTANT and start != end:
        raise _conflict(f"an INSTANT starts and ends at one time, not at {start} and {end}")
    if start is not None and end is not None and end < start:
        raise _conflict(f"the event would end at {end}, before its start at {start}")
    return Telling(event, part, start, end)


def is_duplicate(known: MergedEvent, told: Telling, notification: Notification) -> bool:
    """Whether this was told before, word for word. Raises ``RefusedError`` if it
    contradicts what is known; False means that it may be merged."""
    part, parts = told.part, known.parts
    if part in parts:
        before = known.closed if part is Part.END else known.opened
        if before is not None and same_content(before, notification):
            return True
        raise _said_otherwise(known.id, part)
    if part not in _OPEN or not parts <= _OPEN:
        raise _no_such_part(known.id, parts, part)
    if told.start is not None and known.start is not None and told.start != known.start:
        raise _conflict(
            f"event '{known.id}' starts at {known.start}, and this {part.value} says {told.start}"
        )
    start = known.start if told.start is None else told.start
    end = known.end if told.end is None else told.end
    if start is not None and end is not None and end < start:
        raise _conflict(f"event '{known.id}' would end at {end}, before its start at {start}")
    return False


_OPEN = frozenset({Part.START, Part.END})


def require_duplicate(known: Settled, told: Telling, notification: Notification) -> None:
    """Raise ``RefusedError`` unless this was told of a settled event before, word for word."""
    before = known.prints.get(told.part)
    if before is None:
        raise _no_such_part(known.id, known.prints, told.part)
    if before != fingerprint(notification):
        raise _said_otherwise(known.id, told.part)


def same_content(one: Notification, other: Notification) -> bool:
    """The same names with identical values; a bag written in another order is the same bag."""
    return one == other or (
        one.keys() == other.keys()
        and all(_identity(value) == _identity(other[name]) for name, value in one.items())
    )


def _identity(value: Value) -> object:
    return Counter(map(identity, value)) if isinstance(value, Bag) else identity(value)


def _part(value: Value) -> Part:
    if not isinstance(value, Bag):
        raise RefusedError("syntax", f"'{PUB_TYPE}' is a bag, not a {type_name(value)}")
    names = tuple(sorted(member for member in value if isinstance(member, str)))
    part = _PARTS.get(names)
    if part is None or len(names) != len(value):
        raise RefusedError(
            "syntax", f'\'{PUB_TYPE}\' is ["START"], ["END"] or ["START" "END" "INSTANT"]'
        )
    return part


def _id(said: Mapping[str, Value]) -> str:
    value = said.get(PUB_ID)
    if value is None and PUB_ID not in said:
        raise RefusedError("temporal_missing", f"a temporal publication needs its '{PUB_ID}'")
    if not isinstance(value, str) or not value:
        raise RefusedError("syntax", f"'{PUB_ID}' is a string that is not empty")
    return value


def _time(said: Mapping[str, Value], name: str) -> int | None:
    if name not in said:
        return None
    value = said.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise RefusedError("syntax", f"'{name}' is a long, not a {type_name(value)}")
    if not TIME_MIN <= value <= TIME_MAX:
        raise _out_of_range(name, value)
    return value


def _said_otherwise(event: str, part: Part) -> RefusedError:
    what = "publication" if part is Part.PLAIN else part.value
    return _conflict(f"event '{event}' has a {what} already, and it said something else")


def _no_such_part(event: str, parts: Iterable[Part], part: Part) -> RefusedError:
    seen = " and ".join(sorted(p.value for p in parts))
    return _conflict(f"event '{event}' is known by its {seen}: there is no {part.value} to it")


def _missing(part: Part, name: str) -> RefusedError:
    return RefusedError("temporal_missing", f"{part.value} needs '{name}'")


def _conflict(message: str) -> RefusedError:
    return RefusedError("temporal_conflict", message)


def _out_of_range(name: str, value: int) -> RefusedError:
    return RefusedError(
        "time_range", f"'{name}' = {value} lies outside the years 1 to 9999, in milliseconds"
    )
