"""The law of the temporal memory: its answers and decisions are the definition's."""

from __future__ import annotations

import pickle
from collections import Counter
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from kbn.errors import RefusedError
from kbn.matching.naive import matches
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import World
from kbn.temporal import Admitted, Limits, Replay, TemporalEngine, replay
from tests.temporal import sweep
from tests.temporal.rig import KNOWLEDGE, Rig, entries_of
from tests.temporal.worlds import logs, publications, subscriptions

limits = st.builds(
    Limits,
    events_per_filter=st.sampled_from([0, 1, 2, 50]),
    recent_events=st.sampled_from([0, 1, 50]),
    max_open=st.sampled_from([None, 0, 3]),
)

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


def test_long_random_histories_are_answered_as_by_the_definition():
    total = sum((sweep.run(seed) for seed in range(30)), Counter())
    assert total["evicting_nodes"]
    assert total["past_questions"]
    assert total["matches"]


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


@given(logs, st.lists(subscriptions, min_size=1, max_size=3))
def test_a_live_engine_and_a_replay_of_its_log_decide_the_same(published, asked):
    engine = TemporalEngine(knowledge=KNOWLEDGE)
    again = Replay(dict(enumerate(asked)), KNOWLEDGE)
    for subscription in asked:
        engine.acquire(subscription)
    for number, (notification, at) in enumerate(published):
        try:
            admitted = engine.admit(notification, f"#{number}", at, at)
        except RefusedError:
            continue
        if isinstance(admitted, Admitted):
            entry, decisions = engine.apply(engine.seq + 1, admitted)
            assert again.learn(entry)[0] == decisions
