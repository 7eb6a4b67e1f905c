"""Notifications: an immutable map from names to values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kbn.errors import ValueRangeError
from kbn.model.values import Value, check_value, identity


def check_name(name: object) -> None:
    """Raise ``ValueRangeError`` unless ``name`` is a string that UTF-8 can carry."""
    if not isinstance(name, str):
        raise ValueRangeError(f"an attribute name is a string, not {type(name).__name__}")
    check_value(name)


class Notification(Mapping[str, Value]):
    """What a publication says. Order of attributes is kept for printing only.

    Two notifications are equal when they have the same names with identical
    values (type and spelling), in any order.
    """

    __slots__ = ("_attributes", "_hash")

    _attributes: dict[str, Value]
    _hash: int | None

    def __init__(self, attributes: Mapping[str, Value] | Iterable[tuple[str, Value]] = ()) -> None:
        held = dict(attributes)
        for name, value in held.items():
            check_name(name)
            check_value(value)
        self._attributes = held
        self._hash = None

    @classmethod
    def trusted(cls, attributes: dict[str, Value]) -> Notification:
        """Wrap a dict that a decoder has checked already; the caller gives it away."""
        made = cls.__new__(cls)
        made._attributes = attributes
        made._hash = None
        return made

    def __getitem__(self, name: str) -> Value:
        return self._attributes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    @property
    def attributes(self) -> Mapping[str, Value]:
        """The plain dict behind it, for hot loops; never to be changed."""
        return self._attributes

    def merged(self, other: Mapping[str, Value]) -> Notification:
        """A new notification with ``other``'s attributes laid over these."""
        return Notification.trusted({**self._attributes, **other})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Notification):
            return NotImplemented
        mine, theirs = self._attributes, other._attributes
        return mine.keys() == theirs.keys() and all(
            identity(value) == identity(theirs[name]) for name, value in mine.items()
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset((name, identity(value)) for name, value in self.items()))
        return self._hash

    def __reduce__(self) -> tuple[type[Notification], tuple[dict[str, Value]]]:
        return (Notification, (self._attributes,))

    def __repr__(self) -> str:
        return f"Notification({self._attributes!r})"
