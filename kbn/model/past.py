"""What left the temporal memory and is asked of whoever keeps the decisions.

Every temporal operator but FILTER asks whether some event, of which an inner
filter holds, lies in a box of start and end times. So one question serves AFTER,
DURING and the thirteen relations, in memory, in SQL and in Delta alike.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Box(NamedTuple):
    """Inclusive bounds in milliseconds; None leaves a side open.

    An event without a start satisfies no bound on the start and is admitted only
    where both are None. An event without an end counts as ending at +infinity: it
    is admitted exactly where ``end_max`` is None (and its start fits).
    """

    start_min: int | None = None
    start_max: int | None = None
    end_min: int | None = None
    end_max: int | None = None


class Past(Protocol):
    """Decisions that are no longer in memory. Asked synchronously: an indexed look-up."""

    def any_within(self, inner: str, box: Box, exclude: str | None) -> bool:
        """Whether some event with a standing, true decision of ``inner`` lies in the box,
        the event ``exclude`` left aside."""
        ...


class NoPast:
    """Nothing ever left the memory."""

    def any_within(self, inner: str, box: Box, exclude: str | None) -> bool:
        return False
