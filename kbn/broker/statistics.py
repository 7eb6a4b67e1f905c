"""What a broker with a history measures of each publication.

The core has no clock: a stopwatch is injected, and without one nothing is measured.
A histogram is a row of counters; to observe costs one bisection.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from kbn.matching.world import History
from kbn.model.filters import Constraint
from kbn.model.notifications import Notification
from kbn.model.operators import After, During, Window

#: Nanoseconds of some clock that only goes forward.
Stopwatch = Callable[[], int]
#: Upper bounds of durations, in nanoseconds: 5 microseconds to 5 seconds.
DURATIONS = tuple(step * 10**power for power in range(3, 10) for step in (5, 10, 25))[:-2]
#: Upper bounds of how many were told.
COUNTS = (0, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000)
OPERATORS = ("during", "after", "filter", "relation")


class Histogram:
    """Counts by upper bound, the last one without."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[int]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0

    def observe(self, value: int, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    @property
    def count(self) -> int:
        return sum(self.counts)


class Statistics:
    """The figures of one broker since it started; times in nanoseconds."""

    def __init__(self, stopwatch: Stopwatch | None = None) -> None:
        self.stopwatch = stopwatch
        #: Until a publication was matched and accepted, and until it was on disk and told.
        self.accepted = Histogram(DURATIONS)
        self.total = Histogram(DURATIONS)
        #: To how many subscribers it went.
        self.deliveries = Histogram(COUNTS)
        #: A question to the history, by operator and whether it held.
        self.operators = {
            (name, held): Histogram(DURATIONS) for name in OPERATORS for held in (True, False)
        }
        #: The share of a publication in its transaction: a new event, or the end of one.
        self.inserted = Histogram(DURATIONS)
        self.updated = Histogram(DURATIONS)


class TimedHistory:
    """A history that measures what is asked of it."""

    __slots__ = ("_history", "_statistics", "_stopwatch")

    def __init__(self, history: History, statistics: Statistics, stopwatch: Stopwatch) -> None:
        self._history = history
        self._statistics = statistics
        self._stopwatch = stopwatch

    def holds(self, constraint: Constraint, notification: Notification) -> bool:
        began = self._stopwatch()
        held = self._history.holds(constraint, notification)
        took = self._stopwatch() - began
        self._statistics.operators[operator_name(constraint), held].observe(took)
        return held


def operator_name(constraint: Constraint) -> str:
    """One of ``OPERATORS``, for a temporal constraint."""
    op = constraint.op
    if isinstance(op, During):
        return "during"
    if isinstance(op, After):
        return "after"
    return "filter" if isinstance(op, Window) else "relation"
