"""Log lines for people or for machines, at most one a second of each kind.

A flood of malformed packets gives one line a second that says how many more
there were, so that a hostile peer cannot fill a disk.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
#: The least time between two lines of one event, in milliseconds.
INTERVAL = 1_000


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            "message": record.getMessage(),
        }
        more = getattr(record, "more", 0)
        if more:
            line["more"] = more
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class _Pretty(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created).astimezone()
        event = getattr(record, "event", record.name)
        # One line each: what a peer sent must not be able to forge another.
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        more = getattr(record, "more", 0)
        if more:
            message += f" (and {more} more)"
        line = f"{when:%H:%M:%S} {record.levelname.lower():7} {event}: {message}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def make_logger(form: str = "pretty", stream: TextIO | None = None) -> logging.Logger:
    """A logger of its own that writes to ``stream`` (standard error) in this form."""
    logger = logging.Logger("kbn.server", logging.INFO)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Pretty())
    logger.addHandler(handler)
    return logger


class RateLimited:
    """Passes one line of each event a second on and counts the rest into the next."""

    def __init__(self, logger: logging.Logger, now: Callable[[], int]) -> None:
        self._logger = logger
        self._now = now
        #: When each event was last written, and what was held back since.
        self._last: dict[str, int] = {}
        self._held: dict[str, tuple[int, str, str]] = {}

    def say(self, level: str, event: str, message: str) -> None:
        last = self._last.get(event)
        if last is not None and self._now() - last < INTERVAL:
            count = self._held[event][0] if event in self._held else 0
            self._held[event] = (count + 1, level, message)
            return
        count = self._held.pop(event)[0] if event in self._held else 0
        self._write(level, event, message, count)

    def flush(self, everything: bool = False) -> None:
        """Write what was held back long enough; call it now and then."""
        for event, (count, level, message) in list(self._held.items()):
            if everything or self._now() - self._last[event] >= INTERVAL:
                del self._held[event]
                self._write(level, event, message, count - 1)

    def failed(self, event: str, message: str) -> None:
        """An exception nobody expected, with its traceback."""
        self._logger.error(message, exc_info=True, extra={"event": event})

    def _write(self, level: str, event: str, message: str, more: int) -> None:
        self._last[event] = self._now()
        self._logger.log(
            _LEVELS.get(level, logging.INFO), "%s", message, extra={"event": event, "more": more}
        )
