"""Told time: the time of a story, which runs beside the wall's as fast as one likes.

A study asks ``now()`` and waits with ``until()``. At speed 2 a told second takes half
a second; at speed 0 nothing waits, time jumps to whatever is waited for, and a run
depends on its input only.
"""

from __future__ import annotations

import asyncio
import time


class Pace:
    """A clock in milliseconds that starts at ``start`` and runs ``speed`` times as fast."""

    def __init__(self, start: int, speed: float = 1.0) -> None:
        if speed < 0:
            raise ValueError("speed is at least 0")
        self.start = start
        self.speed = speed
        self._jumped = start
        self._begun = time.monotonic()

    def now(self) -> int:
        """Told milliseconds since 1970."""
        if not self.speed:
            return self._jumped
        return self.start + int((time.monotonic() - self._begun) * 1000 * self.speed)

    def seconds(self) -> float:
        """The same in seconds, where ``time.time`` is asked for."""
        return self.now() / 1000

    async def until(self, moment: int) -> None:
        """Wait until that told moment; returns at once if it has passed."""
        if not self.speed:
            self._jumped = max(self._jumped, moment)
            await asyncio.sleep(0)
            return
        while (left := moment - self.now()) > 0:
            await asyncio.sleep(left / 1000 / self.speed)
