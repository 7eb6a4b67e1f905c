"""Figure 7.6: an operator's client that asks for more detail while something is wrong.

Two subscriptions: what to show (``log_level >= 5``), and the pattern that asks for
more, three failed logins each within two seconds of the one before. When the pattern
comes the first is replaced by ``log_level >= 3``; when it has not come for a calm
period, the first returns.

``Levels`` is the rule, without clock or network; ``Controller`` obeys it. Everything
the broker tells goes through one queue to one worker, so the log a person reads, the
changes of level and the end of a calm period have one order.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import kbn
from case_studies.dynamic_logging.handler import ERROR, INFO, WARNING


def pattern(within: str = "2s", times: int = 3) -> str:
    """So many failed logins, each within that time of the one before."""
    failed = f'log_level = {WARNING} and log_category = "login_failed"'
    asked = failed
    for _ in range(times - 1):
        asked = f"{failed} and end after({within}) {{ {asked} }}"
    return asked


def at_least(level: int) -> str:
    """What is shown at a level."""
    return f"log_level >= {level}"


@dataclass
class Levels:
    """The rule: loud from each pattern until ``calm`` milliseconds after the last one."""

    calm: int
    quiet: int = ERROR
    loud: int = INFO
    #: When to be quiet again, if nothing comes; None while quiet.
    until: int | None = None

    @property
    def level(self) -> int:
        """What is asked for now."""
        return self.quiet if self.until is None else self.loud

    def alarmed(self, now: int) -> int:
        """The pattern came; the level from now on."""
        self.until = max(self.until or now, now + self.calm)
        return self.level

    def passed(self, now: int) -> int:
        """Time went by; the level from now on."""
        if self.until is not None and now >= self.until:
            self.until = None
        return self.level


@dataclass(frozen=True, slots=True)
class Changed:
    """The level was changed at a told moment."""

    at: int
    level: int


class Screen(Protocol):
    """What a person sees."""

    def shown(self, record: kbn.Delivery) -> None:
        """A record that the level lets through."""

    def changed(self, change: Changed) -> None:
        """The level is another one now."""


@dataclass(frozen=True, slots=True)
class _Record:
    record: kbn.Delivery


@dataclass(frozen=True, slots=True)
class _Alarm:
    record: kbn.Delivery


@dataclass(frozen=True, slots=True)
class _Passed:
    settled: asyncio.Future[None] | None = None


class Controller:
    """Keeps the level on one session with a broker; use it in ``async with``."""

    def __init__(
        self,
        client: kbn.Client,
        screen: Screen,
        levels: Levels,
        now: Callable[[], int],
        alarm: str | None = None,
    ) -> None:
        self._client, self._screen, self._levels, self._now = client, screen, levels, now
        self._alarm = alarm or pattern()
        self._queue: asyncio.Queue[_Record | _Alarm | _Passed] = asyncio.Queue()
        self._streams: dict[asyncio.Task[None], kbn.Stream] = {}
        self._shown: asyncio.Task[None] | None = None
        self._level = levels.level
        #: Ids shown last, so that two subscriptions that overlap show a record once.
        self._seen: dict[str, None] = {}
        self._fences: dict[int, asyncio.Future[None]] = {}
        self._numbers = itertools.count(1)
        self._name = f"fence_{id(self):x}"
        self._worker: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Controller:
        self._shown = await self._show(self._level)
        await self._follow(self._alarm, lambda found: self._queue.put_nowait(_Alarm(found)))
        await self._follow(f"{self._name} any", self._fenced)
        self._worker = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for task in (self._worker, *self._streams):
            if task is not None:
                task.cancel()
        await asyncio.gather(
            *(t for t in (self._worker, *self._streams) if t), return_exceptions=True
        )

    # --- what the broker tells ------------------------------------------------------------

    async def _follow(
        self, asked: str, heard: Callable[[kbn.Delivery], None]
    ) -> asyncio.Task[None]:
        stream = await self._client.subscribe(asked).ready()

        async def read() -> None:
            async for notification in stream:
                heard(notification)

        task = asyncio.create_task(read())
        self._streams[task] = stream
        return task

    async def _show(self, level: int) -> asyncio.Task[None]:
        return await self._follow(
            at_least(level), lambda found: self._queue.put_nowait(_Record(found))
        )

    # --- what is done about it --------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            match await self._queue.get():
                case _Record(record):
                    if record.uid not in self._seen:
                        self._remember(record.uid)
                        self._screen.shown(record)
                case _Alarm(record):
                    told = record["KBN_END_TIME"]
                    assert isinstance(told, int)
                    await self._set(self._levels.alarmed(told), told)
                case _Passed(settled):
                    now = self._now()
                    await self._set(self._levels.passed(now), now)
                    if settled is not None and not settled.done():
                        settled.set_result(None)

    def _remember(self, uid: str) -> None:
        self._seen[uid] = None
        if len(self._seen) > 10_000:
            del self._seen[next(iter(self._seen))]

    async def _set(self, level: int, at: int) -> None:
        """The new subscription first, then the old one's end: nothing falls between."""
        if level == self._level:
            return
        old, self._level = self._shown, level
        self._shown = await self._show(level)
        if old is not None:
            await self._streams.pop(old).close()
            await old
        self._screen.changed(Changed(at, level))

    # --- time -------------------------------------------------------------------------------

    @property
    def wakes(self) -> int | None:
        """The told moment at which calm would have lasted long enough; None while quiet."""
        return self._levels.until

    def passed(self) -> None:
        """Look at the clock again, when everything heard before was dealt with."""
        self._queue.put_nowait(_Passed())

    async def settle(self) -> None:
        """Until everything that was acknowledged to publishers before is dealt with here.

        By a publication of our own: what was matched before it arrives before it.
        """
        number = next(self._numbers)
        fence = self._fences[number] = asyncio.get_running_loop().create_future()
        await self._client.publish({self._name: number})
        await fence

    def _fenced(self, notification: kbn.Delivery) -> None:
        number = notification[self._name]
        assert isinstance(number, int)
        self._queue.put_nowait(_Passed(self._fences.pop(number)))
