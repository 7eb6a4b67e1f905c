"""Downwards: which filters may lie inside another.

A filter that is covered lies inside the other name by name, so any one name of the
other gives candidates: those fixed to the same value, a slice of those sorted by
their bounds, or those with a member in common. The name with the fewest is taken.

Cost: adding and removing take a look-up and two bisections for each name; a query
two bisections for each name, and its answer.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeAlias, TypeVar

from kbn.covering import members
from kbn.covering.filters import Facts, NameFacts
from kbn.covering.region import bounds
from kbn.model.operators import BagKind, Content

K = TypeVar("K", bound=Hashable)

#: Keys by the number under which they came, so that bounds can be sorted beside it.
Numbered: TypeAlias = dict[int, K]

#: Stands for the member that an empty bag does not have.
_NO_MEMBER = "empty"
#: Stands for the semantic constraint of a name that no scalar value satisfies.
_NO_SCALAR = "empty"


class _Said(Generic[K]):
    """The filters that say something about one name."""

    __slots__ = ("all", "highs", "holding", "lows", "points", "terms", "within")

    def __init__(self) -> None:
        self.all: Numbered[K] = {}
        #: Those fixed to a single value, by that value.
        self.points: dict[Hashable, Numbered[K]] = {}
        #: Those with a lower bound and those with an upper one, sorted, by type class.
        self.lows: dict[str | None, list[tuple[Any, int]]] = {}
        self.highs: dict[str | None, list[tuple[Any, int]]] = {}
        #: Those with a bag ``holding``, under each of its members, and those with one
        #: ``within``, under its first.
        self.holding: dict[Hashable, Numbered[K]] = {}
        self.within: dict[Hashable, Numbered[K]] = {}
        #: Those with a semantic constraint, under it; and those that no scalar satisfies.
        self.terms: dict[Hashable, Numbered[K]] = {}

    def add(self, number: int, key: K, held: NameFacts) -> None:
        self.all[number] = key
        for place, tag in self._places(held):
            place.setdefault(tag, {})[number] = key
        low, high = bounds(held.region)
        if low is not None:
            insort(self.lows.setdefault(held.region.kind, []), (low, number))
        if high is not None:
            insort(self.highs.setdefault(held.region.kind, []), (high, number))

    def remove(self, number: int, held: NameFacts) -> None:
        del self.all[number]
        for place, tag in self._places(held):
            del place[tag][number]
            if not place[tag]:
                del place[tag]
        low, high = bounds(held.region)
        if low is not None:
            _take(self.lows[held.region.kind], (low, number))
        if high is not None:
            _take(self.highs[held.region.kind], (high, number))

    def inside(self, held: NameFacts, ordered: bool) -> list[int] | Numbered[K]:
        """Those of which what they say about the name may lie inside this."""
        region = held.region
        if region.single:
            return self.points.get(members.value_key(region.point), {})
        if held.semantics and not ordered:
            same = self.terms.get(members.term_key(held.semantics[0]), {})
            return {**same, **self.terms.get(_NO_SCALAR, {})}
        for fact in held.bags:
            tags = members.keys(fact.targets) if fact.sub is Content.EQ else []
            if tags and fact.kind is not BagKind.SUBBAG:
                return min((self.holding.get(tag, {}) for tag in tags), key=len)
            if tags:
                places = [self.within.get(tag, {}) for tag in (*tags, _NO_MEMBER)]
                return {number: key for place in places for number, key in place.items()}
        low, high = bounds(region)
        if low is not None:
            lows = self.lows.get(region.kind, [])
            end = len(lows) if high is None else bisect_right(lows, (high, math.inf))
            return [number for _, number in lows[bisect_left(lows, (low, -1)) : end]]
        if high is not None:
            highs = self.highs.get(region.kind, [])
            return [number for _, number in highs[: bisect_right(highs, (high, math.inf))]]
        return self.all

    def _places(self, held: NameFacts) -> Iterator[tuple[dict[Hashable, Numbered[K]], Hashable]]:
        """Where a filter with these facts is filed, but for its bounds; each place once."""
        if held.region.single:
            yield self.points, members.value_key(held.region.point)
        for tag in {members.key(member) for bag in members.holding(held) for member in bag}:
            yield self.holding, tag
        for said in {members.term_key(said) for said in held.semantics}:
            yield self.terms, said
        if held.region.empty:
            yield self.terms, _NO_SCALAR
        for tag in {members.key(b[0]) if b else _NO_MEMBER for b in members.within(held)}:
            yield self.within, tag


class Insides(Generic[K]):
    """Keys of filters by what these say about each name."""

    def __init__(self) -> None:
        self._numbers: dict[K, int] = {}
        self._names: dict[str, _Said[K]] = {}
        self._next = 0

    def add(self, key: K, facts: Facts) -> None:
        self._numbers[key] = number = self._next
        self._next += 1
        for name, held in facts.names.items():
            self._names.setdefault(name, _Said()).add(number, key, held)

    def remove(self, key: K, facts: Facts) -> None:
        number = self._numbers.pop(key)
        for name, held in facts.names.items():
            said = self._names[name]
            said.remove(number, held)
            if not said.all:
                del self._names[name]

    def inside(self, facts: Facts, *, ordered: bool = False) -> list[K]:
        """Those that may lie inside a filter with these facts; all for the empty filter.

        ``ordered``: terms are compared by an ontology, not only by equality.
        """
        best: list[int] | Numbered[K] | None = None
        for name, held in facts.names.items():
            said = self._names.get(name)
            if said is None:
                return []
            found = said.inside(held, ordered)
            if best is None or len(found) < len(best):
                best, where = found, said
        if best is None:
            return list(self._numbers)
        if isinstance(best, dict):
            return list(best.values())
        return [where.all[number] for number in best]


def _take(ordered: list[tuple[Any, int]], item: tuple[Any, int]) -> None:
    del ordered[bisect_left(ordered, item)]
