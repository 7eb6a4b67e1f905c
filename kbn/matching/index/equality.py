"""Keys for dictionaries that agree with the language's ``=``.

Law: for values without NaN, ``value_key(v) == value_key(w)`` exactly when
``v = w``. Python compares int and float exactly and hashes equal numbers alike,
so numbers and strings are their own keys; only ``True == 1`` has to be kept
apart. NaN equals nothing and is never stored under a key. Cost: one dict probe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from kbn.matching.content import is_nan
from kbn.model.values import Bag, Scalar, Value

#: No scalar is a tuple, so these collide with nothing.
_BOOLS: dict[bool, Hashable] = {True: ("bool", True), False: ("bool", False)}


def scalar_key(value: Scalar) -> Hashable:
    """The key of a value that is no bag."""
    return _BOOLS[value] if isinstance(value, bool) else value


def multiset_key(members: Iterable[Scalar]) -> Hashable:
    """The key of a bag: its members with their multiplicities, in no order."""
    return ("bag", frozenset(Counter(map(scalar_key, members)).items()))


def value_key(value: Value) -> Hashable:
    """The key under which equal values meet; a bag is never equal to a scalar."""
    return multiset_key(value.members) if isinstance(value, Bag) else scalar_key(value)


def equals_nothing(value: Value) -> bool:
    """Whether ``=`` with this operand can never hold: NaN, also inside a bag."""
    return any(map(is_nan, value.members)) if isinstance(value, Bag) else is_nan(value)
