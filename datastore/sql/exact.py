"""Comparisons of one value with the typed columns, exact where engines round.

Law: the test of ``op c`` holds of an attribute row exactly when ``naive`` says so of
its value, unless the second result is False: then it may hold of more. A long column
is only ever compared with a long and a double column with a double, with bounds worked
out here: PostgreSQL would compare them by rounding, and 2^53+1 would equal 2^53.

A test is a map from column to condition; a column that is missing never holds. ``k``
stands for the kinds without a column: null, false, true and bags.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, and_, false, func, or_, true

from datastore.sql.text import after_prefix, escape, is_blurred
from kbn.model.operators import ORDERINGS, STRING_OPERATORS, Content
from kbn.model.values import LONG_MAX, LONG_MIN, Bag, Value

Condition: TypeAlias = ColumnElement[bool]
Test: TypeAlias = dict[str, Condition]

#: A test that the engine can search an index for has only these columns.
SEARCHED = frozenset("lds")


def value_test(op: Content, operand: Value, row: Any, dialect: str) -> tuple[Test, bool]:
    """The test of ``op operand`` on the columns of ``row``, and whether it is exact."""
    if op is Content.ANY:
        return _present(row), True
    if op is Content.EQ:
        return _equal(operand, row)
    if op is Content.NE:
        return _unequal(operand, row)
    if op in ORDERINGS:
        return _ordered(op, operand, row), True
    assert op in STRING_OPERATORS
    if not isinstance(operand, str):
        return {}, True
    return _textual(op, operand, row, dialect)


def both(one: Test, other: Test) -> Test:
    """The conjunction of two tests of the same row."""
    return {column: and_(one[column], other[column]) for column in one if column in other}


def any_of(test: Test) -> Condition:
    """A test as one expression."""
    return or_(false(), *test.values())


def _present(row: Any) -> Test:
    return {
        "l": row.l.is_not(None),
        "d": row.kind == "d",
        "s": row.s.is_not(None),
        "k": row.kind.in_(("n", "t", "f", "b")),
    }


def _equal(operand: Value, row: Any) -> tuple[Test, bool]:
    if isinstance(operand, Bag):
        # Multiset equality is left to naive; only bags can have it.
        return {"k": row.kind == "b"}, False
    if operand is None:
        return {"k": row.kind == "n"}, True
    if isinstance(operand, bool):
        return {"k": row.kind == ("t" if operand else "f")}, True
    if isinstance(operand, str):
        return {"s": row.s == escape(operand)}, True
    test: Test = {}
    if isinstance(operand, int):
        test["l"] = row.l == operand
        if float(operand) == operand:
            test["d"] = row.d == float(operand)
        return test, True
    if math.isnan(operand):
        return {}, True
    test["d"] = row.d == operand
    if operand.is_integer() and LONG_MIN <= operand <= LONG_MAX:
        test["l"] = row.l == int(operand)
    return test, True


def _unequal(operand: Value, row: Any) -> tuple[Test, bool]:
    equal, exact = _equal(operand, row)
    if not exact:
        return _present(row), False
    test = _present(row)
    for column, condition in equal.items():
        # NaN has no number in its column, and is unequal to everything.
        test[column] = and_(test[column], condition.is_not(true()))
    return test, True


def _ordered(op: Content, operand: Value, row: Any) -> Test:
    if isinstance(operand, bool):
        kinds = [
            kind
            for kind, value in (("f", False), ("t", True))
            if _COMPARE[op](value, operand)
        ]  # fmt: skip
        return {"k": row.kind.in_(kinds)} if kinds else {}
    if isinstance(operand, str):
        return {"s": _COMPARE[op](row.s, escape(operand))}
    if not isinstance(operand, int | float) or math.isnan(operand):
        return {}
    test = {"d": _double_bound(op, operand, row.d)}
    long = _long_bound(op, operand, row.l)
    if long is not None:
        test["l"] = long
    return test


def _long_bound(op: Content, operand: float, column: Any) -> Condition | None:
    """Longs against a number: the bound is rounded to the long that decides the same."""
    if math.isinf(operand):
        above = (operand > 0) == (op in (Content.LT, Content.LE))
        return column.is_not(None) if above else None
    bound = math.ceil(operand) if op in (Content.LT, Content.GE) else math.floor(operand)
    if LONG_MIN <= bound <= LONG_MAX:
        return _COMPARE[op](column, bound)  # type: ignore[no-any-return]
    below = bound > LONG_MAX
    holds = below == (op in (Content.LT, Content.LE))
    return column.is_not(None) if holds else None


def _double_bound(op: Content, operand: float, column: Any) -> Condition:
    """Doubles against a number: next to a long that no double equals, strictness changes."""
    near = float(operand)
    if near != operand:
        rounded_up = near > operand
        if op in (Content.LT, Content.LE):
            op = Content.LT if rounded_up else Content.LE
        else:
            op = Content.GE if rounded_up else Content.GT
    return _COMPARE[op](column, near)  # type: ignore[no-any-return]


def _textual(op: Content, operand: str, row: Any, dialect: str) -> tuple[Test, bool]:
    if not operand:
        return {"s": row.s.is_not(None)}, True
    text = escape(operand)
    if op is Content.PREFIX:
        beyond = after_prefix(text)
        reached = row.s >= text
        return {"s": reached if beyond is None else and_(reached, row.s < beyond)}, True
    exact = not is_blurred(operand)
    if op is Content.SUFFIX:
        ending = (
            func.substr(row.s, -len(text)) if dialect == "sqlite" else func.right(row.s, len(text))
        )
        return {"s": ending == text}, exact
    place = func.instr(row.s, text) if dialect == "sqlite" else func.strpos(row.s, text)
    return {"s": place > 0}, exact


_COMPARE: dict[Content, Any] = {
    Content.LT: lambda a, b: a < b,
    Content.LE: lambda a, b: a <= b,
    Content.GT: lambda a, b: a > b,
    Content.GE: lambda a, b: a >= b,
}
