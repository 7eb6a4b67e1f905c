"""The law of the temporal memory: its answers and decisions are the definition's."""

from __future__ import annotations

import pickle
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from kbn.errors import RefusedError
from kbn.matching.index import PredicateIndex
from kbn.matching.naive import matches
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import World
from kbn.temporal import Admitted, Limits, Replay, TemporalEngine, replay
from kbn.temporal.memory import inners
from tests.temporal.worlds import Parity, Store, publications, subscriptions

KNOWLEDGE = Parity()
limits = st.builds(
    Limits,
    events_per_filter=st.sampled_from([0, 1, 2, 50]),
    recent_events=st.sampled_from([0, 1, 50]),
    max_open=st.sampled_from([None, 0, 3]),
)


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
        self.store.append(None, self.engine.adopt(backfill))
        self.engine.stored(backfill)
        self._subscribed(backfill.subscription)

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

    def fail(self) -> None:
        """The store could not write what waits."""
        if self.waiting:
            self.engine.undo(self.waiting[0][0].seq)
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
                    if kept.gone is not None and kept.windows:
                        heads = [d for d in heads if not d.holds or d.event in kept.held]
                        self.engine.load(inner, heads, kept.gone)
                    else:
                        self.engine.load(inner, heads)
        for asked in self.asked:
            assert self.engine.acquire(asked) is None
        self.engine.prune()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), publications(), st.sampled_from([1, 1, 3])),
        st.tuples(st.just("publish"), publications(), st.sampled_from([1, 1, 3])),
        st.tuples(st.just("publish"), publications(), st.sampled_from([1, 1, 3])),
        st.tuples(st.just("commit"), st.integers(1, 5)),
        st.tuples(st.sampled_from(["fail", "fill", "unsubscribe", "restart"])),
        st.tuples(st.just("subscribe"), subscriptions),
    ),
    max_size=30,
)


@settings(max_examples=300)
@given(limits, st.lists(subscriptions, min_size=1, max_size=3), steps)
def test_memory_backfill_eviction_undo_and_restart_answer_as_the_definition(limits, first, steps):
    with mock.patch("kbn.temporal.node.SLACK", 0):
        rig = Rig(limits)
        for asked in first:
            rig.subscribe(asked)
        for step in steps:
            if step[0] == "publish":
                (notification, at), skip = step[1:]
                rig.publish(notification, at, skip)
            else:
                getattr(rig, step[0])(*step[1:])


logs = st.lists(publications(), max_size=25)


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


@given(logs, st.lists(subscriptions, min_size=1, max_size=3), st.integers(0, 25))
def test_replay_in_pieces_through_a_pickle_tells_what_the_definition_tells(published, asked, cut):
    log = entries_of(published)
    wanted = dict(enumerate(asked))
    early, state = replay(log[:cut], wanted, knowledge=KNOWLEDGE)
    revived = pickle.loads(pickle.dumps(state))
    assert isinstance(revived, Replay)
    late, _ = replay(log[cut:], wanted, revived)
    found = {delivery.seq: delivery.keys for delivery in [*early, *late]}
    naive = NaiveHistory(knowledge=KNOWLEDGE)
    for entry in log:
        world = World(KNOWLEDGE, naive.about(entry))
        told = {k for k, s in wanted.items() if matches(s, entry.notification, world)}
        assert found.get(entry.seq, frozenset()) == told
        naive.append(entry)
