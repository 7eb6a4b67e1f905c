"""Events with a start and an end: is there one in a box of both?

Law: ``any_within(box, exclude)`` holds exactly when some span other than
``exclude``'s lies in the box. Spans lie in *duration classes* (powers of four, and
one for instants), each sorted by start in blocks that know the least and greatest
end in them. In a class the start bounds the end to within its width, so a bound
on either side is a bound on the other: the ranges are intersected, blocks whose
ends cannot fit are skipped, the rest is compared. Cost: a bisection per class in
use, plus the spans near the edge of the box; a late span costs a move within a
block. Removal leaves a block's ends as they were: wider than needed, never wrong.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from kbn.model.past import Box

MOST = 512


class Span(NamedTuple):
    """A start, an end and the event they belong to; sorted in this order."""

    start: int
    end: int
    event: str


class _Block:
    """Spans in order, and bounds on their ends."""

    __slots__ = ("high", "low", "spans")

    def __init__(self, spans: list[Span]) -> None:
        self.spans = spans
        self.low = min(span[1] for span in spans)
        self.high = max(span[1] for span in spans)


class _Class:
    """The spans of one duration class; every duration lies in [shortest, longest]."""

    __slots__ = ("blocks", "firsts", "longest", "shortest")

    def __init__(self, number: int) -> None:
        self.shortest = 4 ** (number - 1) if number else 0
        self.longest = 4**number - 1
        self.blocks: list[_Block] = []
        self.firsts: list[Span] = []

    def add(self, span: Span) -> None:
        if not self.blocks:
            self.blocks.append(_Block([span]))
            self.firsts.append(span)
            return
        at = max(bisect_right(self.firsts, span) - 1, 0)
        block = self.blocks[at]
        spans = block.spans
        if span > spans[-1]:
            spans.append(span)
        else:
            spans.insert(bisect_right(spans, span), span)
            self.firsts[at] = spans[0]
        end = span[1]
        block.high = max(block.high, end)
        block.low = min(block.low, end)
        if len(spans) > MOST:
            cut = MOST // 2 if at < len(self.blocks) - 1 else MOST * 7 // 8
            self.blocks[at : at + 1] = [_Block(spans[:cut]), _Block(spans[cut:])]
            self.firsts.insert(at + 1, spans[cut])

    def remove(self, span: Span) -> None:
        at = bisect_right(self.firsts, span) - 1
        spans = self.blocks[at].spans
        place = bisect_left(spans, span)
        assert spans[place] == span, f"{span} is not there"
        del spans[place]
        if not spans:
            del self.blocks[at], self.firsts[at]
        elif not place:
            self.firsts[at] = spans[0]

    def any_within(self, low: int, high: int, box: Box, exclude: str | None) -> bool:
        """Starts from ``low`` to ``high``, ends as the box says; the latest start first."""
        end_min, end_max = box.end_min, box.end_max
        at = bisect_left(self.firsts, (high + 1,)) - 1
        while at >= 0:
            block = self.blocks[at]
            if (end_min is None or block.high >= end_min) and (
                end_max is None or block.low <= end_max
            ):
                spans = block.spans
                place = bisect_left(spans, (high + 1,)) - 1
                while place >= 0:
                    start, end, event = spans[place]
                    if start < low:
                        return False
                    if (
                        (end_min is None or end >= end_min)
                        and (end_max is None or end <= end_max)
                        and event != exclude
                    ):
                        return True
                    place -= 1
            if self.firsts[at][0] < low:
                return False
            at -= 1
        return False


class Spans:
    """All closed events of one inner filter whose start is known."""

    __slots__ = ("_classes",)

    def __init__(self) -> None:
        self._classes: dict[int, _Class] = {}

    def add(self, start: int, end: int, event: str) -> None:
        number = ((end - start).bit_length() + 1) >> 1
        kept = self._classes.get(number)
        if kept is None:
            kept = self._classes[number] = _Class(number)
        kept.add(Span(start, end, event))

    def remove(self, start: int, end: int, event: str) -> None:
        number = ((end - start).bit_length() + 1) >> 1
        kept = self._classes[number]
        kept.remove(Span(start, end, event))
        if not kept.blocks:
            del self._classes[number]

    def any_within(self, box: Box, exclude: str | None) -> bool:
        start_min, start_max, end_min, end_max = box
        for kept in self._classes.values():
            low, high = kept.firsts[0][0], kept.blocks[-1].spans[-1][0]
            if start_min is not None and start_min > low:
                low = start_min
            if start_max is not None and start_max < high:
                high = start_max
            if end_min is not None and end_min - kept.longest > low:
                low = end_min - kept.longest
            if end_max is not None and end_max - kept.shortest < high:
                high = end_max - kept.shortest
            if low <= high and kept.any_within(low, high, box, exclude):
                return True
        return False
