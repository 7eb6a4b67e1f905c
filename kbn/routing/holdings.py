"""The units of one subscriber, asked which cover a new one and which it covers.

Law: ``covering(asked)`` says whether one unit alone covers ``asked``, and
``covered(asked)`` names the units wholly covered by it, both as
``kbn.covering.covers`` decides, among units of equal delivery options. Cost: a few
units are asked one by one; a subscriber with many, such as the link of a child
broker, keeps a ``CoverIndex`` over the alternatives of its units, and only
likely ones are asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Generic, Protocol, TypeVar

from kbn.covering import TermOrder, covers
from kbn.covering.filters import Facts
from kbn.covering.lookup import CoverIndex
from kbn.model.filters import Filter, Subscription

#: So many units are asked one by one before an index pays.
FEW = 8


class Asking(Protocol):
    """A subscription with a number of its own and options."""

    @property
    def number(self) -> int: ...

    @property
    def asked(self) -> Subscription: ...

    @property
    def options(self) -> Hashable: ...


U = TypeVar("U", bound=Asking)


class Holdings(Generic[U]):
    """Units in the order in which they came, oldest first."""

    __slots__ = ("_indexes", "_units")

    def __init__(self) -> None:
        self._units: dict[int, U] = {}
        #: By options, once the units are many; None before.
        self._indexes: dict[Hashable, _Alternatives] | None = None

    def __len__(self) -> int:
        return len(self._units)

    def __iter__(self) -> Iterator[U]:
        return iter(self._units.values())

    def add(self, unit: U) -> None:
        self._units[unit.number] = unit
        if self._indexes is not None:
            self._indexes.setdefault(unit.options, _Alternatives()).add(unit)
        elif len(self._units) > FEW:
            self._indexes = {}
            for held in self:
                self._indexes.setdefault(held.options, _Alternatives()).add(held)

    def remove(self, unit: U) -> None:
        del self._units[unit.number]
        if self._indexes is not None:
            self._indexes[unit.options].remove(unit)
            if not self._units:
                self._indexes = None

    def covering(
        self, asked: Subscription, options: Hashable, order: TermOrder | None = None
    ) -> bool:
        """Whether one of the units with these options covers ``asked``."""
        if self._indexes is None:
            return any(u.options == options and covers(u.asked, asked, order) for u in self)
        index = self._indexes.get(options)
        return index is not None and index.covering(asked, order)

    def covered(
        self, asked: Subscription, options: Hashable | None = None, order: TermOrder | None = None
    ) -> list[U]:
        """The units, of these options or of any, that ``asked`` covers; oldest first."""
        if self._indexes is None:
            return [
                unit
                for unit in self
                if (options is None or unit.options == options)
                and covers(asked, unit.asked, order)
            ]
        found = [
            number
            for held, index in self._indexes.items()
            if options is None or held == options
            for number in index.covered(asked, order)
        ]
        return [self._units[number] for number in sorted(found)]


class _Alternatives:
    """The alternatives of units, those that nothing can match left out."""

    __slots__ = ("_filters", "_never", "_possible")

    def __init__(self) -> None:
        #: By the number of the unit and the place in it.
        self._filters: CoverIndex[tuple[int, int]] = CoverIndex()
        #: How many of its alternatives are there, for each unit; and those that have none.
        self._possible: dict[int, int] = {}
        self._never: set[int] = set()

    def add(self, unit: Asking) -> None:
        possible = 0
        for place, alternative, facts in _possible(unit.asked):
            self._filters.add((unit.number, place), alternative, facts)
            possible += 1
        self._possible[unit.number] = possible
        if not possible:
            self._never.add(unit.number)

    def remove(self, unit: Asking) -> None:
        del self._possible[unit.number]
        self._never.discard(unit.number)
        for place in range(len(unit.asked)):
            if (unit.number, place) in self._filters:
                self._filters.remove((unit.number, place))

    def covering(self, asked: Subscription, order: TermOrder | None) -> bool:
        left: set[int] | None = None
        for _, _, facts in _possible(asked):
            found = {number for number, _ in self._filters.coverers(facts, order)}
            left = found if left is None else left & found
            if not left:
                return False
        # What cannot match at all is covered by whatever is there.
        return bool(self._possible)

    def covered(self, asked: Subscription, order: TermOrder | None) -> set[int]:
        found: set[tuple[int, int]] = set()
        for _, wider, facts in _possible(asked):
            found.update(self._filters.covered(wider, facts, order))
        places = Counter(number for number, _ in found)
        return self._never | {n for n, count in places.items() if count == self._possible[n]}


def _possible(asked: Subscription) -> Iterator[tuple[int, Filter, Facts]]:
    """The alternatives that can match, with their places and facts."""
    for place, alternative in enumerate(asked):
        facts = Facts(alternative.constraints)
        if not facts.contradictory:
            yield place, alternative, facts
