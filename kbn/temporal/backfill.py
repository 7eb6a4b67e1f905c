"""Filling a new inner filter from the log while publications keep arriving.

    backfill = engine.acquire(subscription)         None: nothing to be read
    for piece in log up to backfill.upto:           off the loop
        store(backfill.feed(piece))
    backfill.settle(past, limits)                   off the loop, once that is on disk
    store(engine.adopt(backfill)); engine.stored(backfill)

Law: after ``adopt`` the nodes are as if they had been there from the first entry
on. The log is read up to ``upto``, the newest entry on disk when the back-fill
began; what was applied after it waits in a queue, entry by entry, and is fed last.
So each entry is decided exactly once. A back-fill has a memory of its own and
shares nothing that changes with the engine: ``feed`` may run in a thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from kbn.matching.world import Knowledge
from kbn.model.filters import Subscription
from kbn.model.past import Past
from kbn.model.publications import Decision, LogEntry
from kbn.temporal.memory import Change, Inner, Limits
from kbn.temporal.replay import Replay


class Backfill:
    """One subscription whose inner filters are being filled; made by the engine only."""

    def __init__(
        self,
        subscription: Subscription,
        missing: list[Inner],
        pinned: frozenset[str],
        *,
        upto: int,
        queue: Iterable[LogEntry],
        knowledge: Knowledge,
        max_open: int | None,
        leaving: frozenset[str] = frozenset(),
        also: Iterable[Subscription] = (),
        relearns: bool = False,
    ) -> None:
        self.subscription = subscription
        #: The inner filters that are being filled, those inside others first.
        self.missing = missing
        #: The hashes of inner filters that have a node, which stays until ``adopt``.
        self.pinned = pinned
        #: The number of the last entry that is to be read from the log.
        self.upto = upto
        #: Events that are leaving the disk: whether the log still has them is not known.
        self._leaving = leaving
        #: Entries applied since, still to be fed.
        self.queue: deque[LogEntry] = deque(queue)
        #: The inner filters have nodes, which stay in use until their knowledge changes.
        self.relearns = relearns
        #: Nobody waits for it any more: who feeds it may stop.
        self.abandoned = False
        self.replay = Replay(dict(enumerate((subscription, *also))), knowledge, max_open)

    def feed(self, entries: Iterable[LogEntry]) -> list[Decision]:
        """Decide entries in the order of their numbers; returns what is to be stored."""
        made: list[Decision] = []
        for entry in entries:
            if entry.uid in self._leaving and entry.seq <= self.upto:
                continue
            decisions, _ = self.replay.learn(entry)
            made.extend(decision for decision in decisions if decision.inner not in self.pinned)
        return made

    def settle(self, past: Past, limits: Limits) -> None:
        """Every decision returned so far is where ``past`` looks: shrink to the limits here,
        so that ``adopt`` need not. To be called after the last ``feed``, if at all."""
        for inner in self.missing:
            node = self.replay.memory.nodes[inner.name]
            node.past, node.most = past, limits.events_per_filter
            node.evict(self.replay.seq)

    def ready(self, committed: int) -> list[LogEntry]:
        """Waiting entries that are on disk, to be fed off the loop before ``adopt``."""
        taken: list[LogEntry] = []
        while self.queue and self.queue[0].seq <= committed:
            taken.append(self.queue.popleft())
        return taken

    def feed_rest(self) -> list[tuple[int, list[Decision], list[Change]]]:
        """Feed all that waits; for each entry its number, decisions and changes."""
        fed: list[tuple[int, list[Decision], list[Change]]] = []
        while self.queue:
            entry = self.queue.popleft()
            decisions, changes = self.replay.learn(entry)
            kept = [decision for decision in decisions if decision.inner not in self.pinned]
            fed.append((entry.seq, kept, changes))
        return fed
