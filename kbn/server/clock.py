"""The time a broker lives by: milliseconds since 1970 that never stand still or go back.

It follows the wall clock forward at once. When the wall clock was set back, it
goes on a tenth slower until both agree, so that timers still fire.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: How much of each millisecond that passes may be given up to fall back in step.
_GIVE = 0.1


class Clock:
    """``now`` reads it; call ``follow`` now and then to keep to the wall clock."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._ahead = (wall() - steady()) * 1000
        self._followed = steady()

    def now(self) -> int:
        return int(self._steady() * 1000 + self._ahead)

    def follow(self) -> None:
        steady = self._steady()
        drift = (self._wall() - steady) * 1000 - self._ahead
        passed, self._followed = (steady - self._followed) * 1000, steady
        self._ahead += max(drift, -_GIVE * passed)
