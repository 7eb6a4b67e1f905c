"""Duration classes: what makes "which intervals contain this instant" an index search.

An event of duration d is in class c, the bit length of d: durations of one class
differ by less than a factor of two. Within a class a bound on the end is a bound on
the start that is off by at most that factor, so a box becomes one range of starts per
class, and long events do not widen the range of the short ones. Open events and
those without a start have classes of their own. Source: measured for the design, 368
µs against 2.8 µs at 50,000 intervals.
"""

from __future__ import annotations

from typing import NamedTuple

from kbn.model.past import Box
from kbn.model.time import TIME_MAX, TIME_MIN

#: Ended, but no start is known: placed by the end.
STARTLESS = 64
#: Begun and not ended: placed by the start.
OPEN = 63


def duration_class(start: int | None, end: int | None) -> int:
    """The class of an event with these times."""
    if start is None:
        return STARTLESS
    if end is None:
        return OPEN
    return (end - start).bit_length()


class Range(NamedTuple):
    """Places (inclusive) that an event of one class must have to lie in a box.

    ``exact`` says that each of them does; otherwise its times are to be compared.
    """

    low: int
    high: int
    exact: bool


def range_of(box: Box, kind: int) -> Range | None:
    """Where events of class ``kind`` may lie; None when none can."""
    low = TIME_MIN if box.start_min is None else box.start_min
    high = TIME_MAX if box.start_max is None else box.start_max
    if kind == OPEN:
        return _range(low, high, exact=True) if box.end_max is None else None
    end_low = TIME_MIN if box.end_min is None else box.end_min
    end_high = TIME_MAX if box.end_max is None else box.end_max
    if kind == STARTLESS:
        if box.start_min is not None or box.start_max is not None:
            return None
        return _range(end_low, end_high, exact=True)
    shortest = 1 << (kind - 1) if kind else 0
    longest = (1 << kind) - 1
    free = box.end_min is None and box.end_max is None
    return _range(
        max(low, end_low - longest) if box.end_min is not None else low,
        min(high, end_high - shortest) if box.end_max is not None else high,
        exact=free or kind == 0,
    )


def _range(low: int, high: int, *, exact: bool) -> Range | None:
    # No event is outside these years; the bounds may be, even beyond 64 bits.
    low, high = max(low, TIME_MIN), min(high, TIME_MAX)
    return Range(low, high, exact) if low <= high else None
