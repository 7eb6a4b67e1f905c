"""What a process has moved to its archive, and what went wrong: for metrics and checks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Figures:
    """Written by the thread that moves, read by any."""

    #: Up to this number the archive is complete.
    upto: int = 0
    #: Entries moved, and runs that failed, since the store was opened.
    entries: int = 0
    failures: int = 0
    #: Why the last run failed; None once one went well.
    failure: str | None = None

    def moved(self, entries: int, upto: int) -> None:
        self.entries += entries
        self.upto = upto

    def failed(self, error: Exception) -> None:
        self.failures += 1
        self.failure = str(error) or type(error).__name__
