"""Prefix, suffix and substring: from a text to the patterns in it.

Prefix and suffix probe one dict once per distinct length of pattern. Substring
files each pattern under the rarest of its three-letter pieces (at the time it
came), so that a text probes the pieces it has and compares few patterns; unlike
an automaton this takes new patterns and gives up old ones at once. The empty
string is in every text.

Cost: prefix and suffix O(distinct lengths); substring O(length of the text)
plus the candidates; while patterns are few, one ``in`` each.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

from kbn.matching.index.branches import Keyed
from kbn.matching.index.checks import Check, Probe
from kbn.model.values import Value

N = TypeVar("N")

#: Up to so many patterns, asking each is faster than cutting the text to pieces.
FEW = 32
PIECE = 3


class _Ends(Keyed[N]):
    """Patterns that stand at an end, with how many there are of each length."""

    __slots__ = ("_lengths",)

    def __init__(self) -> None:
        super().__init__()
        self._lengths: dict[int, int] = {}

    def grow(self, key: Hashable, check: Check | None, child: N) -> None:
        super().grow(key, check, child)
        _count(self._lengths, len(str(key)), 1)

    def cut(self, key: Hashable) -> None:
        super().cut(key)
        _count(self._lengths, len(str(key)), -1)


class Prefix(_Ends[N]):
    """``value prefix pattern``."""

    __slots__ = ()

    def reach(self, value: Value, probe: Probe) -> Iterable[N]:
        if not isinstance(value, str):
            return ()
        get, size = self.children.get, len(value)
        found = [get(value[:length]) for length in self._lengths if length <= size]
        return [child for child in found if child is not None]


class Suffix(_Ends[N]):
    """``value suffix pattern``."""

    __slots__ = ()

    def reach(self, value: Value, probe: Probe) -> Iterable[N]:
        if not isinstance(value, str):
            return ()
        get, size = self.children.get, len(value)
        found = [get(value[size - length :]) for length in self._lengths if length <= size]
        return [child for child in found if child is not None]


class Contains(Keyed[N]):
    """``value contains pattern``.

    Invariants: every pattern is in ``_filed`` under its piece in ``_pieces``, a
    pattern shorter than a piece under itself; ``_sizes`` counts the pieces of
    each length.
    """

    __slots__ = ("_filed", "_pieces", "_sizes")

    def __init__(self) -> None:
        super().__init__()
        self._filed: dict[str, dict[str, N]] = {}
        self._pieces: dict[str, str] = {}
        self._sizes: dict[int, int] = {}

    def grow(self, key: Hashable, check: Check | None, child: N) -> None:
        super().grow(key, check, child)
        pattern = str(key)
        size = min(PIECE, len(pattern))
        piece = min(_pieces(pattern, size), key=lambda p: (len(self._filed.get(p, ())), p))
        self._pieces[pattern] = piece
        self._filed.setdefault(piece, {})[pattern] = child
        _count(self._sizes, len(piece), 1)

    def cut(self, key: Hashable) -> None:
        super().cut(key)
        pattern = str(key)
        piece = self._pieces.pop(pattern)
        filed = self._filed[piece]
        del filed[pattern]
        if not filed:
            del self._filed[piece]
        _count(self._sizes, len(piece), -1)

    def reach(self, value: Value, probe: Probe) -> Iterable[N]:
        if not isinstance(value, str):
            return ()
        if len(self.children) <= FEW:
            return [child for pattern, child in self.children.items() if str(pattern) in value]
        found: list[N] = []
        for size in self._sizes:
            for piece in self._filed.keys() & _pieces(value, size):
                for pattern, child in self._filed[piece].items():
                    if pattern in value:
                        found.append(child)
        return found


def _pieces(text: str, size: int) -> set[str]:
    """Every piece of this size; the empty one is in every text."""
    if not size:
        return {""}
    return {text[i : i + size] for i in range(len(text) - size + 1)}


def _count(counts: dict[int, int], length: int, more: int) -> None:
    """Add to a count, and forget it at zero."""
    now = counts.get(length, 0) + more
    if now:
        counts[length] = now
    else:
        del counts[length]
