"""The history as one publication of the log found it, so that it can be explained.

Law: the verdicts over ``as_of`` are those of the definition (``kbn.matching.temporal``).
The log is replayed up to the publication; the events that the explanation looks at
are those the replay holds. Cost: one pass over the log, and in memory only events
of which an inner filter holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kbn.matching.temporal import AskedHistory, NaiveHistory
from kbn.matching.world import NOTHING_KNOWN, Knowledge
from kbn.model.events import MergedEvent, merge
from kbn.model.filters import Subscription
from kbn.model.notifications import Notification
from kbn.model.publications import LogEntry, Part
from kbn.temporal.replay import Replay


class ReplayedHistory(AskedHistory):
    """What a replay remembers, asked about the publication that comes next."""

    def __init__(self, replay: Replay, event: MergedEvent, stored: int) -> None:
        memory = replay.memory
        super().__init__(NaiveHistory((), memory.knowledge, memory.limits.max_open), 0, event)
        self._memory = memory
        self._stored = stored

    def stored(self) -> int:
        return self._stored

    def candidates(self, inner: Subscription) -> list[MergedEvent]:
        return [
            MergedEvent(
                uid,
                held.first_seq,
                held.last_seq,
                held.start,
                held.end,
                frozenset(),
                Notification.trusted(dict(held.attributes or {})),
                None,
                None,
            )
            for uid, held in self._memory.node_of(inner).held.items()
            if uid != self.event.id
        ]


def as_of(
    entries: Iterable[LogEntry],
    asked: Subscription,
    event_id: str,
    knowledge: Knowledge = NOTHING_KNOWN.knowledge,
    max_open: int | None = None,
) -> Iterator[tuple[LogEntry, ReplayedHistory]]:
    """Each publication about the event, with the history before it.

    Use a history before the next one is drawn: it is the replay's own memory.
    """
    replay = Replay({0: asked}, knowledge, max_open)
    known: MergedEvent | None = None
    unfinished: set[str] = set()
    others = 0
    for entry in entries:
        if entry.uid == event_id:
            known = merge(known, entry)
            yield entry, ReplayedHistory(replay, known, others)
        elif entry.uid in unfinished:
            unfinished.discard(entry.uid)
        else:
            others += 1
            if entry.part in (Part.START, Part.END):
                unfinished.add(entry.uid)
        replay.learn(entry)
