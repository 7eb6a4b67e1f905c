"""Filters by what they say, so that covering asks few of them: who covers g, whom does g cover?

Law: ``coverers(facts)`` are exactly the entries whose filter covers whatever has
the facts, ``covered(asked, facts)`` exactly those that ``asked`` covers; every
candidate is put to the relation itself, so a look-up can miss, never invent.

*Upwards* each entry waits behind one *door*, something that must be true of all
it can cover: a single value of one name, a cell of a grid around a numeric
interval, the beginning of a string, a side on which an interval is bounded, or
at least a name. A filter knocks at all doors that are true of itself. *Downwards*
an entry that ``asked`` covers lies inside it name by name, so any one name of
``asked`` gives candidates: the entries fixed to that value, or a slice of those
sorted by their bounds. The rarest name is taken.

Cost: a few dictionary look-ups, then one covering for each candidate; insertion
and removal two bisections for each bounded name. Many incomparable filters with
one-sided bounds on the same names share a door and are asked one by one.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeAlias, TypeVar

from kbn.covering.filters import Facts, facts_imply
from kbn.covering.region import Region, common_prefix
from kbn.covering.semantic import TermOrder
from kbn.matching.content import NUMBER, STRING, equality_key
from kbn.model.filters import Filter
from kbn.model.values import Bag, Value

K = TypeVar("K", bound=Hashable)

Door: TypeAlias = tuple[Hashable, ...]
#: A level and a shift: the grids of cells of width 2**level, one moved by half a cell.
Grid: TypeAlias = tuple[int, float]

_ALWAYS: Door = ()
_SHIFTS = (0.0, 0.5)


class Entry(Generic[K]):
    """A filter of the index under its key."""

    __slots__ = ("asked", "door", "facts", "key", "number")

    def __init__(self, key: K, asked: Filter, facts: Facts, number: int) -> None:
        self.key = key
        self.asked = asked
        self.facts = facts
        self.number = number
        self.door: Door = _ALWAYS


class Postings(Generic[K]):
    """The entries that say something about one name."""

    __slots__ = ("all", "grids", "highs", "lengths", "lows", "points")

    def __init__(self) -> None:
        self.all: dict[int, Entry[K]] = {}
        #: Those fixed to a single value, by that value.
        self.points: dict[Hashable, dict[int, Entry[K]]] = {}
        #: Those with a lower bound and those with an upper one, sorted, by type class.
        self.lows: dict[str, list[tuple[Any, int]]] = {}
        self.highs: dict[str, list[tuple[Any, int]]] = {}
        #: How many doors there are of each grid, and of each length of a prefix.
        self.grids: Counter[Grid] = Counter()
        self.lengths: Counter[int] = Counter()


class CoverIndex(Generic[K]):
    """Filters that are not contradictory, each under a key of its own."""

    def __init__(self) -> None:
        self._entries: dict[K, Entry[K]] = {}
        self._names: dict[str, Postings[K]] = {}
        #: Entries by door, and there by the names that they constrain.
        self._doors: dict[Door, dict[frozenset[str], dict[K, Entry[K]]]] = {}
        #: How many entries wait behind each door.
        self._behind: Counter[Door] = Counter()
        self._next = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def add(self, key: K, asked: Filter, facts: Facts) -> None:
        """File a filter that is not contradictory under a key that is new."""
        entry = Entry(key, asked, facts, self._next)
        self._next += 1
        self._entries[key] = entry
        for name, held in facts.names.items():
            postings = self._names.setdefault(name, Postings())
            postings.all[entry.number] = entry
            region = held.region
            if region.single:
                point = _point_key(region.point)
                postings.points.setdefault(point, {})[entry.number] = entry
            low, high = _bounds(region)
            if low is not None:
                insort(postings.lows.setdefault(str(region.kind), []), (low, entry.number))
            if high is not None:
                insort(postings.highs.setdefault(str(region.kind), []), (high, entry.number))
        entry.door = self._choose(facts)
        self._count_door(entry.door, 1)
        groups = self._doors.setdefault(entry.door, {})
        groups.setdefault(frozenset(facts.names), {})[key] = entry

    def remove(self, key: K) -> None:
        """Take away the filter under a key that is there."""
        entry = self._entries.pop(key)
        names = frozenset(entry.facts.names)
        groups = self._doors[entry.door]
        del groups[names][key]
        if not groups[names]:
            del groups[names]
        if not groups:
            del self._doors[entry.door]
        self._count_door(entry.door, -1)
        for name, held in entry.facts.names.items():
            postings = self._names[name]
            del postings.all[entry.number]
            if not postings.all:
                del self._names[name]
                continue
            region = held.region
            if region.single:
                point = _point_key(region.point)
                del postings.points[point][entry.number]
                if not postings.points[point]:
                    del postings.points[point]
            low, high = _bounds(region)
            if low is not None:
                _take(postings.lows[str(region.kind)], (low, entry.number))
            if high is not None:
                _take(postings.highs[str(region.kind)], (high, entry.number))

    def coverers(self, facts: Facts, order: TermOrder | None = None) -> Iterator[K]:
        """The keys of the filters that cover whatever has these facts."""
        names = facts.names.keys()
        for door in self._knocked(facts):
            for wanted, entries in self._doors.get(door, {}).items():
                if wanted <= names:
                    for key, entry in entries.items():
                        if facts_imply(facts, entry.asked, order):
                            yield key

    def covered(self, asked: Filter, facts: Facts, order: TermOrder | None = None) -> Iterator[K]:
        """The keys of the filters that ``asked``, whose facts these are, covers."""
        for entry in self._inside(facts):
            if facts_imply(entry.facts, asked, order):
                yield entry.key

    # Upwards: doors

    def _choose(self, facts: Facts) -> Door:
        """The most telling door of a filter; of several such, the one with the fewest behind."""
        best, best_rank = _ALWAYS, (math.inf, 0)
        for name, held in facts.names.items():
            for door, order in _doors_of(name, held.region):
                rank = (order, self._behind[door])
                if rank < best_rank:
                    best, best_rank = door, rank
        return best

    def _count_door(self, door: Door, by: int) -> None:
        """Remember which grids and lengths occur, so that only those are tried."""
        _count(self._behind, door, by)
        if len(door) < 3:
            return
        counted = self._names[str(door[0])]
        if door[1] == "cell":
            _count(counted.grids, door[2], by)
        elif door[1] == "prefix":
            _count(counted.lengths, len(str(door[2])), by)

    def _knocked(self, facts: Facts) -> Iterator[Door]:
        """Every door behind which a filter that covers these facts may wait."""
        yield _ALWAYS
        for name, held in facts.names.items():
            postings = self._names.get(name)
            if postings is None:
                continue
            yield (name,)
            region = held.region
            if region.single:
                yield (name, "point", _point_key(region.point))
            low, high = _bounds(region)
            if low is not None:
                yield (name, "above", region.kind)
            if high is not None:
                yield (name, "below", region.kind)
            if region.kind == STRING:
                beginning = _beginning(region)
                for length in postings.lengths:
                    if length <= len(beginning):
                        yield (name, "prefix", beginning[:length])
            elif region.kind == NUMBER and low is not None and high is not None:
                for grid in postings.grids:
                    yield (name, "cell", grid, _cell(low, grid))

    # Downwards: what lies inside

    def _inside(self, facts: Facts) -> list[Entry[K]]:
        """Candidates from the name of which fewest lie inside; all for the empty filter."""
        best: list[int] | dict[int, Entry[K]] | None = None
        for name, held in facts.names.items():
            postings = self._names.get(name)
            if postings is None:
                return []
            found = _within(postings, held.region)
            if best is None or len(found) < len(best):
                best, of_best = found, postings
        if best is None:
            return list(self._entries.values())
        if isinstance(best, dict):
            return list(best.values())
        return [of_best.all[number] for number in best]


def _within(postings: Postings[K], region: Region) -> list[int] | dict[int, Entry[K]]:
    """The entries whose region may lie inside this one."""
    if region.single:
        return postings.points.get(_point_key(region.point), {})
    low, high = _bounds(region)
    kind = str(region.kind)
    if low is not None:
        lows = postings.lows.get(kind, [])
        end = len(lows) if high is None else bisect_right(lows, (high, math.inf))
        found = lows[bisect_left(lows, (low, -1)) : end]
    elif high is not None:
        highs = postings.highs.get(kind, [])
        found = highs[: bisect_right(highs, (high, math.inf))]
    else:
        return postings.all
    return [number for _, number in found]


def _bounds(region: Region) -> tuple[Any, Any]:
    """The ends of an interval of numbers or strings; None where it has none."""
    kind = region.kind
    if kind not in (NUMBER, STRING):
        return None, None
    if region.single:
        return region.point, region.point
    low, high = region.low, region.high
    if kind == STRING:
        return low or None, high
    return (None if low == -math.inf else low), (None if high == math.inf else high)


def _doors_of(name: str, region: Region) -> Iterator[tuple[Door, int]]:
    """The doors that fit a region, each with its order: the lower, the more telling."""
    if region.single:
        yield (name, "point", _point_key(region.point)), 0
        return
    low, high = _bounds(region)
    if region.kind == STRING and (beginning := _beginning(region)):
        yield (name, "prefix", beginning), 1
    elif low is not None and high is not None and region.kind == NUMBER:
        grid = _grid_around(low, high)
        if grid is not None:
            yield (name, "cell", grid, _cell(low, grid)), 1
    if low is not None:
        yield (name, "above", region.kind), 2
    if high is not None:
        yield (name, "below", region.kind), 2
    yield (name,), 3


def _point_key(value: Value) -> Hashable:
    """A key equal exactly for values that ``=`` each other; a single value is never NaN."""
    if isinstance(value, Bag):
        return frozenset(Counter(map(equality_key, value)).items())
    return equality_key(value)


def _beginning(region: Region) -> str:
    return str(region.point) if region.single else common_prefix(region)


def _grid_around(low: float, high: float) -> Grid | None:
    """A grid with a cell that holds the whole interval, and is not much wider.

    Of two grids half a cell apart, one has such a cell once cells are twice as wide
    as the interval. Rounding may spoil that, so it is checked.
    """
    level = math.frexp(float(high) - float(low))[1] + 1
    for shift in _SHIFTS:
        cell = _cell(low, (level, shift))
        if cell is not None and cell == _cell(high, (level, shift)):
            return level, shift
    return None


def _cell(value: float, grid: Grid) -> int | None:
    """The cell of a number: it never decreases as the number grows, rounding or not.

    So whatever lies between two numbers of one cell lies in it too. None beyond
    all cells that such a fine grid can have.
    """
    level, shift = grid
    try:
        return math.floor(math.ldexp(float(value), -level) + shift)
    except OverflowError:
        return None


def _take(ordered: list[tuple[Any, int]], item: tuple[Any, int]) -> None:
    del ordered[bisect_left(ordered, item)]


def _count(counter: Counter[Any], what: Any, by: int) -> None:
    counter[what] += by
    if not counter[what]:
        del counter[what]
