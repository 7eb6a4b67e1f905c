"""Bounds in two dimensions, tiled: the answer to a pair of values is few slices.

Law: ``collect(x, y, take)`` hands to ``take`` the items of exactly the pairs
(a, b) with ``x op1 a`` and ``y op2 b``. Pairs are distinct.

Tiles partition the pairs by their order; within a tile, pairs lie sorted by the
*second* bound. A tile wholly on the right side of ``x`` answers by one
bisection and a slice; only the one tile that ``x`` cuts is looked through.
Invariant: every pair of tile i lies in ``[lows[i], lows[i + 1])``. Cost of a
query: n / MOST bisections, MOST comparisons, and the slices. Insertion and
removal: O(MOST), a cut or a join O(MOST log MOST).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import compress, repeat
from typing import Any

from kbn.matching.index.sorted_bounds import COMPARE, SEARCH, UPPER, Take
from kbn.model.operators import Content

#: A tile is cut in two above this, and joined to its neighbour below an eighth.
MOST = 256

Pair = tuple[Any, Any]


class _Tile:
    """Three columns of one length, sorted by ``seconds``."""

    __slots__ = ("firsts", "items", "seconds")

    def __init__(self, rows: list[tuple[Any, Any, Any]]) -> None:
        rows.sort(key=_second)
        self.firsts = [first for first, _, _ in rows]
        self.seconds = [second for _, second, _ in rows]
        self.items = [item for _, _, item in rows]

    def rows(self) -> list[tuple[Any, Any, Any]]:
        return list(zip(self.firsts, self.seconds, self.items, strict=True))


class Tiles:
    """Items by a pair of bounds, under two orderings."""

    __slots__ = ("_compare", "_firsts", "_lows", "_search", "_then", "_tiles", "_upper", "_upper2")

    def __init__(self, first: Content, second: Content) -> None:
        self._search, self._then = SEARCH[first], SEARCH[second]
        self._upper, self._upper2 = first in UPPER, second in UPPER
        self._compare = COMPARE[first]
        self._lows: list[Pair] = []
        self._firsts: list[Any] = []  # the first halves of ``lows``, for searching by value
        self._tiles: list[_Tile] = []

    def insert(self, pair: Pair, item: Any) -> None:
        """Add an item under a pair that is not there yet."""
        first, second = pair
        if not self._tiles:
            self._lows, self._firsts = [pair], [first]
            self._tiles = [_Tile([(first, second, item)])]
            return
        at = max(bisect_right(self._lows, pair) - 1, 0)
        tile = self._tiles[at]
        place = bisect_right(tile.seconds, second)
        tile.firsts.insert(place, first)
        tile.seconds.insert(place, second)
        tile.items.insert(place, item)
        if pair < self._lows[at]:
            self._lows[at], self._firsts[at] = pair, first
        if len(tile.items) > MOST:
            self._cut(at)

    def remove(self, pair: Pair) -> None:
        """Take away the item under a pair that is there."""
        first, second = pair
        at = bisect_right(self._lows, pair) - 1
        tile = self._tiles[at]
        place = tile.firsts.index(first, bisect_left(tile.seconds, second))
        del tile.firsts[place], tile.seconds[place], tile.items[place]
        if not tile.items:
            del self._lows[at], self._firsts[at], self._tiles[at]
        elif len(tile.items) < MOST // 8 and len(self._tiles) > 1:
            self._join(max(at, 1))

    def collect(self, x: Any, y: Any, take: Take) -> None:
        """Hand over the items whose pair holds for ``x`` and ``y``, in slices."""
        cut = self._search(self._firsts, x) - 1
        if cut >= 0:
            tile = self._tiles[cut]
            place = self._then(tile.seconds, y)
            if self._upper2:
                items, firsts = tile.items[place:], tile.firsts[place:]
            else:
                items, firsts = tile.items[:place], tile.firsts[:place]
            if items:
                take(compress(items, map(self._compare, repeat(x), firsts)))
        elif not self._upper:
            return
        for tile in self._tiles[cut + 1 :] if self._upper else self._tiles[:cut]:
            place = self._then(tile.seconds, y)
            take(tile.items[place:] if self._upper2 else tile.items[:place])

    def _cut(self, at: int) -> None:
        rows = self._tiles[at].rows()
        rows.sort(key=_pair)
        half = len(rows) // 2
        middle = _pair(rows[half])
        self._lows.insert(at + 1, middle)
        self._firsts.insert(at + 1, middle[0])
        self._tiles[at : at + 1] = [_Tile(rows[:half]), _Tile(rows[half:])]

    def _join(self, at: int) -> None:
        """Merge tile ``at`` into the one before it."""
        rows = self._tiles[at - 1].rows() + self._tiles[at].rows()
        self._tiles[at - 1] = _Tile(rows)
        del self._lows[at], self._firsts[at], self._tiles[at]
        if len(rows) > MOST:
            self._cut(at - 1)


def _second(row: tuple[Any, Any, Any]) -> Any:
    return row[1]


def _pair(row: tuple[Any, Any, Any]) -> Pair:
    return row[:2]
