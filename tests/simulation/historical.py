"""Brokers with a history in the simulated network: a store in memory behind a slow disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from datastore.memory import MemoryStore
from kbn.broker.delivering import Publication
from kbn.broker.instructions import (
    Fill,
    Forget,
    ReadSpool,
    Recall,
    Record,
    SaveSession,
    Trim,
)
from kbn.broker.remembering import Kept
from kbn.broker.stimuli import (
    Filled,
    Recalled,
    Recorded,
    Saved,
    Spooled,
    Trimmed,
    Unrecorded,
)
from kbn.matching.world import NOTHING_KNOWN
from kbn.server.history import open_history
from kbn.server.reading import past_of
from kbn.temporal.memory import Limits
from tests.simulation.network import Network, Node


class HistoricalNode(Node):
    """A broker whose disk takes its time, and now and then refuses."""

    def __init__(self, network: Network, name: str, **settings: object) -> None:
        self.store = MemoryStore()
        self._network = network
        self._disk: deque[object] = deque()
        self._refused = -1
        #: Rises with every restart: what the disk was asked before is not answered.
        self._life = 0
        self.restarts = 0
        #: Arrival numbers of what came as history only.
        self.silent: set[int] = set()
        super().__init__(network, name, **settings)

    def kept(self) -> Kept:
        return open_history(self.store, limits=self._network.memory_limits)

    def begin(self) -> None:
        super().begin()
        memory = self.state.memory
        assert memory is not None
        accept = memory.accept

        def noting(publication: Publication, *rest: Any, **more: Any) -> int:
            seq = accept(publication, *rest, **more)
            if publication.history:
                self.silent.add(seq)
            return seq

        memory.accept = noting  # type: ignore[method-assign]

    def restart(self) -> None:
        """As after a kill: connections are cut, what is not on disk never was."""
        self._life += 1
        self.restarts += 1
        self._disk.clear()
        self._refused = -1
        for end in list(self.ends.values()):
            end.received = lambda data: None
            end.closed = lambda reason: None
            end.connection.break_now()
        self.begin()

    def perform(self, instruction: object) -> None:
        """One after the other, each after a while."""
        self._disk.append(instruction)
        if len(self._disk) == 1:
            self._soon()

    def _soon(self) -> None:
        clock = self._network.clock
        life = self._life
        clock.after(clock.random.randint(1, 15), lambda: self._next(life))

    def _next(self, life: int) -> None:
        if life != self._life:
            return
        instruction = self._disk[0]
        stimuli = self._done(instruction)
        self._disk.popleft()
        if self._disk:
            self._soon()
        for stimulus in stimuli:
            self.feed(stimulus)

    def _fails(self) -> bool:
        return self._network.clock.random.random() < self._network.disk_failures

    def _done(self, asked: object) -> list[object]:
        if isinstance(asked, Trim | Forget):
            return self._let_go(asked)
        store = self.store
        if isinstance(asked, Record):
            if asked.epoch <= self._refused:
                return []
            if self._fails():
                self._refused = asked.epoch
                return [Unrecorded(asked.epoch, "store_unavailable", "the disk refused")]
            store.append(asked.batch)
            return [Recorded(asked.upto, asked.number)]
        if isinstance(asked, Fill):
            if self._fails():
                return [Filled(asked.number, failure="the disk refused")]
            backfill = asked.backfill
            made = backfill.feed(store.log(0, backfill.upto))
            backfill.replay.seq = max(backfill.replay.seq, backfill.upto)
            return [Filled(asked.number, tuple(made))]
        if isinstance(asked, Recall):
            if self._fails():
                return [Recalled(asked.number, [], failed=True)]
            pieces = past_of(store, asked, NOTHING_KNOWN, None)
            self._hand_over(asked.number, (item for piece in pieces for item in piece), self._life)
            return []
        if isinstance(asked, ReadSpool):
            return [Spooled(None if self._fails() else store.spooled(asked.after, 5))]
        assert isinstance(asked, SaveSession)
        failure = "the disk refused" if self._fails() else None
        if failure is None:
            store.save_session(asked.session)
        return [Saved(asked.session.name, asked.link, asked.seq, asked.number, failure)]

    def _let_go(self, asked: Trim | Forget) -> list[object]:
        store = self.store
        if isinstance(asked, Trim):
            lost = {
                name: store.trim_backlog(name, before=asked.before, max_bytes=asked.max_bytes)
                for name in asked.sessions
            }
            return [Trimmed(name, count) for name, count in lost.items() if count]
        for session in asked.sessions:
            store.drop_session(session)
        for inner in asked.inners:
            store.forget_inner(inner)
        for session, count in asked.losses:
            store.losses_told(session, count)
        return []

    def _hand_over(self, number: int, items: Iterator[object], life: int) -> None:
        """At the pace of its receiver, as the shell does; now and then it breaks off."""
        if life != self._life:
            return
        recalling = self.state.recalling
        assert recalling is not None
        room = recalling.room(number)
        if room is None:
            self.feed()
            return
        clock = self._network.clock
        if room:
            item = next(items, None)
            if item is None:
                self.feed(Recalled(number, [], done=True))
                return
            if self._fails():
                self.feed(Recalled(number, [], failed=True))
                return
            self.feed(Recalled(number, [item]))
        clock.after(
            clock.random.randint(0, 2) if room else 20,
            lambda: self._hand_over(number, items, life),
        )


class HistoricalNetwork(Network):
    """A tree of brokers with histories of their own."""

    node = HistoricalNode
    #: How often a write is refused.
    disk_failures = 0.0
    memory_limits: Limits | None = None
