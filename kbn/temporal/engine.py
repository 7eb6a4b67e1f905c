"""The door of the temporal memory, as the broker calls it.

    admitted = engine.admit(notification, uid, at, arrived)   refuses; changes nothing
    world = World(knowledge, engine.history(admitted))        to match the publication
    entry, decisions = engine.apply(seq, admitted)            remembered, to be stored
    engine.committed(seq)                                     on disk: may leave memory
    engine.undo(seq)                                          the store failed: as before
    engine.let_go(events)                                     retention takes them from disk

``admit`` and ``apply`` come in turn, publication by publication, also in a batch: a
batch is taken back with ``undo`` of its first number. Law: fed any accepted
publications, the answers of ``history`` and the decisions of ``apply`` are those of
``kbn.matching.temporal``. Cost per publication: the inner filters that hold of it,
each O(log); nothing grows with the length of history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from kbn.matching.world import NOTHING_KNOWN, Knowledge
from kbn.model.events import MergedEvent, merge
from kbn.model.filters import Subscription, needs_ontology
from kbn.model.notifications import Notification
from kbn.model.past import Box, Past
from kbn.model.publications import Decision, LogEntry, Part
from kbn.model.settled import Settled
from kbn.temporal.backfill import Backfill
from kbn.temporal.events import classify, is_duplicate, require_duplicate
from kbn.temporal.leaving import Leaving
from kbn.temporal.memory import Change, Inner, Limits, Memory, View, canonical_inner, inners
from kbn.temporal.node import Node


class EventSource(Protocol):
    """Events that are on disk and no longer remembered here."""

    def get(self, event_id: str) -> MergedEvent | None:
        """All that is known of an event; an indexed look-up."""
        ...

    def settled(self, event_id: str) -> Settled | None:
        """What is left of a settled event whose publications are far away; asked before
        ``get``. None: ask ``get``, which is as quick."""
        ...


class NoEvents:
    """Nothing is kept elsewhere."""

    def get(self, event_id: str) -> MergedEvent | None:
        return None

    def settled(self, event_id: str) -> Settled | None:
        return None


class Admitted(NamedTuple):
    """A publication that may be applied, as long as nothing else is applied first."""

    entry: LogEntry
    #: The event with this publication merged in, and as it was known before.
    event: MergedEvent
    known: MergedEvent | None
    #: The number of the newest entry when it was admitted.
    after: int


class Duplicate(NamedTuple):
    """The same publication was accepted before: acknowledge it, and do nothing else."""

    event: str


class _Pending(NamedTuple):
    """An applied entry that is not on disk, with what it takes to take it back."""

    entry: LogEntry
    known: MergedEvent | None
    changes: list[Change]


class TemporalEngine:
    """The history of one broker. ``seq`` is the number of the newest entry applied."""

    def __init__(
        self,
        events: EventSource | None = None,
        past: Past | None = None,
        limits: Limits | None = None,
        knowledge: Knowledge = NOTHING_KNOWN.knowledge,
        seq: int = 0,
    ) -> None:
        self.limits = Limits() if limits is None else limits
        self.memory = Memory(self.limits, past, knowledge)
        self.seq = seq
        #: Everything up to this number is on disk.
        self.durable = seq
        self._events: EventSource = NoEvents() if events is None else events
        #: By id, the least recently told first. Holds every event that is not on disk.
        self._recent: dict[str, MergedEvent] = {}
        self._pending: deque[_Pending] = deque()
        self._backfills: list[Backfill] = []
        #: Events that retention is taking from the disk.
        self.leaving = Leaving(self.memory, self._recent)

    # --- publications ----------------------------------------------------------------

    def admit(
        self, notification: Notification, uid: str, at: int, arrived: int, *, fresh: bool = False
    ) -> Admitted | Duplicate:
        """Check a publication against itself and against what is known. Changes nothing.

        ``fresh`` says that ``uid`` was made for this publication, so that a plain one
        need not be looked up. Raises ``RefusedError`` as ``events`` tells.
        """
        event_id, part, start, end = told = classify(notification, uid, at)
        known = None
        if not (fresh and part is Part.PLAIN):
            settled = self._settled(event_id)
            if settled is not None:
                require_duplicate(settled, told, notification)
                return Duplicate(event_id)
            known = self.event(event_id)
        if known is not None and is_duplicate(known, told, notification):
            return Duplicate(event_id)
        entry = LogEntry(self.seq + 1, event_id, part, at, arrived, start, end, notification)
        return Admitted(entry, merge(known, entry), known, self.seq)

    def history(self, admitted: Admitted) -> View:
        """What the publication finds: everything applied before it, but its own event."""
        return self.memory.view(admitted.event)

    def apply(self, seq: int, admitted: Admitted) -> tuple[LogEntry, list[Decision]]:
        """Accept the publication under a number: the log row and decisions to be stored.

        Raises ``ValueError`` if another was applied since it was admitted, or if the
        number does not rise.
        """
        entry, event, known, after = admitted
        if after != self.seq or seq <= after:
            raise ValueError(f"number {seq}: admitted after {after}, applied after {self.seq}")
        if seq != entry.seq:
            entry = entry._replace(seq=seq)
            event = merge(known, entry)
        decisions, changes = self.memory.decide(event)
        if known is not None:
            self._recent.pop(event.id, None)
        self._recent[event.id] = event
        self._pending.append(_Pending(entry, known, changes))
        self.seq = seq
        for backfill in self._backfills:
            backfill.queue.append(entry)
        return entry, decisions

    def committed(self, seq: int) -> None:
        """Everything up to ``seq`` is on disk, decisions included, and may leave memory."""
        pending = self._pending
        touched: set[Node] = set()
        while pending and pending[0].entry.seq <= seq:
            for node, _, _ in pending.popleft().changes:
                touched.add(node)
        self.durable = max(self.durable, min(seq, self.seq))
        if touched:
            self.memory.evict(touched, self.durable, len(pending))
        self._trim()

    def undo(self, seq: int) -> None:
        """Take back every entry numbered ``seq`` or higher, the newest first.

        Raises ``ValueError`` if one of them is on disk.
        """
        if seq <= self.durable:
            raise ValueError(f"number {seq} is on disk: {self.durable}")
        pending = self._pending
        while pending and pending[-1].entry.seq >= seq:
            entry, known, changes = pending.pop()
            self.memory.undo(changes)
            self._recent.pop(entry.uid, None)
            if known is not None:
                self._recent[entry.uid] = known
        self.seq = pending[-1].entry.seq if pending else self.durable
        for backfill in self._backfills:
            while backfill.queue and backfill.queue[-1].seq >= seq:
                backfill.queue.pop()

    def event(self, event_id: str) -> MergedEvent | None:
        """All that is known of an event, remembered here or kept on disk."""
        known = self._recent.get(event_id)
        if known is None and event_id not in self.leaving:
            known = self._events.get(event_id)
        return known

    def let_go(self, events: Iterable[str]) -> set[str]:
        """Forget events before they leave the disk; returns those that must stay there.

        Those are events that a publication not yet on disk tells of; all of them while
        inner filters are filled from the log, or their decisions are not on disk. Say
        what became of the others to ``leaving`` before more is committed.
        """
        wanted = set(events)
        filling = self._backfills or any(not n.durable for n in self.memory.nodes.values())
        stay = wanted if filling else wanted & {one.entry.uid for one in self._pending}
        self.leaving.take(wanted - stay)
        return stay

    def refill(self, name: str, events: Sequence[MergedEvent], whole: bool) -> None:
        """Give a node that is ``lacking`` the latest events that the store has for it."""
        changed = {event for one in self._pending for _, event, _ in one.changes}
        self.leaving.refill(name, events, changed, whole)

    def is_far(self, event_id: str) -> bool:
        """Whether ``event`` may take long: ask for it elsewhere."""
        return self._settled(event_id) is not None

    def _settled(self, event_id: str) -> Settled | None:
        if event_id in self._recent or event_id in self.leaving:
            return None
        return self._events.settled(event_id)

    def _trim(self) -> None:
        recent = self._recent
        excess = len(recent) - self.limits.recent_events
        if excess <= 0:
            return
        for event in list(recent.values())[: excess + self.limits.recent_events // 8]:
            if event.last_seq <= self.durable:
                del recent[event.id]

    # --- inner filters -----------------------------------------------------------------

    def acquire(self, subscription: Subscription) -> Backfill | None:
        """Make sure that the temporal constraints of a subscription can be asked.

        None: they can, from now on. Otherwise ``feed`` the back-fill from the log and
        ``adopt`` it (or ``abandon`` it); the subscription may be asked only after that.
        """
        missing = self.memory.missing(subscription)
        if not missing or not self.seq:
            self.memory.acquire(subscription)
            return None
        backfill = Backfill(
            subscription,
            missing,
            self.memory.pin(subscription),
            upto=self.durable,
            queue=(pending.entry for pending in self._pending),
            knowledge=self.memory.knowledge,
            max_open=self.limits.max_open,
            leaving=self.leaving.events,
        )
        self._backfills.append(backfill)
        return backfill

    def adopt(self, backfill: Backfill) -> list[Decision]:
        """Feed what waits and go live; returns the last decisions that are to be stored.

        Some may be about entries that are not on disk: store them after those, and
        not at all if ``undo`` takes the entries back. Call ``stored`` once all decisions
        of the back-fill are on disk. Raises ``ValueError`` unless the log was fed up to
        ``upto``, or if it was abandoned.
        """
        made = self._feed_rest(backfill)
        memory = self.memory
        lacking = {inner.name for inner in memory.missing(backfill.subscription)}
        for inner in inners(backfill.subscription):
            if inner.name in lacking:
                node = backfill.replay.memory.nodes[inner.name]
                node.durable = inner.name in backfill.pinned
                memory.install(node)
        memory.acquire(backfill.subscription)
        memory.unpin(backfill.pinned)
        return made

    def relearn(
        self, subscriptions: Iterable[Subscription], knowledge: Knowledge
    ) -> Backfill | None:
        """Have inner filters that ask about terms decided anew, under knowledge to come.

        ``subscriptions`` are those in use that have such filters. None: there are no such
        filters. Otherwise ``feed`` the log and ``swap``; no ``acquire`` of a subscription
        that asks about terms may come between.
        """
        nodes = self.memory.nodes
        asked: list[Subscription] = []
        missing: dict[str, Inner] = {}
        shared: set[str] = set()
        for subscription in subscriptions:
            for inner in inners(subscription):
                if inner.name in nodes and needs_ontology(inner.subscription):
                    missing[inner.name] = inner
                else:
                    shared.add(inner.name)
            asked.append(subscription)
        if not missing:
            return None
        backfill = Backfill(
            asked[0],
            list(missing.values()),
            frozenset(shared),
            upto=self.durable,
            queue=(pending.entry for pending in self._pending),
            knowledge=knowledge,
            max_open=self.limits.max_open,
            leaving=self.leaving.events,
            also=asked[1:],
            relearns=True,
        )
        self._backfills.append(backfill)
        return backfill

    def swap(self, knowledge: Knowledge, backfill: Backfill | None) -> list[Decision]:
        """Answer by other knowledge from now on; the last decisions of ``relearn``.

        Law: from here on the answers are those of an engine that was fed the whole log
        under this knowledge. Store the decisions as for ``adopt``, in place of the old.
        """
        made: list[Decision] = []
        memory = self.memory
        if backfill is not None:
            made = self._feed_rest(backfill)
            for inner in backfill.missing:
                if inner.name in memory.nodes:
                    node = backfill.replay.memory.nodes[inner.name]
                    node.durable = False
                    memory.install(node)
        memory.knowledge = knowledge
        return made

    def _feed_rest(self, backfill: Backfill) -> list[Decision]:
        if backfill not in self._backfills:
            raise ValueError("this back-fill is not under way")
        if backfill.replay.seq < backfill.upto:
            raise ValueError(f"fed up to {backfill.replay.seq} of {backfill.upto}")
        self._backfills.remove(backfill)
        made: list[Decision] = []
        pending = {one.entry.seq: one for one in self._pending}
        for seq, decisions, changes in backfill.feed_rest():
            made.extend(decisions)
            if seq in pending:
                pending[seq].changes.extend(changes)
        return made

    def stored(self, backfill: Backfill) -> None:
        """Every decision of an adopted back-fill is on disk."""
        for inner in backfill.missing:
            node = self.memory.nodes.get(inner.name)
            if node is not None:
                node.durable = True

    def abandon(self, backfill: Backfill) -> None:
        """The subscriber left before ``adopt``: nothing is kept."""
        backfill.abandoned = True
        if backfill in self._backfills:
            self._backfills.remove(backfill)
            if not backfill.relearns:
                self.memory.unpin(backfill.pinned)

    def release(self, subscription: Subscription) -> None:
        """Undo one ``acquire`` that returned None or was adopted."""
        self.memory.release(subscription)

    def load(
        self, inner: Subscription, heads: Iterable[Decision], beyond: Box | None = None
    ) -> None:
        """Fill a node from stored decisions, before the first ``acquire`` after a restart.

        ``heads`` are the newest decisions, one for each event: of all events that can
        still change and of the latest that cannot; ``beyond`` is a box around the final
        events that are left out, with four bounds, or None if there are none. Inner
        subscriptions inside others first (``inners``); ``prune`` when done.
        """
        name, held = canonical_inner(inner)
        node = Node(held, name, 0, self.memory.past, self.limits.events_per_filter)
        node.attributed = True
        for decision in heads:
            event = self.event(decision.event) if decision.holds else None
            if event is not None:
                node.put(event)
        node.gone = beyond
        node.complete = sum(kept.final for kept in node.held.values())
        self.memory.install(node)

    def prune(self) -> None:
        """Forget loaded nodes that no subscription acquired."""
        self.memory.prune()
