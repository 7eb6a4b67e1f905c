"""Content operators: a value against a value.

Law: long and double compare as the numbers they stand for, without rounding
(Python compares int and float exactly); strings compare by code point;
``false < true``; an ordering between different types is false, so is ``=``, and
``!=`` is its negation; NaN satisfies only ``any`` and ``!=``. Cost: that of one
Python comparison; bags hash their members.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from kbn.model.operators import Content
from kbn.model.values import Bag, Scalar, Value

NUMBER, STRING, BOOL, NULL, BAG = "number", "string", "bool", "null", "bag"


def type_class(value: Value) -> str:
    """Values are comparable only within one class; long and double share theirs."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int | float):
        return NUMBER
    if isinstance(value, str):
        return STRING
    return NULL if value is None else BAG


def equality_key(value: Scalar) -> Hashable:
    """A key equal exactly when ``=`` holds, but for NaN, which equals nothing."""
    return (type_class(value), value)


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def equal(value: Value, operand: Value) -> bool:
    """The language's ``=``: multiset equality for bags, never across classes."""
    if isinstance(value, Bag) and isinstance(operand, Bag):
        if any(is_nan(member) for member in value):
            return False
        return Counter(map(equality_key, value)) == Counter(map(equality_key, operand))
    if isinstance(value, Bag) or isinstance(operand, Bag):
        return False
    return not is_nan(value) and equality_key(value) == equality_key(operand)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool]:
    def holds(value: Value, operand: Value) -> bool:
        kind = type_class(value)
        return kind in _ORDERED and kind == type_class(operand) and compare(value, operand)

    return holds


def _textual(compare: Callable[[str, str], bool]) -> Callable[[Value, Value], bool]:
    def holds(value: Value, operand: Value) -> bool:
        return isinstance(value, str) and isinstance(operand, str) and compare(value, operand)

    return holds


_ORDERED = frozenset({NUMBER, STRING, BOOL})

#: One row per operator: attribute value first, operand second.
HOLDS: dict[Content, Callable[[Value, Value], bool]] = {
    Content.EQ: equal,
    Content.NE: lambda value, operand: not equal(value, operand),
    Content.LT: _ordered(operator.lt),
    Content.LE: _ordered(operator.le),
    Content.GT: _ordered(operator.gt),
    Content.GE: _ordered(operator.ge),
    Content.PREFIX: _textual(str.startswith),
    Content.SUFFIX: _textual(str.endswith),
    Content.CONTAINS: _textual(str.__contains__),
    Content.ANY: lambda value, operand: True,
}


def content_holds(op: Content, value: Value, operand: Value) -> bool:
    """Whether ``value op operand``."""
    return HOLDS[op](value, operand)
