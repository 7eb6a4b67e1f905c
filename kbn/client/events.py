"""What a client publishes and what it is delivered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kbn.model import Bag, Notification, Value
from kbn.model.values import Scalar

#: What may stand as a value: Python's lists and tuples are bags.
Plain: TypeAlias = Value | Sequence[Scalar]
#: What may be published.
Publishable: TypeAlias = Notification | Mapping[str, Plain]


class Delivery(Notification):
    """A notification as a subscriber gets it: a mapping with the event's id and instant.

    ``uid`` is the event's id in every broker and store, ``at`` the instant it
    was accepted, in milliseconds since 1970. ``pos`` is its place in the broker's
    log where that was asked for (``since``, durable sessions), else 0; within a
    subscription it rises. Equality is that of the attributes.
    """

    __slots__ = ("at", "pos", "uid")

    uid: str
    at: int
    pos: int

    @classmethod
    def of(cls, notification: Notification, uid: str, at: int, pos: int = 0) -> Delivery:
        """The same attributes, shared and not copied, with where they come from."""
        made = cls.__new__(cls)
        made._attributes = notification._attributes
        made._hash = None
        made.uid = uid
        made.at = at
        made.pos = pos
        return made

    def __reduce__(self) -> tuple[object, ...]:  # type: ignore[override]
        return (_rebuilt, (self._attributes, self.uid, self.at, self.pos))

    def __repr__(self) -> str:
        where = f", pos={self.pos}" if self.pos else ""
        return f"Delivery({self._attributes!r}, uid={self.uid!r}, at={self.at}{where})"


def _rebuilt(attributes: dict[str, Value], uid: str, at: int, pos: int) -> Delivery:
    return Delivery.of(Notification.trusted(attributes), uid, at, pos)


def as_notification(
    event: Publishable | None, attributes: Mapping[str, Plain] | None = None
) -> Notification:
    """A notification of a mapping and keywords, the keywords last.

    Raises ``ValueRangeError`` for what is no value of the model.
    """
    if isinstance(event, Notification) and not attributes:
        return event
    said: dict[str, Value] = {}
    for part in (event, attributes):
        for name, value in (part or {}).items():
            said[name] = Bag(value) if isinstance(value, list | tuple) else value  # type: ignore[assignment]
    return Notification(said)
