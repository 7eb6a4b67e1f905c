"""A ``logging.Handler`` that publishes records: three lines in any program.

    handler = KbnHandler("ka://127.0.0.1:1969")
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.DEBUG)

The last one because the root logger keeps everything below WARNING to itself: what is
seen is decided by who subscribes.

Promises: ``emit`` takes no lock that the network holds, waits for nobody and raises
nothing; at most ``capacity`` records wait, further ones are dropped and counted; the
times of a process rise strictly by at least a millisecond, so that AFTER, which is
strict, can chain them; the broker may come late, go away and come back. What is not
delivered is said on standard error, once a reason and once at the end, and the end of
a program waits for the broker two seconds at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Unpack

from kbn.client.aio import Client, connect
from kbn.client.events import Plain
from kbn.client.options import DEFAULT_URL, Options, Told
from kbn.errors import ClosedError, KbnError, UnreachableError
from kbn.model.values import Scalar

#: The source's hierarchy (its table 7.1), and one above for Python's CRITICAL.
TRACE, DEBUG, INFO, WARNING, ERROR, CRITICAL = range(1, 7)
NAMES = ("", "TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

CAPACITY = 10_000
#: A message beyond this is cut: one record always fits a packet.
LONGEST = 8_000
BATCH = 200
#: Seconds between attempts to reach a broker that is not there.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
#: Seconds that the end of a program waits: for what was not answered, then for goodbye.
PATIENCE, GOODBYE = 1.5, 0.5

#: What every record has; the rest was given as ``extra`` and is published.
_STANDARD = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "category",
}

Attributes = dict[str, Plain]


def level_code(levelno: int) -> int:
    """The code of Python's level number: 10 (DEBUG) is 2, 40 (ERROR) is 5, below 10 is 1."""
    return max(TRACE, min(CRITICAL, levelno // 10 + 1))


class Ticks:
    """Milliseconds that rise strictly, whoever asks: one for the whole process."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def next(self, now: int) -> int:
        """``now``, or the first millisecond after the last one given."""
        with self._lock:
            self._last = max(self._last + 1, now)
            return self._last


_TICKS = Ticks()


class KbnHandler(logging.Handler):
    """Publishes log records as instants. ``told`` is what ``kbn.connect`` takes.

    ``published``, ``dropped`` (no room, or the end came first), ``refused`` (by the
    broker) and ``broken`` (could not be made into events) count what became of records.
    Raises ``RefusedError`` for a ``url`` that cannot be one.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        level: int = logging.NOTSET,
        *,
        capacity: int = CAPACITY,
        clock: Callable[[], float] = time.time,
        ticks: Ticks = _TICKS,
        **told: Unpack[Told],
    ) -> None:
        super().__init__(level)
        if capacity < 1:
            raise ValueError("capacity is at least 1")
        Options.of(url, told.copy()).address()
        self._url, self._told = url, told
        self._capacity, self._clock, self._ticks = capacity, clock, ticks
        self.published = self.dropped = self.refused = self.broken = 0
        #: Reasons that were told.
        self._complaints: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        #: Records on their way: those waiting, then those sent and not yet answered.
        self._waiting: deque[Attributes] = deque()
        self._under_way = 0
        self._done = threading.Condition()
        #: Seconds that ``flush`` waited since anything was answered.
        self._waited = 0.0
        self._ended = self._closed = False
        self._loop = asyncio.new_event_loop()
        self._wake = asyncio.Event()
        self._work = self._loop.create_task(self._serve())
        self._thread = threading.Thread(target=self._run, name="kbn-log", daemon=True)
        self._thread.start()

    # --- the program's side -----------------------------------------------------------

    def filter(self, record: logging.LogRecord) -> bool:
        """As ever, and without what our own thread logs: that would never end.

        Asked before the handler's lock is taken, so that the thread cannot wait for
        a program that waits for it.
        """
        if threading.get_ident() == self._thread.ident:
            return False
        return super().filter(record)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record; never waits, never raises."""
        try:
            if self._pid != os.getpid():
                self._begin()  # a fork has our memory and not our thread
            event = self._event(record)
            with self._done:
                full = len(self._waiting) + self._under_way >= self._capacity
                if self._ended or full:
                    self.dropped += 1
                else:
                    self._waiting.append(event)
            if self._ended:
                return
            if full:
                self._complain("full", f"records are dropped: {self._capacity} wait already")
            self._loop.call_soon_threadsafe(self._wake.set)
        except Exception as error:
            self.broken += 1
            why = f"{type(error).__name__}: {error}"
            self._complain("broken", f"a record cannot be made into an event: {why}")

    def _complain(self, reason: str, said: str) -> None:
        """One line on standard error for each reason, as ``logging`` does with its own faults."""
        if reason not in self._complaints and logging.raiseExceptions and sys.stderr is not None:
            self._complaints.add(reason)
            with contextlib.suppress(Exception):  # there may be nobody left to read it
                print(f"KbnHandler: {said}", file=sys.stderr)

    def _event(self, record: logging.LogRecord) -> Attributes:
        now = self._ticks.next(int(self._clock() * 1000))
        event: Attributes = {
            "log_level": level_code(record.levelno),
            "log_category": _text(getattr(record, "category", record.name)),
            "log_logger": _text(record.name),
            "log_message": _text(record.getMessage()),
            "log_process": record.process or 0,
        }
        if record.exc_info:
            event["log_exception"] = _text(logging.Formatter().formatException(record.exc_info))
        for name, value in vars(record).items():
            if name not in _STANDARD and name not in event:
                event[name] = _value(value)
        return event | {
            "PUB_ID": str(uuid.uuid4()),
            "KBN_PUB_TYPE": ["START", "END", "INSTANT"],
            "KBN_START_TIME": now,
            "KBN_END_TIME": now,
        }

    def flush(self, timeout: float = PATIENCE) -> None:
        """Wait until everything emitted so far was answered, or the time is over."""
        begun = time.monotonic()
        with self._done:
            self._done.wait_for(lambda: not self._waiting and not self._under_way, timeout)
            self._waited += time.monotonic() - begun

    def close(self) -> None:
        """Publish what waits, if that is quick, and let the broker go.

        What ``flush`` waited for in vain just before, as ``logging.shutdown`` lets it, is
        not waited for again.
        """
        if not self._closed and self._pid == os.getpid():
            self._closed = True
            self.flush(max(0.0, PATIENCE - self._waited))
            self._ended = True
            with contextlib.suppress(RuntimeError):  # the loop has ended before us
                self._loop.call_soon_threadsafe(self._work.cancel)
            self._thread.join(timeout=GOODBYE)
            with self._done:
                self.dropped += len(self._waiting) + self._under_way
                self._waiting.clear()
                self._under_way = 0
            if lost := self.dropped + self.refused + self.broken:
                were = "record was" if lost == 1 else "records were"
                self._complain("closed", f"{lost} {were} not delivered")
        super().close()

    # --- the broker's side --------------------------------------------------------------

    def _run(self) -> None:
        try:
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._work)
        finally:
            self._ended = True
            self._loop.close()

    async def _serve(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                async with connect(self._url, **self._told) as client:
                    pause = FIRST_PAUSE
                    await self._publish(client)
            except Exception as error:
                reason = error.code if isinstance(error, KbnError) else type(error).__name__
                self._complain(reason, f"records are not delivered: {reason}: {error}")
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    async def _publish(self, client: Client) -> None:
        while True:
            with self._done:
                batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
                self._under_way = len(batch)
            if not batch:
                self._wake.clear()
                if not self._waiting:
                    await self._wake.wait()
                continue
            try:
                await self._send(client, batch)
            except BaseException:
                self._answered(back=batch)
                raise
            self._answered()

    async def _send(self, client: Client, batch: list[Attributes]) -> None:
        try:
            self.published += await client.publish_many(batch)
        except (ClosedError, UnreachableError):
            raise
        except KbnError:
            # A batch is taken whole or not at all: find out which one was bad.
            for event in batch:
                try:
                    await client.publish(event)
                    self.published += 1
                except (ClosedError, UnreachableError):
                    raise
                except KbnError as error:
                    self.refused += 1
                    self._complain(
                        f"refused {error.code}", f"a record was refused: {error.code}: {error}"
                    )

    def _answered(self, back: list[Attributes] | None = None) -> None:
        with self._done:
            self._under_way = 0
            if back is None:
                self._waited = 0.0
            self._waiting.extendleft(reversed(back or []))
            self._done.notify_all()


def _text(value: object) -> str:
    text = str(value)
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    return text.encode("utf-8", "replace").decode()


def _value(value: object) -> Plain:
    """As it is where the broker has that type, several scalars as a bag, else as text."""
    if isinstance(value, list | tuple | set | frozenset) and all(
        member is None or isinstance(member, bool | int | float | str) for member in value
    ):
        return [_scalar(member) for member in value]
    return _scalar(value)


def _scalar(value: object) -> Scalar:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return _text(value)
