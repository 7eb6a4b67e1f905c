"""Events that retention took: a memory that lived through it answers as one loaded afterwards."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.memory import MemoryStore
from datastore.store import Batch, StoredSession, StoredSubscription
from kbn.errors import RefusedError, StoreError
from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.world import World
from kbn.server.care import Care
from kbn.server.history import open_history
from kbn.temporal import Admitted, Limits
from tests.temporal.worlds import publication, publications, subscriptions


class Kept:
    """An engine over a store, as a broker has them; what it is told is written by ``commit``."""

    def __init__(self, asked, limits=None):
        self.store, self.asked, self.limits = MemoryStore(), asked, limits
        units = tuple(StoredSubscription(f"s/{n}", one) for n, one in enumerate(asked))
        self.store.save_session(StoredSession("s", units))
        self.engine = open_history(self.store, limits=limits).engine
        self._entries, self._decisions = [], []
        self.arrived = 0

    def publish(self, notification, at=0):
        self.arrived += 10
        uid = f"plain-{self.arrived}"
        try:
            admitted = self.engine.admit(notification, uid, at, self.arrived)
        except RefusedError:
            return
        if isinstance(admitted, Admitted):
            entry, decisions = self.engine.apply(self.engine.seq + 1, admitted)
            self._entries.append(entry)
            self._decisions += decisions

    def commit(self):
        self.store.append(Batch(self._entries, decisions=self._decisions))
        self._entries, self._decisions = [], []
        self.engine.committed(self.engine.seq)

    def retain(self, **bounds):
        care = Care(**bounds)
        return care.retain(self.store, self.arrived, self.engine, lambda ask, *said: ask(*said))

    def answers(self, engine, probes):
        """What each publication would be told to, and decided as, by an engine."""
        found = []
        for notification, at in probes:
            try:
                admitted = engine.admit(notification, "probe", at, self.arrived)
            except RefusedError as error:
                found.append(error.code)
                continue
            if not isinstance(admitted, Admitted):
                found.append(admitted)
                continue
            world = World(engine.memory.knowledge, engine.history(admitted))
            told = [matches(one, notification, world) for one in self.asked]
            _, decisions = engine.apply(engine.seq + 1, admitted)
            engine.undo(engine.seq)
            found.append((admitted.event.notification, told, sorted(decisions)))
        return found

    def compare(self, probes):
        self.commit()
        again = open_history(self.store, limits=self.limits).engine
        assert self.answers(self.engine, probes) == self.answers(again, probes)


limits = st.builds(
    Limits,
    events_per_filter=st.sampled_from([0, 1, 3, 50]),
    recent_events=st.sampled_from([0, 1, 50]),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), publications()),
        st.tuples(st.just("publish"), publications()),
        st.tuples(st.just("publish"), publications()),
        st.tuples(st.just("commit")),
        st.tuples(st.just("count"), st.integers(1, 6)),
        st.tuples(st.just("age"), st.sampled_from([10, 50, 120])),
        st.tuples(st.just("fail"), st.integers(1, 6)),
    ),
    min_size=8,
    max_size=40,
)


@given(
    limits,
    st.lists(subscriptions, min_size=1, max_size=3),
    steps,
    st.lists(publications(), min_size=3, max_size=8),
)
def test_a_memory_that_lived_through_retention_answers_as_one_loaded_afterwards(
    limits, asked, steps, probes
):
    with mock.patch("kbn.temporal.node.SLACK", 0):
        kept = Kept(asked, limits)
        for kind, *said in steps:
            if kind == "publish":
                kept.publish(*said[0])
            elif kind == "commit":
                kept.commit()
            elif kind == "fail":
                with mock.patch.object(kept.store, "_delete", side_effect=StoreError("no")):
                    try:
                        kept.retain(count=said[0])
                    except StoreError:
                        kept.compare(probes)
            else:
                kept.retain(**{kind: said[0]})
        kept.compare(probes)


def instant(name, at, **content):
    return publication("INSTANT", name, at, at, **content)


def test_a_window_gets_back_what_was_evicted_when_later_events_are_taken():
    asked = [parse_subscription("a filter(=, last 2) { a any }")]
    with mock.patch("kbn.temporal.node.SLACK", 0):
        kept = Kept(asked, Limits(events_per_filter=2))
        # The latest in time arrived first: they go first, and stood in the window.
        for number in range(8):
            kept.publish(instant(f"e{number}", 100 - number, a=number))
        kept.commit()
        (node,) = kept.engine.memory.nodes.values()
        assert node.gone is not None
        assert kept.retain(count=4) == 4
        told = kept.answers(kept.engine, [(instant("x", 5, a=n), 5) for n in range(8)])
        assert [n for n, answer in enumerate(told) if answer[1] == [True]] == [4, 5]


def test_an_event_of_which_more_is_on_its_way_to_the_disk_stays():
    kept = Kept([parse_subscription("start during { a = 1 }")])
    kept.publish(publication("END", "e", None, 9, a=1))
    kept.publish(publication("INSTANT", "f", 5, 5, a=2))
    kept.commit()
    kept.publish(publication("START", "e", 3, a=1))
    assert kept.retain(count=1) == 0
    kept.commit()
    assert [entry.uid for entry in kept.store.log()] == ["e", "f", "e"]
    assert kept.answers(kept.engine, [(instant("x", 4), 4)])[0][1] == [True]


def test_nothing_goes_while_a_new_inner_filter_is_filled_and_what_is_going_is_not_filled_in():
    kept = Kept([])
    for number in range(4):
        kept.publish(instant(f"e{number}", number, a=1))
    kept.commit()
    asked = parse_subscription("end after(1s) { a = 1 }")
    backfill = kept.engine.acquire(asked)
    assert kept.retain(count=1) == 0
    kept.engine.abandon(backfill)
    assert kept.engine.let_go(["e0", "e1"]) == set()
    backfill = kept.engine.acquire(asked)
    assert [decision.event for decision in backfill.feed(kept.store.log())] == ["e2", "e3"]


def test_an_event_that_is_leaving_is_unknown_though_the_disk_still_has_it():
    kept = Kept([])
    kept.publish(instant("e", 1))
    kept.commit()
    kept.engine.let_go(["e"])
    assert kept.engine.event("e") is None
    kept.engine.leaving.stayed({"e"})
    assert kept.engine.event("e") is not None


def test_a_store_that_fails_is_told_of_after_the_memory_was_put_right():
    kept = Kept([parse_subscription("start during { a = 1 }")])
    for number in range(3):
        kept.publish(instant(f"e{number}", number, a=1))
    kept.commit()
    with (
        mock.patch.object(kept.store, "_delete", side_effect=StoreError("no")),
        pytest.raises(StoreError),
    ):
        kept.retain(count=1)
    assert kept.answers(kept.engine, [(instant("x", 0), 0)])[0][1] == [True]
