"""Placeholder while the indexed forest is written: the law by brute force."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from kbn.covering.filters import contradictory, filter_covers
from kbn.model.filters import Filter


class Moved(NamedTuple):
    exposed: tuple[Filter, ...]
    hidden: tuple[Filter, ...]


class CoveringForest:
    def __init__(self) -> None:
        self._keys: dict[Hashable, Filter] = {}
        self._roots: dict[Filter, None] = {}

    def add(self, key: Hashable, asked: Filter) -> Moved:
        self._keys[key] = asked
        return self._update()

    def remove(self, key: Hashable) -> Moved:
        del self._keys[key]
        return self._update()

    def _update(self) -> Moved:
        new: dict[Filter, None] = {}
        for f in dict.fromkeys(self._keys.values()):
            if contradictory(f) or any(filter_covers(r, f) for r in new):
                continue
            for r in [r for r in new if filter_covers(f, r)]:
                del new[r]
            new[f] = None
        old, self._roots = self._roots, new
        return Moved(tuple(f for f in new if f not in old), tuple(f for f in old if f not in new))

    def roots(self) -> Iterator[Filter]:
        return iter(self._roots)

    def is_root(self, asked: Filter) -> bool:
        return asked in self._roots
