"""Values: null, bool, long, double, string, and bags of those.

Python's own ``None``, ``bool``, ``int``, ``float`` and ``str`` carry the scalars.
Two relations must not be confused:

- *identity* (``identity``): same type and same spelling. ``1``, ``1.0`` and
  ``true`` differ, ``-0.0`` and ``0.0`` differ, NaN is itself, and the order in
  which a bag was written counts. Syntax trees compare by it.
- *equality* (``kbn.matching.content``): the language's ``=``. ``1 = 1.0``, a bag
  ignores order, NaN equals nothing.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from typing import TypeAlias

from kbn.errors import ValueRangeError

LONG_MIN = -(2**63)
LONG_MAX = 2**63 - 1

Scalar: TypeAlias = bool | int | float | str | None


class Bag:
    """A multiset of scalars that remembers the order it was written in.

    Python's ``==`` on bags is identity (order counts), so that a syntax tree
    read back is the tree that was written.
    """

    __slots__ = ("members",)

    members: tuple[Scalar, ...]

    def __init__(self, members: Iterable[Scalar] = ()) -> None:
        held = tuple(members)
        for member in held:
            check_scalar(member)
        object.__setattr__(self, "members", held)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a bag is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a bag is immutable")

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bag) and identity(self) == identity(other)

    def __hash__(self) -> int:
        return hash(identity(self))

    def __reduce__(self) -> tuple[type[Bag], tuple[tuple[Scalar, ...]]]:
        return (Bag, (self.members,))

    def __repr__(self) -> str:
        return f"Bag({list(self.members)!r})"


Value: TypeAlias = Scalar | Bag


def check_scalar(value: object) -> None:
    """Raise ``ValueRangeError`` unless ``value`` is a scalar every form can carry.

    NaN and the infinities pass: they can be computed, though no form writes them.
    """
    if value is None or isinstance(value, bool | float):
        return
    if isinstance(value, int):
        if not LONG_MIN <= value <= LONG_MAX:
            raise ValueRangeError(f"{value} does not fit in a signed 64-bit long")
        return
    if isinstance(value, str):
        if not value.isascii():
            _check_unicode(value)
        return
    if isinstance(value, Bag):
        raise ValueRangeError("a bag cannot hold a bag")
    raise ValueRangeError(
        f"{type(value).__name__} is no value: use None, bool, int, float, str or Bag"
    )


def check_value(value: object) -> None:
    """Raise ``ValueRangeError`` unless ``value`` is a scalar or a bag."""
    if not isinstance(value, Bag):
        check_scalar(value)


def _check_unicode(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueRangeError(
            f"the string has a lone surrogate at index {error.start} and is not UTF-8"
        ) from None


def identity(value: Value) -> Hashable:
    """A key that is equal exactly for values of one type and one spelling."""
    if isinstance(value, str):
        return value
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int):
        return ("long", value)
    if isinstance(value, float):
        # The hexadecimal text tells -0.0 from 0.0 and makes NaN equal to itself.
        return ("double", value.hex())
    return ("bag", tuple(identity(member) for member in value.members))


def type_name(value: Value) -> str:
    """The language's name of the value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "long"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "string"
    return "bag"


def is_finite(value: Value) -> bool:
    """Whether every form can write the value: no NaN, no infinity, also inside a bag."""
    if isinstance(value, Bag):
        return all(is_finite(member) for member in value.members)
    return not isinstance(value, float) or math.isfinite(value)


def members_of(value: Value) -> tuple[Scalar, ...]:
    """The members of a bag; a plain value where a bag is expected is a bag of one."""
    return value.members if isinstance(value, Bag) else (value,)
