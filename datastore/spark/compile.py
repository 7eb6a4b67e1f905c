"""Filters as Spark columns over the log or over merged events.

Law: the column is true of every row that the filter matches; if the result says
``exact``, of no others: of those it is false or null. Temporal constraints are widened to
the presence of their attribute. Spark says ``9007199254740993L = 9007199254740992.0D`` and
``NaN > 5``: so a long is compared with a long and a double with a double, with bounds worked
out here, and NaN is looked for. Text compares by its bytes in UTF-8, that is by code point.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as f

from datastore.query import Spelling
from datastore.spark.project import Cells
from kbn.model.filters import Constraint, Filter, Subscription
from kbn.model.operators import (
    ORDERINGS,
    BagKind,
    BagOp,
    Content,
    Related,
    Semantic,
    is_temporal,
)
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME
from kbn.model.values import LONG_MAX, LONG_MIN, Bag, Scalar, Value, members_of

_COMPARE: dict[Content, Any] = {
    Content.LT: operator.lt,
    Content.LE: operator.le,
    Content.GT: operator.gt,
    Content.GE: operator.ge,
}
_KINDS = ("b", "l", "d", "s")


class Compiled(NamedTuple):
    """A condition on a row, and whether it is the whole filter. None: every row."""

    condition: Column | None
    exact: bool


class _Head(Cells):
    """A temporal attribute, read from the columns of the entry; plain ones lack it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._plain = f.col("part") == "PLAIN"

    def kind(self, kind: str) -> Column:
        if kind == "l" and self.name in (START_TIME, END_TIME):
            column = "start_ms" if self.name == START_TIME else "end_ms"
            return f.when(~self._plain, f.col(column))
        if kind == "s" and self.name == PUB_ID:
            return f.when(~self._plain, f.col("uid"))
        return f.lit(None)

    @property
    def bag(self) -> Column:
        return f.lit(None)

    @property
    def null(self) -> Column:
        return f.lit(False)


class _Seen(_Head):
    """``KBN_PUB_TYPE``: which parts of the event have been seen, by the name of the part."""

    @property
    def bag(self) -> Column:
        return f.when(~self._plain, f.lit(True))


def heads() -> dict[str, Cells]:
    """The temporal attributes, as ``narrow`` leaves them out."""
    held: dict[str, Cells] = {name: _Head(name) for name in (PUB_ID, START_TIME, END_TIME)}
    return {**held, PUB_TYPE: _Seen(PUB_TYPE)}


def compile_subscription(
    asked: Subscription, held: Mapping[str, Cells], spelling: Spelling | None = None
) -> Compiled:
    """The condition for any of the alternatives."""
    made = [compile_filter(one, held, spelling) for one in asked]
    conditions = [one.condition for one in made]
    exact = all(one.exact for one in made)
    if any(condition is None for condition in conditions):
        return Compiled(None, exact)
    return Compiled(_any(c for c in conditions if c is not None), exact)


def compile_filter(
    asked: Filter, held: Mapping[str, Cells], spelling: Spelling | None = None
) -> Compiled:
    """The condition for all of the constraints."""
    made = [_constraint(one, held[one.name], spelling) for one in asked]
    conditions = [one.condition for one in made if one.condition is not None]
    exact = all(one.exact for one in made)
    return Compiled(reduce(operator.and_, conditions) if conditions else None, exact)


def _constraint(asked: Constraint, cells: Cells, spelling: Spelling | None) -> Compiled:
    op = asked.op
    if is_temporal(op):
        return Compiled(_present(cells), False)
    value = asked.value
    if isinstance(op, Content):
        return _content(op, value, cells)
    if isinstance(op, Semantic | Related):
        return _semantic(op, value, cells, spelling)
    assert isinstance(op, BagOp)
    return _bag(op, members_of(value), cells)


def _content(op: Content, value: Value, cells: Cells) -> Compiled:
    if op is Content.ANY:
        return Compiled(_present(cells), True)
    if op is Content.NE:
        if isinstance(value, Bag):
            return Compiled(_present(cells), False)
        equal = f.coalesce(_any(_tests(Content.EQ, value, cells)), f.lit(False))
        return Compiled(_present(cells) & ~equal, True)
    if isinstance(value, Bag):
        # Multiset equality is the matcher's; only bags can have it.
        return Compiled(cells.bag.isNotNull() if op is Content.EQ else f.lit(False), False)
    return Compiled(_any(_tests(op, value, cells)), True)


def _tests(op: Content, value: Scalar, cells: Cells) -> list[Column]:
    """Conditions, each on the column of one kind, one of which a match fulfils."""
    made = {
        kind: test(cells.kind(kind)) for kind, test in scalar_tests(op, value).items()
    }  # fmt: skip
    if op is Content.EQ and value is None:
        return [cells.null]
    return list(made.values())


def scalar_tests(op: Content, value: Scalar) -> dict[str, Any]:
    """By kind: the test of ``op value`` on a column of that kind. Never on null."""
    if op is Content.EQ:
        return _equal(value)
    if op in ORDERINGS:
        return _ordered(op, value)
    if not isinstance(value, str):
        return {}
    return {"s": lambda c: _TEXTUAL[op](c, f.lit(value))}


_TEXTUAL: dict[Content, Any] = {
    Content.PREFIX: f.startswith,
    Content.SUFFIX: f.endswith,
    Content.CONTAINS: f.contains,
}


def _equal(value: Scalar) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"b": lambda c: c == value}
    if isinstance(value, str):
        return {"s": lambda c: c == f.lit(value)}
    tests: dict[str, Any] = {}
    if isinstance(value, int):
        tests["l"] = lambda c: c == _long(value)
        if float(value) == value:
            tests["d"] = lambda c: c == f.lit(float(value))
        return tests
    if math.isnan(value):
        return {}
    tests["d"] = lambda c: c == f.lit(value)
    if value.is_integer() and LONG_MIN <= value <= LONG_MAX:
        tests["l"] = lambda c: c == _long(int(value))
    return tests


def _ordered(op: Content, value: Scalar) -> dict[str, Any]:
    compare = _COMPARE[op]
    if isinstance(value, bool):
        return {"b": lambda c: compare(c, f.lit(value))}
    if isinstance(value, str):
        return {"s": lambda c: compare(c, f.lit(value))}
    if value is None or math.isnan(value):
        return {}
    tests: dict[str, Any] = {"d": _double_bound(op, value)}
    long = _long_bound(op, value)
    if long is not None:
        tests["l"] = long
    return tests


def _long_bound(op: Content, value: float) -> Any:
    """Longs against a number: the bound is rounded to the long that decides the same."""
    if math.isinf(value):
        return _is_there if (value > 0) == (op in (Content.LT, Content.LE)) else None
    bound = math.ceil(value) if op in (Content.LT, Content.GE) else math.floor(value)
    if LONG_MIN <= bound <= LONG_MAX:
        return lambda c: _COMPARE[op](c, _long(bound))
    return _is_there if (bound > LONG_MAX) == (op in (Content.LT, Content.LE)) else None


def _double_bound(op: Content, value: float) -> Any:
    """Doubles against a number: next to a long that no double equals, strictness changes."""
    near = float(value)
    if near != value:
        rounded_up = near > value
        if op in (Content.LT, Content.LE):
            op = Content.LT if rounded_up else Content.LE
        else:
            op = Content.GE if rounded_up else Content.GT
    # Spark holds NaN to be greater than every number.
    if op in (Content.GT, Content.GE):
        return lambda c: _COMPARE[op](c, f.lit(near)) & ~f.isnan(c)
    return lambda c: _COMPARE[op](c, f.lit(near))


def _is_there(column: Column) -> Column:
    return column.isNotNull()


def _long(value: int) -> Column:
    # A Python int that fits in 32 bits would become one, and the column be cast instead.
    return f.lit(value).cast("long")


def _semantic(
    op: Semantic | Related, value: Value, cells: Cells, spelling: Spelling | None
) -> Compiled:
    if isinstance(value, Bag):
        return Compiled(f.lit(False), True)  # a bag is no term
    words = None if spelling is None else spelling.spellings(op, value)
    if words is None:
        return Compiled(_present(cells), False)
    return Compiled(_any([cells.kind("s").isin(sorted(words))]), True)


def _bag(op: BagOp, targets: tuple[Scalar, ...], cells: Cells) -> Compiled:
    """The pairing itself is the matcher's; what must be used up needs at least a partner."""
    sub = op.sub or Content.EQ
    if isinstance(cells, _Seen):
        return _seen(op, targets, cells)
    if not isinstance(sub, Content) or sub in (Content.NE, Content.ANY):
        return Compiled(_present(cells), False)
    if op.kind is BagKind.SUBBAG or not targets:
        return Compiled(_present(cells), False)
    conditions = []
    for target in targets:
        tests = scalar_tests(sub, target)
        either = _tests(sub, target, cells)
        if not isinstance(cells, _Head):
            either.append(f.exists(cells.bag, _member_test(sub, target, tests)))
        conditions.append(_any(either))
    return Compiled(reduce(operator.and_, conditions), False)


def _member_test(sub: Content, target: Scalar, tests: Mapping[str, Any]) -> Any:
    if sub is Content.EQ and target is None:
        return lambda m: reduce(operator.and_, [m[kind].isNull() for kind in _KINDS])
    return lambda m: _any(test(m[kind]) for kind, test in tests.items())


def _seen(op: BagOp, targets: tuple[Scalar, ...], cells: Cells) -> Compiled:
    """``KBN_PUB_TYPE superbag [START]`` and the like, by the part that tells it."""
    if op.kind is BagKind.SUPERBAG and op.sub is None and len(targets) == 1:
        (target,) = targets
        parts = {
            "START": ("START", "INSTANT", "BOTH"),
            "END": ("END", "INSTANT", "BOTH"),
            "INSTANT": ("INSTANT",),
        }.get(target if isinstance(target, str) else "", ())
        return Compiled(f.col("part").isin(*parts) if parts else f.lit(False), True)
    return Compiled(_present(cells), False)


def _present(cells: Cells) -> Column:
    if isinstance(cells, _Head) and cells.name in (PUB_ID, PUB_TYPE):
        return f.col("part") != "PLAIN"
    there = [cells.kind(kind).isNotNull() for kind in _KINDS]
    return _any([*there, cells.null, cells.bag.isNotNull()])


def _any(conditions: Iterable[Column]) -> Column:
    """True if one of them is; otherwise false, or null where a value is missing. Left bare,
    since what is wrapped is pushed down into no file."""
    held = list(conditions)
    return reduce(operator.or_, held) if held else f.lit(False)
