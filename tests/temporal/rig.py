"""A broker's use of the engine, step by step, beside the definition."""

from __future__ import annotations

from kbn.errors import RefusedError
from kbn.matching.index import PredicateIndex
from kbn.matching.naive import matches
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import World
from kbn.temporal import Admitted, Limits, TemporalEngine
from kbn.temporal.memory import inners
from tests.temporal.worlds import Parity, Store

KNOWLEDGE = Parity()


class Rig:
    """A broker's use of the engine beside the definition: a store that lags, and fails."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.store = Store()
        self.engine = TemporalEngine(self.store, self.store, limits, KNOWLEDGE)
        self.naive = NaiveHistory(knowledge=KNOWLEDGE, max_open=limits.max_open)
        self.asked: list = []
        self.index = PredicateIndex()
        self.backfills: list = []
        self.loose: list = []
        #: Applied and not on disk.
        self.waiting: list = []
        self.told: list = []
        self.uid = 0

    def subscribe(self, asked) -> None:
        backfill = self.engine.acquire(asked)
        if backfill is None:
            self._subscribed(asked)
        else:
            self.backfills.append(backfill)

    def _subscribed(self, asked) -> None:
        self.index.add(len(self.asked), asked)
        self.asked.append(asked)

    def fill(self) -> None:
        """Finish the oldest back-fill, reading the log in two pieces."""
        if not self.backfills:
            return
        backfill = self.backfills.pop(0)
        log = [e for e in self.store.entries if e.seq <= backfill.upto]
        for piece in (log[: len(log) // 2], log[len(log) // 2 :]):
            self.store.append(None, backfill.feed(piece))
        self.store.append(None, backfill.feed(backfill.ready(self.engine.durable)))
        if self.uid % 2:
            backfill.settle(self.store, self.limits)
        self.loose.append((backfill, self.engine.adopt(backfill)))
        self._subscribed(backfill.subscription)
        self._store_loose()

    def _store_loose(self) -> None:
        """Decisions of a back-fill are stored after the entries they are about."""
        kept = []
        for backfill, decisions in self.loose:
            if all(decision.seq <= self.engine.durable for decision in decisions):
                self.store.append(None, decisions)
                self.engine.stored(backfill)
            else:
                kept.append((backfill, decisions))
        self.loose = kept

    def unsubscribe(self) -> None:
        if self.asked:
            asked = self.asked.pop()
            self.index.remove(len(self.asked))
            self.engine.release(asked)

    def publish(self, notification, at, skip) -> None:
        self.uid += 1
        try:
            admitted = self.engine.admit(notification, f"#{self.uid}", at, at)
        except RefusedError:
            return
        if not isinstance(admitted, Admitted):
            return
        seq = self.engine.seq + skip
        found = self.index.match(notification, World(KNOWLEDGE, self.engine.history(admitted)))
        entry, decisions = self.engine.apply(seq, admitted)
        world = World(KNOWLEDGE, self.naive.about(entry))
        for key, asked in enumerate(self.asked):
            assert (key in found) == matches(asked, notification, world), asked
        self.naive.append(entry)
        self.told.append((seq, found))
        self.waiting.append((entry, decisions))
        self.check_decisions(decisions)

    def check_decisions(self, decisions) -> None:
        """Every node says what the definition says, and tells all that changed."""
        said = {d.inner: d.holds for d in decisions}
        number = len(self.naive.entries) - 1
        entry = self.naive.entries[number]
        for name, node in self.engine.memory.nodes.items():
            holds = self.naive.decided(node.inner, number)
            assert (entry.uid in node.held) == holds
            if holds or name in said:
                assert said[name] == holds

    def commit(self, count) -> None:
        for entry, decisions in self.waiting[:count]:
            self.store.append(entry, decisions)
        if self.waiting[:count]:
            last = self.waiting[:count][-1][0].seq
            del self.waiting[:count]
            self.engine.committed(last)
            self._store_loose()

    def fail(self) -> None:
        """The store could not write what waits."""
        if self.waiting:
            first = self.waiting[0][0].seq
            self.engine.undo(first)
            self.loose = [(b, [d for d in made if d.seq < first]) for b, made in self.loose]
            self._store_loose()
            del self.naive.entries[-len(self.waiting) :]
            self.naive._decided.clear()
            self.waiting.clear()

    def restart(self) -> None:
        """What was on disk survives: nodes come back from their decisions alone."""
        self.fail()
        for backfill in self.backfills:
            self.engine.abandon(backfill)
        self.backfills.clear()
        seq = self.engine.seq
        live = dict(self.engine.memory.nodes)
        self.engine = TemporalEngine(self.store, self.store, self.limits, KNOWLEDGE, seq)
        for asked in self.asked:
            for name, inner in inners(asked):
                heads = [d for d in self.store.decisions.values() if d.inner == name]
                if name not in self.engine.memory.nodes and seq:
                    kept = live[name]
                    if kept.gone is not None:
                        heads = [d for d in heads if d.event in kept.held]
                    self.engine.load(inner, heads, kept.gone)
        for asked in self.asked:
            assert self.engine.acquire(asked) is None
        self.engine.prune()


def entries_of(published):
    """The log that a broker would keep of these publications."""
    engine = TemporalEngine()
    log = []
    for number, (notification, at) in enumerate(published):
        try:
            admitted = engine.admit(notification, f"#{number}", at, at)
        except RefusedError:
            continue
        if isinstance(admitted, Admitted):
            log.append(engine.apply(engine.seq + 1, admitted)[0])
    return log
