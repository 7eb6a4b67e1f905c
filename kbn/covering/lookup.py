"""Who covers g, whom does g cover? Asked of few filters instead of all.

Law: ``coverers(facts)`` are exactly the keys of the filters that cover whatever has
the facts, and ``covered(asked, facts)`` of those that ``asked`` covers. ``doors`` and
``insides`` give candidates, and every candidate is put to the relation itself, so a
look-up could miss, never invent.

Cost: that of the two look-ups, then one covering for each candidate.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from kbn.covering.doors import Doors
from kbn.covering.filters import Facts, facts_imply
from kbn.covering.insides import Insides
from kbn.covering.semantic import TermOrder
from kbn.model.filters import Filter

K = TypeVar("K", bound=Hashable)


class CoverIndex(Generic[K]):
    """Filters that are not contradictory, each under a key of its own."""

    def __init__(self) -> None:
        self._held: dict[K, tuple[Filter, Facts]] = {}
        self._upwards: Doors[K] = Doors()
        self._downwards: Insides[K] = Insides()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[K]:
        return iter(self._held)

    def add(self, key: K, asked: Filter, facts: Facts) -> None:
        """File a filter that is not contradictory under a key that is new."""
        self._held[key] = (asked, facts)
        self._upwards.add(key, facts)
        self._downwards.add(key, facts)

    def remove(self, key: K) -> None:
        """Take away the filter under a key that is there."""
        _, facts = self._held.pop(key)
        self._upwards.remove(key, facts)
        self._downwards.remove(key, facts)

    def coverers(self, facts: Facts, order: TermOrder | None = None) -> Iterator[K]:
        """The keys of the filters that cover whatever has these facts."""
        told: set[K] = set()
        for key in self._upwards.behind(facts, ordered=order is not None):
            if key not in told and facts_imply(facts, self._held[key][0], order):
                told.add(key)
                yield key

    def covered(self, asked: Filter, facts: Facts, order: TermOrder | None = None) -> Iterator[K]:
        """The keys of the filters that ``asked``, whose facts these are, covers."""
        for key in self._downwards.inside(facts, ordered=order is not None):
            if facts_imply(self._held[key][1], asked, order):
                yield key
