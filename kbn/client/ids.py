"""New event ids: UUIDs of version 7, which sort by the time they were made.

A client stamps its publications itself, so that one sent again after a lost
connection is known to the broker. Within a millisecond a counter keeps the order.
"""

from __future__ import annotations

import os
import time

_RANDOM_BITS = 56


class EventIds:
    """Calling it gives a new id; ids of one object rise. Not for several threads at once."""

    def __init__(self) -> None:
        self._moment = 0
        self._count = 0

    def __call__(self) -> str:
        moment = time.time_ns() // 1_000_000
        if moment > self._moment:
            self._moment, self._count = moment, 0
        else:
            # Also when the clock was set back: ids go on rising.
            self._count += 1
            if self._count > 0x3FFFF:
                self._moment, self._count = self._moment + 1, 0
        chance = int.from_bytes(os.urandom(_RANDOM_BITS // 8))
        high = self._count >> 6
        low = 0b10 << 62 | (self._count & 0x3F) << _RANDOM_BITS | chance
        digits = f"{self._moment:012x}7{high:03x}{low:016x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
