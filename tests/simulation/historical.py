"""Brokers with a history in the simulated network: a store in memory behind a slow disk."""

from __future__ import annotations

from collections import deque

from datastore.memory import MemoryStore
from kbn.broker.instructions import Fill, Forget, ReadSpool, Recall, Record, SaveSession
from kbn.broker.remembering import Kept
from kbn.broker.stimuli import Filled, Recalled, Recorded, Saved, Spooled, Unrecorded
from kbn.matching.world import NOTHING_KNOWN
from kbn.server.history import open_history, past_of
from tests.simulation.network import Network, Node


class HistoricalNode(Node):
    """A broker whose disk takes its time, and now and then refuses."""

    def __init__(self, network: Network, name: str, **settings: object) -> None:
        self.store = MemoryStore()
        self._network = network
        self._disk: deque[object] = deque()
        self._refused = -1
        super().__init__(network, name, **settings)

    def kept(self) -> Kept:
        return open_history(self.store)

    def perform(self, instruction: object) -> None:
        """One after the other, each after a while."""
        self._disk.append(instruction)
        if len(self._disk) == 1:
            self._soon()

    def _soon(self) -> None:
        clock = self._network.clock
        clock.after(clock.random.randint(1, 15), self._next)

    def _next(self) -> None:
        instruction = self._disk[0]
        stimuli = self._done(instruction)
        self._disk.popleft()
        if self._disk:
            self._soon()
        for stimulus in stimuli:
            self.feed(stimulus)

    def _done(self, asked: object) -> list[object]:
        store = self.store
        if isinstance(asked, Record):
            if asked.epoch <= self._refused:
                return []
            if self._network.clock.random.random() < self._network.disk_failures:
                self._refused = asked.epoch
                return [Unrecorded(asked.epoch, "store_unavailable", "the disk refused")]
            store.append(asked.batch)
            return [Recorded(asked.upto)]
        if isinstance(asked, Fill):
            backfill = asked.backfill
            made = backfill.feed(store.log(0, backfill.upto))
            backfill.replay.seq = max(backfill.replay.seq, backfill.upto)
            return [Filled(asked.number, tuple(made))]
        if isinstance(asked, Recall):
            pieces = past_of(store, asked, NOTHING_KNOWN, None)
            told: list[object] = [Recalled(asked.number, piece) for piece in pieces]
            return [*told, Recalled(asked.number, [], done=True)]
        if isinstance(asked, ReadSpool):
            return [Spooled(store.spooled(asked.after, 500))]
        if isinstance(asked, SaveSession):
            store.save_session(asked.session)
            return [Saved(asked.link, asked.seq, asked.number)]
        assert isinstance(asked, Forget)
        for session in asked.sessions:
            store.drop_session(session)
        for inner in asked.inners:
            store.forget_inner(inner)
        return []


class HistoricalNetwork(Network):
    """A tree of brokers with histories of their own."""

    node = HistoricalNode
    #: How often a write is refused.
    disk_failures = 0.0
