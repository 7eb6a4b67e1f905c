"""A sorted multiset cut into blocks, so that a late insertion moves a few hundred keys.

Law: the keys are those added and not removed, in order. Invariant: no block is
empty, every key of block i is at most ``_highs[i]``, its last one, and at most
every key of block i + 1. Cost: an addition beyond the highest key is an append;
every other operation two bisections and a move within a block.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Any

#: A block is cut in two above this.
MOST = 512


class Ordered:
    """Keys of one comparable kind; equal keys may stand beside each other."""

    __slots__ = ("_blocks", "_highs", "_size")

    def __init__(self, keys: Iterable[Any] = ()) -> None:
        held = sorted(keys)
        half = MOST // 2
        self._blocks: list[list[Any]] = [held[at : at + half] for at in range(0, len(held), half)]
        self._highs: list[Any] = [block[-1] for block in self._blocks]
        self._size = len(held)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        for block in self._blocks:
            yield from block

    def add(self, key: Any) -> None:
        """Take a key in, after its equals."""
        self._size += 1
        highs = self._highs
        if not highs:
            highs.append(key)
            self._blocks.append([key])
            return
        if key >= highs[-1]:
            at = len(highs) - 1
            block = self._blocks[at]
            block.append(key)
            highs[at] = key
        else:
            at = bisect_right(highs, key)
            block = self._blocks[at]
            insort(block, key)
        if len(block) > MOST:
            # Late keys are rare: a block filled by appending is left almost full.
            cut = MOST // 2 if at < len(highs) - 1 else MOST * 7 // 8
            self._blocks[at : at + 1] = [block[:cut], block[cut:]]
            highs.insert(at, block[cut - 1])

    def remove(self, key: Any) -> None:
        """Give up one key that is there."""
        at = bisect_left(self._highs, key)
        block = self._blocks[at]
        place = bisect_left(block, key)
        assert block[place] == key, f"{key!r} is not there"
        del block[place]
        self._size -= 1
        if not block:
            del self._blocks[at], self._highs[at]
        elif place == len(block):
            self._highs[at] = block[-1]

    def below(self, key: Any) -> Any:
        """The greatest key less than this one, or None."""
        highs = self._highs
        if not highs:
            return None
        if highs[-1] < key:
            return highs[-1]
        at = bisect_left(highs, key)
        place = bisect_left(self._blocks[at], key)
        if place:
            return self._blocks[at][place - 1]
        return highs[at - 1] if at else None

    def above(self, key: Any) -> Any:
        """The least key greater than this one, or None."""
        at = bisect_right(self._highs, key)
        if at == len(self._highs):
            return None
        block = self._blocks[at]
        return block[bisect_right(block, key)]

    def first(self) -> Any:
        """The least key, or None."""
        return self._blocks[0][0] if self._blocks else None

    def last(self) -> Any:
        """The greatest key, or None."""
        return self._highs[-1] if self._highs else None

    def top(self, count: int) -> list[Any]:
        """The ``count`` greatest keys, ascending."""
        taken: list[list[Any]] = []
        for block in reversed(self._blocks):
            if count <= 0:
                break
            taken.append(block[-count:] if count < len(block) else block)
            count -= len(block)
        return [key for block in reversed(taken) for key in block]
