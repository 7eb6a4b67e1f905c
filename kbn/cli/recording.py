"""A file of events as a history: each line finds those before it.

A line without temporal attributes is an instant at the latest time that any line
so far has told (0 before the first): a file has no broker that stamps a moment on it.
A line that says the same again is a duplicate; it is neither matched nor stored.
"""

from __future__ import annotations

from kbn.errors import RefusedError
from kbn.matching.temporal import AskedHistory, NaiveHistory
from kbn.matching.world import Knowledge, World
from kbn.model import LogEntry, Notification, Subscription
from kbn.model.time import TIME_MIN
from kbn.temporal import Duplicate, Limits, TemporalEngine
from kbn.temporal.engine import Admitted
from kbn.temporal.memory import UNLIMITED


class Recording:
    """The lines so far, remembered for one subscription."""

    def __init__(self, subscription: Subscription, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        limits = Limits(UNLIMITED, UNLIMITED)
        self._engine = TemporalEngine(limits=limits, knowledge=knowledge)
        self._engine.acquire(subscription)
        self._latest = TIME_MIN

    def admit(self, notification: Notification, line: int) -> Admitted | None:
        """A line on its way in; None for a duplicate. Raises ``RefusedError`` naming the line."""
        at = 0 if self._latest == TIME_MIN else self._latest
        try:
            admitted = self._engine.admit(notification, f"line {line}", at, at)
        except RefusedError as error:
            raise RefusedError(error.code, f"line {line}: {error.message}") from None
        return None if isinstance(admitted, Duplicate) else admitted

    def world(self, admitted: Admitted) -> World:
        """What the line finds."""
        return World(self._knowledge, self._engine.history(admitted))

    def keep(self, admitted: Admitted) -> LogEntry:
        """Store the line."""
        entry, _ = self._engine.apply(self._engine.seq + 1, admitted)
        self._engine.committed(entry.seq)
        self._latest = max(t for t in (self._latest, entry.start, entry.end) if t is not None)
        return entry


class ExplainedRecording(Recording):
    """The same by the definition, which can say why; slow for long files."""

    def __init__(self, subscription: Subscription, knowledge: Knowledge) -> None:
        super().__init__(subscription, knowledge)
        self._history = NaiveHistory(knowledge=knowledge)

    def world(self, admitted: Admitted) -> World:
        history: AskedHistory = self._history.about(admitted.entry)
        return World(self._knowledge, history)

    def keep(self, admitted: Admitted) -> LogEntry:
        entry = super().keep(admitted)
        self._history.append(entry)
        return entry
