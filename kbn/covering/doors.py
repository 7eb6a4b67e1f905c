"""Upwards: where a filter waits for what it may cover.

Each filter waits behind one *door*, something that must be true of all it can
cover: a single value of one name, a cell of a grid around a numeric interval, the
beginning of a string, a member of a bag, a semantic constraint, a side on which an
interval is bounded, or at least a name. Whoever looks for those that cover it knocks
at all doors that are true of itself. Only ``subbag`` waits behind one door for each
member: whatever it covers has one of them, but nobody knows which.

Cost: a few dictionary look-ups to add, to remove and to knock. Many filters with
nothing but one-sided bounds on the same names share a door.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeAlias, TypeVar

from kbn.covering import members
from kbn.covering.filters import Facts, NameFacts
from kbn.covering.region import Region, bounds, common_prefix
from kbn.matching.content import NUMBER, STRING
from kbn.model.operators import BagKind, Content

K = TypeVar("K", bound=Hashable)

Door: TypeAlias = tuple[Hashable, ...]
#: A level and a shift: the grids of cells of width 2**level, one moved by half a cell.
Grid: TypeAlias = tuple[int, float]

_ALWAYS: Door = ()
_SHIFTS = (0.0, 0.5)
#: A longer ``subbag`` waits behind its name instead of a door for each member.
_MOST_DOORS = 64


class Doors(Generic[K]):
    """Keys of filters behind doors, and there by the names that they constrain."""

    def __init__(self) -> None:
        self._doors: dict[Door, dict[frozenset[str], dict[K, None]]] = {}
        self._chosen: dict[K, tuple[Door, ...]] = {}
        #: How many wait behind each door.
        self._behind: Counter[Door] = Counter()
        #: Which grids, lengths of prefixes and members of a name have doors, and how many.
        self._grids: dict[str, Counter[Grid]] = {}
        self._lengths: dict[str, Counter[int]] = {}
        self._among: dict[str, Counter[Hashable]] = {}
        #: The semantic constraints of a name that are doors.
        self._terms: dict[str, Counter[Hashable]] = {}

    def add(self, key: K, facts: Facts) -> None:
        names = frozenset(facts.names)
        self._chosen[key] = doors = self._choose(facts)
        for door in doors:
            self._doors.setdefault(door, {}).setdefault(names, {})[key] = None
            self._count(door, 1)

    def remove(self, key: K, facts: Facts) -> None:
        names = frozenset(facts.names)
        for door in self._chosen.pop(key):
            groups = self._doors[door]
            del groups[names][key]
            if not groups[names]:
                del groups[names]
            if not groups:
                del self._doors[door]
            self._count(door, -1)

    def behind(self, facts: Facts, *, ordered: bool = False) -> Iterator[K]:
        """Those that may cover whatever has these facts; some may come twice.

        ``ordered``: terms are compared by an ontology, not only by equality.
        """
        names = facts.names.keys()
        for door in self._knocked(facts, ordered):
            for wanted, keys in self._doors.get(door, {}).items():
                if wanted <= names:
                    yield from keys

    def _choose(self, facts: Facts) -> tuple[Door, ...]:
        """The most telling doors of a filter; of several such, those with the fewest behind."""
        best: tuple[Door, ...] = (_ALWAYS,)
        best_rank = (math.inf, 0)
        for name, held in facts.names.items():
            for doors, order in _doors_of(name, held):
                rank = (order, max(self._behind[door] for door in doors))
                if rank < best_rank:
                    best, best_rank = doors, rank
        return best

    def _count(self, door: Door, by: int) -> None:
        _step(self._behind, door, by)
        if len(door) < 3:
            return
        name, kind, what = str(door[0]), door[1], door[2]
        if kind == "cell":
            _step_in(self._grids, name, what, by)
        elif kind == "prefix":
            _step_in(self._lengths, name, len(str(what)), by)
        elif kind == "among":
            _step_in(self._among, name, what, by)
        elif kind == "term":
            _step_in(self._terms, name, what, by)

    def _knocked(self, facts: Facts, ordered: bool) -> Iterator[Door]:
        """Every door behind which a filter that covers these facts may wait."""
        yield _ALWAYS
        for name, held in facts.names.items():
            yield (name,)
            region = held.region
            yield from self._knocked_terms(name, held, ordered)
            if region.single:
                yield (name, "point", members.value_key(region.point))
            low, high = bounds(region)
            if low is not None:
                yield (name, "above", region.kind)
            if high is not None:
                yield (name, "below", region.kind)
            if region.kind == STRING and name in self._lengths:
                beginning = _beginning(region)
                for length in self._lengths[name]:
                    if length <= len(beginning):
                        yield (name, "prefix", beginning[:length])
            elif name in self._grids and low is not None and high is not None:
                for grid in self._grids[name]:
                    yield (name, "cell", grid, _cell(low, grid))
            for bag in members.holding(held):
                for member in bag:
                    yield (name, "holds", members.key(member))
            if name in self._among:
                yield from self._knocked_among(name, held)

    def _knocked_terms(self, name: str, held: NameFacts, ordered: bool) -> Iterator[Door]:
        """The semantic constraints that may follow; by equality only those that are said."""
        every = ordered or held.region.empty
        terms = self._terms.get(name, ()) if every else map(members.term_key, held.semantics)
        yield from [(name, "term", term) for term in terms]

    def _knocked_among(self, name: str, held: NameFacts) -> Iterator[Door]:
        for bag in members.within(held):
            doors: list[Door] = [(name, "among", tag) for tag in members.keys(bag)]
            if doors:
                yield min(doors, key=self._behind.__getitem__)
            elif not bag:
                # Every subbag covers the empty bag.
                yield from [(name, "among", tag) for tag in self._among[name]]


def _doors_of(name: str, held: NameFacts) -> Iterator[tuple[tuple[Door, ...], int]]:
    """The doors that fit, each or all together, with an order: the lower, the more telling."""
    region = held.region
    if region.single:
        yield ((name, "point", members.value_key(region.point)),), 0
        return
    for fact in held.bags:
        tags = members.keys(fact.targets) if fact.sub is Content.EQ else []
        if fact.kind is not BagKind.SUBBAG:
            for tag in tags:
                yield ((name, "holds", tag),), 1
        elif 0 < len(tags) <= _MOST_DOORS:
            yield tuple((name, "among", tag) for tag in dict.fromkeys(tags)), 1
    for said in held.semantics:
        yield ((name, "term", members.term_key(said)),), 1
    low, high = bounds(region)
    if region.kind == STRING and (beginning := _beginning(region)):
        yield ((name, "prefix", beginning),), 1
    elif low is not None and high is not None and region.kind == NUMBER:
        grid = _grid_around(low, high)
        if grid is not None:
            yield ((name, "cell", grid, _cell(low, grid)),), 1
    if low is not None:
        yield ((name, "above", region.kind),), 2
    if high is not None:
        yield ((name, "below", region.kind),), 2
    yield ((name,),), 3


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
    except (OverflowError, ValueError):
        return None


def _step(counter: Counter[Any], what: Any, by: int) -> None:
    counter[what] += by
    if not counter[what]:
        del counter[what]


def _step_in(counters: dict[str, Counter[Any]], name: str, what: Any, by: int) -> None:
    counter = counters.setdefault(name, Counter())
    _step(counter, what, by)
    if not counter:
        del counters[name]
