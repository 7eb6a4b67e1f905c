"""A relation between small integers, as one sorted array.

Law: ``(a, b) in pairs`` exactly for the pairs it was made from. A pair is one
64-bit key, so the array is its own byte form: reading a cache copies no pair.
Cost: 8 bytes a pair; a question, one binary search. Asked from the right side the
first time, the relation is turned round once and kept.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import merge

_LOW = (1 << 32) - 1


class Pairs:
    """An immutable set of ``(left, right)``, both below 2^32."""

    __slots__ = ("_keys", "_turned")

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self._keys = array("Q", sorted({left << 32 | right for left, right in pairs}))
        self._turned: Pairs | None = None

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Pairs:
        """The relation that ``to_bytes`` wrote; raises ``ValueError`` for anything else."""
        made = cls()
        made._keys.frombytes(data)
        if sys.byteorder == "big":
            made._keys.byteswap()
        return made

    def to_bytes(self) -> bytes:
        if sys.byteorder == "little":
            return self._keys.tobytes()
        swapped = array("Q", self._keys)
        swapped.byteswap()
        return swapped.tobytes()

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((key >> 32, key & _LOW) for key in self._keys)

    def has(self, left: int, right: int) -> bool:
        key = left << 32 | right
        at = bisect_left(self._keys, key)
        return at < len(self._keys) and self._keys[at] == key

    def rights(self, left: int) -> list[int]:
        """All that ``left`` is paired with, in order."""
        low = bisect_left(self._keys, left << 32)
        high = bisect_left(self._keys, (left + 1) << 32, low)
        return [key & _LOW for key in self._keys[low:high]]

    def lefts(self, right: int) -> list[int]:
        """All that are paired with ``right``, in order."""
        if self._turned is None:
            self._turned = Pairs((b, a) for a, b in self)
        return self._turned.rights(right)

    def turn(self) -> None:
        """Turn it round now, in small steps: other threads get their turns."""
        if self._turned is None:
            keys = [(key & _LOW) << 32 | key >> 32 for key in self._keys]
            runs = [sorted(keys[at : at + 4096]) for at in range(0, len(keys), 4096)]
            turned = Pairs()
            turned._keys = array("Q", merge(*runs))
            self._turned = turned

    def most(self) -> int:
        """No member is above this."""
        return max((max(key >> 32, key & _LOW) for key in self._keys), default=0)
