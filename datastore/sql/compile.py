"""Filters as SQLAlchemy expressions over the projection.

Law: the expression holds of every event that the filter matches; if the result says
``exact``, of no others. What the engine cannot decide is left out or widened, and the
caller asks ``naive`` again. Nothing is pasted into SQL: values are parameters, names
are columns.

Constraints on one name that look at its value alone are one condition on one row.
The most selective name is searched through its value index, the others are looked up
per event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, exists, false, literal, not_, or_, select, true, union
from sqlalchemy.sql import Select

from datastore.classes import OPEN
from datastore.query import Order, Query, Spelling, Window
from datastore.sql import tables
from datastore.sql.exact import SEARCHED, Condition, Test, any_of, both, value_test
from datastore.sql.text import escape
from kbn.matching.content import equality_key, is_nan
from kbn.model.filters import Constraint, Filter
from kbn.model.operators import BagKind, BagOp, Content, Related, Semantic
from kbn.model.time import END_TIME, START_TIME, TIME_MAX, TIME_MIN
from kbn.model.values import Bag, Scalar, members_of

_A = tables.publication_attributes
_P = tables.publications


class Compiled(NamedTuple):
    """A select of ``first_seq`` in the query's order."""

    statement: Select[Any]
    exact: bool
    #: The constraints the engine decides, wholly or in part; and those it knows nothing of.
    pushed: tuple[Constraint, ...]
    left: tuple[Constraint, ...]


class _Part(NamedTuple):
    """The condition on an event for some constraints; ``search`` if an index finds it."""

    condition: Condition
    exact: bool
    search: Condition | None = None
    rank: int = 9


def compile_query(
    query: Query, names: frozenset[str], dialect: str, from_seq: int | None = None
) -> Compiled:
    """The statement that finds the candidates, given which names have rows.

    ``from_seq`` is the first entry that arrived within the window, if that is known: an
    event heard of since then has its last entry there or later.
    """
    compiler = _Compiler(names, dialect, query.spelling)
    alternatives = [compiler.filter(f) for f in query.asked]
    statement = select(_P.c.first_seq).where(*_window(query.window))
    if from_seq is not None:
        # As a set of its own, or the planner would walk all events in the order asked for.
        late = _P.alias()
        heard = select(late.c.first_seq).where(late.c.last_seq >= from_seq)
        statement = statement.where(_P.c.first_seq.in_(heard))
    if len(alternatives) == 1:
        statement = statement.where(*alternatives[0])
    elif all(alternatives):
        found = [select(_P.c.first_seq).where(*conditions) for conditions in alternatives]
        statement = statement.where(_P.c.first_seq.in_(union(*found)))
    exact = not compiler.left and not compiler.widened
    statement = statement.order_by(*_order(query.order))
    if exact and query.limit is not None:
        statement = statement.limit(query.limit)
    return Compiled(statement, exact, tuple(compiler.pushed), tuple(compiler.left))


class _Compiler:
    def __init__(self, names: frozenset[str], dialect: str, spelling: Spelling | None) -> None:
        self.names = names
        self.dialect = dialect
        self.spelling = spelling
        self.pushed: list[Constraint] = []
        self.left: list[Constraint] = []
        self.widened = False

    def filter(self, asked: Filter) -> list[Condition]:
        """Conditions on an event's row, all of which a match fulfils."""
        parts: list[_Part] = []
        plain: dict[str, list[Constraint]] = {}
        for constraint in asked:
            if constraint.name in self.names and isinstance(constraint.op, Content):
                plain.setdefault(constraint.name, []).append(constraint)
                self.pushed.append(constraint)
                continue
            part = self._other(constraint)
            (self.left if part is None else self.pushed).append(constraint)
            if part is not None:
                parts.append(part)
        parts += [self._values(name, held) for name, held in plain.items()]
        self.widened = self.widened or not all(part.exact for part in parts)
        searched = min(
            (part for part in parts if part.search is not None),
            key=lambda part: part.rank,
            default=None,
        )
        return [
            part.search if part is searched and part.search is not None else part.condition
            for part in parts
        ]

    def _values(self, name: str, constraints: Sequence[Constraint]) -> _Part:
        """All content constraints on one name: one condition on its row."""
        row = _A.alias()
        test: Test | None = None
        exact = True
        for constraint in constraints:
            one, sure = value_test(_content(constraint), constraint.value, row.c, self.dialect)
            test = one if test is None else both(test, one)
            exact = exact and sure
        assert test is not None
        if not test:
            return _Part(false(), True)
        here = and_(row.c.name == escape(name), row.c.member == -1)
        return _Part(
            _exists(row, here, any_of(test)),
            exact,
            *_searched(row, here, test, min(_RANKS[_content(c)] for c in constraints)),
        )

    def _other(self, constraint: Constraint) -> _Part | None:
        """What is no content operator on an indexed name; None: nothing can be said."""
        op, name = constraint.op, constraint.name
        if isinstance(op, Content):
            return _time(constraint)
        if name not in self.names:
            return None
        if isinstance(op, Semantic | Related):
            return self._semantic(constraint, op)
        assert isinstance(op, BagOp)
        return self._bag(name, op, members_of(constraint.value))

    def _semantic(self, constraint: Constraint, op: Semantic | Related) -> _Part | None:
        operand = constraint.value
        if isinstance(operand, Bag):
            return _Part(false(), True)  # a bag is no term
        words = None if self.spelling is None else self.spelling.spellings(op, operand)
        if words is None:
            return None
        row = _A.alias()
        here = and_(row.c.name == escape(constraint.name), row.c.member == -1)
        test: Test = {"s": row.c.s.in_(sorted(map(escape, words)))}
        return _Part(_exists(row, here, any_of(test)), True, *_searched(row, here, test, 1))

    def _bag(self, name: str, op: BagOp, targets: tuple[Scalar, ...]) -> _Part | None:
        """The pairing itself is naive's; each member must at least have some partner."""
        sub = op.sub or Content.EQ
        if not isinstance(sub, Content):
            return None
        row, other = _A.alias(), _A.alias()
        here = row.c.name == escape(name)
        # A plain value is a bag of one; a bag's own row is not among its members.
        member = and_(other.c.name == escape(name), other.c.kind != "b")
        present = _exists(row, here, row.c.member == -1)
        conditions: list[Condition] = []
        sure = True
        if op.kind is not BagKind.SUBBAG:
            for target in targets:
                test, exact = value_test(sub, target, other.c, self.dialect)
                sure = sure and exact
                conditions.append(_exists(other, member, any_of(test)))
        if op.kind is BagKind.SUPERBAG:
            if not conditions:
                return _Part(present, True)
            distinct = {equality_key(t) for t in targets if not is_nan(t)}
            paired = len(targets) == 1 or (
                sub is Content.EQ and len(distinct) == len(targets)
            )  # fmt: skip
            test, _ = value_test(sub, targets[0], other.c, self.dialect)
            search, rank = _searched(other, member, test, 2)
            if search is not None:
                search = and_(search, *conditions[1:])
            return _Part(and_(*conditions), sure and paired, search, rank)
        either = [any_of(value_test(sub, t, other.c, self.dialect)[0]) for t in targets]
        lonely = _exists(other, member, or_(false(), *either).is_not(true()))
        return _Part(and_(present, not_(lonely), *conditions), False)


#: How well a value index narrows things down, best first.
_RANKS = {
    Content.EQ: 0,
    Content.PREFIX: 3,
    **dict.fromkeys((Content.LT, Content.LE, Content.GT, Content.GE), 4),
    **dict.fromkeys((Content.SUFFIX, Content.CONTAINS, Content.NE, Content.ANY), 8),
}


def _content(constraint: Constraint) -> Content:
    assert isinstance(constraint.op, Content)
    return constraint.op


def _exists(row: Any, *conditions: Condition) -> Condition:
    wanted = select(literal(1)).select_from(row).where(row.c.event == _P.c.first_seq, *conditions)
    return exists(wanted.correlate(_P))


def _searched(row: Any, here: Condition, test: Test, rank: int) -> tuple[Condition | None, int]:
    """Membership in what the value indexes find, one search per column; None: no index helps."""
    if rank >= 8 or not test or not SEARCHED.issuperset(test):
        return None, rank
    found = [select(row.c.event).where(here, condition) for condition in test.values()]
    return _P.c.first_seq.in_(found[0] if len(found) == 1 else union(*found)), rank


def _time(constraint: Constraint) -> _Part | None:
    """A time attribute that an event has equals its column; plain events lack the attribute."""
    column = {START_TIME: _P.c.start_ms, END_TIME: _P.c.end_ms}.get(constraint.name)
    value = constraint.operand
    if column is None or isinstance(value, bool) or not isinstance(value, int):
        return None
    if constraint.op not in _TIMES:
        return None
    bound = _clamped(value)
    return _Part(_TIMES[constraint.op](column, bound), False)


_TIMES: dict[Any, Any] = {
    Content.EQ: lambda column, value: column == value,
    Content.LT: lambda column, value: column < value,
    Content.LE: lambda column, value: column <= value,
    Content.GT: lambda column, value: column > value,
    Content.GE: lambda column, value: column >= value,
}


def _window(window: Window) -> Iterable[ColumnElement[bool]]:
    if window.arrived_from is not None:
        yield _P.c.updated >= window.arrived_from
    if window.arrived_to is not None:
        yield _P.c.inserted < window.arrived_to
    if window.only_open:
        yield _P.c["class"] == OPEN
    box = window.box
    if box.start_min is not None:
        yield _P.c.start_ms >= _clamped(box.start_min)
    if box.start_max is not None:
        yield _P.c.start_ms <= _clamped(box.start_max)
    if box.end_min is not None:
        yield or_(_P.c.end_ms.is_(None), _P.c.end_ms >= _clamped(box.end_min))
    if box.end_max is not None:
        yield _P.c.end_ms <= _clamped(box.end_max)


def _clamped(bound: int) -> int:
    """No event lies outside these years, and no engine takes more than 64 bits."""
    return max(TIME_MIN - 1, min(bound, TIME_MAX + 1))


def _order(order: Order) -> tuple[ColumnElement[Any], ...]:
    place, first = _P.c.place_ms, _P.c.first_seq
    return {
        Order.START: (place.asc(), first.asc()),
        Order.START_DESCENDING: (place.desc(), first.desc()),
        Order.ARRIVAL: (first.asc(),),
        Order.ARRIVAL_DESCENDING: (first.desc(),),
    }[order]
