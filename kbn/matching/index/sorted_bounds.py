"""Bounds in one dimension, sorted: the answer to a value is a slice.

Law: ``collect(x, take)`` hands to ``take`` the items of exactly the bounds b
with ``x op b``. Bounds are distinct and of one type class.

The list is cut into blocks, so that an insertion moves a few hundred items and
not all. Invariant: every bound of block i lies in ``[lows[i], lows[i + 1])``.
Cost: two bisections and a slice per query, plus one call per whole block.
Insertion and removal: two bisections, O(block).
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import Any

from kbn.model.operators import Content

#: A block is cut in two above this, and joined to its neighbour below an eighth.
MOST = 512

Take = Callable[[Iterable[Any]], object]

#: Where the bounds that hold for a value begin (upper bounds) or end (lower ones).
SEARCH: dict[Content, Callable[[list[Any], Any], int]] = {
    Content.LT: bisect_right,
    Content.LE: bisect_left,
    Content.GT: bisect_left,
    Content.GE: bisect_right,
}
#: A value against a bound.
COMPARE: dict[Content, Callable[[Any, Any], bool]] = {
    Content.LT: operator.lt,
    Content.LE: operator.le,
    Content.GT: operator.gt,
    Content.GE: operator.ge,
}
UPPER = frozenset({Content.LT, Content.LE})


class SortedBounds:
    """Items by bound, under one ordering."""

    __slots__ = ("_bounds", "_items", "_lows", "_search", "_upper")

    def __init__(self, op: Content) -> None:
        self._search = SEARCH[op]
        self._upper = op in UPPER
        self._lows: list[Any] = []
        self._bounds: list[list[Any]] = []
        self._items: list[list[Any]] = []

    def insert(self, bound: Any, item: Any) -> None:
        """Add an item under a bound that is not there yet."""
        if not self._lows:
            self._lows, self._bounds, self._items = [bound], [[bound]], [[item]]
            return
        at = max(bisect_right(self._lows, bound) - 1, 0)
        bounds = self._bounds[at]
        place = bisect_right(bounds, bound)
        bounds.insert(place, bound)
        self._items[at].insert(place, item)
        self._lows[at] = min(self._lows[at], bound)
        if len(bounds) > MOST:
            self._cut(at)

    def remove(self, bound: Any) -> None:
        """Take away the item under a bound that is there."""
        at = bisect_right(self._lows, bound) - 1
        bounds = self._bounds[at]
        place = bisect_left(bounds, bound)
        del bounds[place], self._items[at][place]
        if not bounds:
            del self._lows[at], self._bounds[at], self._items[at]
        elif len(bounds) < MOST // 8 and len(self._lows) > 1:
            self._join(max(at, 1))

    def collect(self, x: Any, take: Take) -> None:
        """Hand over the items whose bound holds for ``x``, in slices."""
        cut = self._search(self._lows, x) - 1
        if self._upper:
            if cut >= 0:
                take(self._items[cut][self._search(self._bounds[cut], x) :])
            for items in self._items[cut + 1 :]:
                take(items)
        elif cut >= 0:
            take(self._items[cut][: self._search(self._bounds[cut], x)])
            for items in self._items[:cut]:
                take(items)

    def _cut(self, at: int) -> None:
        bounds, items = self._bounds[at], self._items[at]
        half = len(bounds) // 2
        self._lows.insert(at + 1, bounds[half])
        self._bounds[at : at + 1] = [bounds[:half], bounds[half:]]
        self._items[at : at + 1] = [items[:half], items[half:]]

    def _join(self, at: int) -> None:
        """Append block ``at`` to the one before it."""
        self._bounds[at - 1] += self._bounds[at]
        self._items[at - 1] += self._items[at]
        del self._lows[at], self._bounds[at], self._items[at]
        if len(self._bounds[at - 1]) > MOST:
            self._cut(at - 1)
