"""FILTER: one attribute of the most recent events, ready to be compared.

Law: a window holds the attribute's value of exactly the ``limit`` latest events of
its node, those without the attribute keeping their place. ``Values.any`` says
whether ``x op v`` for some v in it, as ``naive.value_holds`` would. Cost of an event
that enters or leaves: O(log) and one update of each comparison in use. Cost of a
question: a dict probe for ``=``, ``!=`` and ``any``, the two ends of a sorted list
for an ordering, a probe per prefix or suffix of x; the other operators ask each
distinct value.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from kbn.matching.content import NUMBER, STRING, content_holds, is_nan, type_class
from kbn.matching.index.equality import equals_nothing, value_key
from kbn.matching.naive import value_holds
from kbn.matching.world import Knowledge
from kbn.model.operators import ORDERINGS, BagOp, Content, Related, Semantic
from kbn.model.values import Value, identity
from kbn.temporal.ordered import Ordered

Compared = Content | Semantic | Related | BagOp

_BOOL = "bool"
_SORTED = (NUMBER, STRING)


class Values:
    """A multiset of values; comparisons that need more than it are prepared on demand."""

    __slots__ = ("_equal", "_ordered", "_size", "distinct")

    def __init__(self) -> None:
        #: By identity: the value, and how often it is there.
        self.distinct: dict[Hashable, tuple[Value, int]] = {}
        self._size = 0
        self._equal: dict[Hashable, int] | None = None
        self._ordered: dict[str, Ordered] | None = None

    def add(self, value: Value) -> None:
        self._size += 1
        key = identity(value)
        held = self.distinct.get(key)
        self.distinct[key] = (value, 1 if held is None else held[1] + 1)
        if self._equal is not None:
            self._count(value, 1)
        if self._ordered is not None:
            kind = type_class(value)
            if kind in self._ordered and not is_nan(value):
                self._ordered[kind].add(value)

    def remove(self, value: Value) -> None:
        self._size -= 1
        key = identity(value)
        held, count = self.distinct[key]
        if count > 1:
            self.distinct[key] = (held, count - 1)
        else:
            del self.distinct[key]
        if self._equal is not None:
            self._count(value, -1)
        if self._ordered is not None:
            kind = type_class(value)
            if kind in self._ordered and not is_nan(value):
                self._ordered[kind].remove(value)

    def any(self, op: Compared, x: Value, knowledge: Knowledge) -> bool:
        """Whether ``x op v`` for some v."""
        if not self._size:
            return False
        if op is Content.EQ or op is Content.NE:
            if self._equal is None:
                self._prepare_equal()
            assert self._equal is not None
            same = 0 if equals_nothing(x) else self._equal.get(value_key(x), 0)
            return same > 0 if op is Content.EQ else same < self._size
        if op is Content.ANY:
            return True
        if isinstance(op, Content):
            if op in ORDERINGS:
                return self._any_ordered(op, x)
            if op is not Content.CONTAINS and isinstance(x, str) and len(x) < len(self.distinct):
                return self._any_affix(op, x)
            return any(content_holds(op, x, value) for value, _ in self.distinct.values())
        return any(value_holds(op, x, value, knowledge) for value, _ in self.distinct.values())

    def _any_ordered(self, op: Content, x: Value) -> bool:
        kind = type_class(x)
        if kind == _BOOL:
            return any(content_holds(op, x, value) for value, _ in self.distinct.values())
        if kind not in _SORTED or is_nan(x):
            return False
        if self._ordered is None:
            self._ordered = {name: Ordered() for name in _SORTED}
            for value, count in self.distinct.values():
                held = self._ordered.get(type_class(value))
                if held is not None and not is_nan(value):
                    for _ in range(count):
                        held.add(value)
        held = self._ordered[kind]
        extreme: Any = held.last() if op in (Content.LT, Content.LE) else held.first()
        return extreme is not None and content_holds(op, x, extreme)

    def _any_affix(self, op: Content, x: str) -> bool:
        if op is Content.PREFIX:
            return any(x[:end] in self.distinct for end in range(len(x) + 1))
        return any(x[start:] in self.distinct for start in range(len(x) + 1))

    def _prepare_equal(self) -> None:
        self._equal = {}
        for value, count in self.distinct.values():
            self._count(value, count)

    def _count(self, value: Value, change: int) -> None:
        assert self._equal is not None
        if equals_nothing(value):
            return
        key = value_key(value)
        count = self._equal.get(key, 0) + change
        if count:
            self._equal[key] = count
        else:
            del self._equal[key]


#: (moment, first publication, event id): where an event stands among the others.
Place = tuple[int, int, str]


class Window:
    """The ``limit`` latest of a node's events, by one attribute.

    ``low`` is the place of the earliest event inside; None while all are inside.
    """

    __slots__ = ("attribute", "limit", "low", "users", "values")

    def __init__(self, attribute: str, limit: int) -> None:
        self.attribute = attribute
        self.limit = limit
        self.low: Place | None = None
        self.users = 0
        self.values = Values()
