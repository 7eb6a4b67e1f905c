"""The log, read again: who would have been told what, and what would be decided.

Law: ``replay`` tells of every entry exactly the subscriptions that match it under
the definition, given all entries before; feeding a live engine the same entries
gives the same decisions. It serves back-fill, ``since`` and Spark alike: the state is
picklable, so a log can be read in pieces, here or elsewhere.

Nothing is evicted: the events that match inner filters are held in memory, of the
others only those that are still open. Cost: one match of the subscriptions and one
of the inner filters per entry.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from kbn.matching.index import PredicateIndex
from kbn.matching.world import NOTHING_KNOWN, Knowledge, World
from kbn.model.events import MergedEvent, merge
from kbn.model.filters import Subscription
from kbn.model.publications import Decision, LogEntry
from kbn.temporal.memory import UNLIMITED, Change, Limits, Memory
from kbn.temporal.node import Held

Made: TypeAlias = tuple[list[Decision], list[Change]]


class Delivery(NamedTuple):
    """A publication and the keys of the subscriptions that it matches, in no order."""

    seq: int
    keys: frozenset[Hashable]


class Replay:
    """The state of a replay: everything that entries to come may ask.

    Raises ``ValueError`` where the numbers of entries do not rise.
    """

    def __init__(
        self,
        subscriptions: Mapping[Hashable, Subscription],
        knowledge: Knowledge = NOTHING_KNOWN.knowledge,
        max_open: int | None = None,
    ) -> None:
        limits = Limits(events_per_filter=UNLIMITED, max_open=max_open)
        self.memory = Memory(limits, knowledge=knowledge)
        self.subscriptions = dict(subscriptions)
        #: The number of the newest entry read.
        self.seq = 0
        #: Events that may get a further publication.
        self._open: dict[str, MergedEvent] = {}
        self._index = PredicateIndex()
        for key, subscription in self.subscriptions.items():
            self.memory.acquire(subscription)
            self._index.add(key, subscription)

    def feed(self, entry: LogEntry) -> frozenset[Hashable]:
        """Remember an entry; the keys of all subscriptions that it matches."""
        event = self._merged(entry)
        view = self.memory.view(event)
        found = self._index.match(entry.notification, World(self.memory.knowledge, view))
        self._learned(event, self.memory.decide(event, view))
        return frozenset(found)

    def ask(self, entry: LogEntry) -> frozenset[Hashable]:
        """The keys of all subscriptions that an entry matches, which is not remembered.

        As ``feed``, if it is about a complete event of which no inner filter can hold.
        """
        event = self._merged(entry)
        self.seq = entry.seq
        world = World(self.memory.knowledge, self.memory.view(event))
        return frozenset(self._index.match(entry.notification, world))

    def learn(self, entry: LogEntry) -> tuple[list[Decision], list[Change]]:
        """Remember an entry, whoever it matches: the decisions, and what they changed."""
        event = self._merged(entry)
        return self._learned(event, self.memory.decide(event))

    def _merged(self, entry: LogEntry) -> MergedEvent:
        if entry.seq <= self.seq:
            raise ValueError(f"number {entry.seq} comes after {self.seq}")
        return merge(self._open.get(entry.uid), entry)

    def _learned(self, event: MergedEvent, made: Made) -> Made:
        if event.final:
            self._open.pop(event.id, None)
        else:
            self._open[event.id] = event
        self.seq = event.last_seq
        return made

    def __reduce__(self) -> tuple[object, ...]:
        held = {name: node.held for name, node in self.memory.nodes.items()}
        arguments = (self.subscriptions, self.memory.knowledge, self.memory.limits.max_open)
        return (_revive, (arguments, self.seq, self._open, held))


def _revive(
    arguments: tuple[Mapping[Hashable, Subscription], Knowledge, int | None],
    seq: int,
    known: dict[str, MergedEvent],
    held: dict[str, dict[str, Held]],
) -> Replay:
    revived = Replay(*arguments)
    revived.seq = seq
    revived._open = known
    revived.memory.refill(held)
    return revived


def replay(
    entries: Iterable[LogEntry],
    subscriptions: Mapping[Hashable, Subscription],
    state: Replay | None = None,
    *,
    knowledge: Knowledge = NOTHING_KNOWN.knowledge,
    max_open: int | None = None,
) -> tuple[list[Delivery], Replay]:
    """Read entries in the order of their numbers: what each would have been told to whom.

    With the ``state`` that an earlier call returned, for the same subscriptions, it
    goes on where that one ended.
    """
    if state is None:
        state = Replay(subscriptions, knowledge, max_open)
    deliveries: list[Delivery] = []
    for entry in entries:
        keys = state.feed(entry)
        if keys:
            deliveries.append(Delivery(entry.seq, keys))
    return deliveries, state
