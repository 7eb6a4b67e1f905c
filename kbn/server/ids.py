"""Event ids a broker gives: UUIDs of version 7, as text.

Law: ids of one object are distinct and rise, also when the clock is set back.
Cost: below a microsecond. Only the 12 bits behind the version count within a
millisecond; everything else of the text is made once a millisecond.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

_COUNTS = tuple(f"{count:03x}" for count in range(4096))


class EventIds:
    """Calling it gives a new id. Not for several threads at once."""

    __slots__ = ("_clock", "_count", "_moment", "_prefix", "_suffix")

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._moment = -1
        self._count = 0
        self._prefix = ""
        self._suffix = ""

    def __call__(self) -> str:
        moment = self._clock() // 1_000_000
        if moment <= self._moment:
            self._count += 1
            if self._count < 4096:
                return self._prefix + _COUNTS[self._count] + self._suffix
            # The millisecond is used up: borrow from the next, so that ids go on rising.
            moment = self._moment + 1
        self._moment, self._count = moment, 0
        self._prefix = f"{moment >> 16:08x}-{moment & 0xFFFF:04x}-7"
        chance = f"{0b10 << 62 | secrets.randbits(62):016x}"
        self._suffix = f"-{chance[:4]}-{chance[4:]}"
        return self._prefix + _COUNTS[0] + self._suffix
