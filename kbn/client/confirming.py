"""Up to which position everything that came has been dealt with.

Law: ``level`` never passes the position of a delivery that some reader has not
done with, in whatever order they come and are done. Cost: O(log) per delivery,
of those that are under way.
"""

from __future__ import annotations

from heapq import heappop, heappush


class Confirmations:
    """The deliveries of a durable session that are not done with."""

    def __init__(self) -> None:
        #: Readers that have not done with a position; positions in a heap.
        self._left: dict[int, int] = {}
        self._heap: list[int] = []
        self._newest = 0

    def arrived(self, pos: int, readers: int) -> None:
        """A delivery came for so many readers."""
        if pos in self._left:
            self._left[pos] += readers
        else:
            self._left[pos] = readers
            heappush(self._heap, pos)
        self._newest = max(self._newest, pos)

    def done(self, pos: int) -> None:
        """One reader has done with it."""
        if pos in self._left:
            self._left[pos] -= 1

    @property
    def level(self) -> int:
        """The greatest position up to which nothing is left to do; 0 before the first."""
        heap, left = self._heap, self._left
        while heap and left[heap[0]] <= 0:
            del left[heappop(heap)]
        return heap[0] - 1 if heap else self._newest
