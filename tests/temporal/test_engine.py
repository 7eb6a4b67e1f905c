"""The engine's door: order of calls, sharing of nodes, back-fill, undo."""

from __future__ import annotations

import pytest

from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.world import World
from kbn.model.past import Box
from kbn.temporal import Limits, TemporalEngine, inner_hash
from kbn.temporal.memory import inners
from tests.temporal.worlds import Store, publication


def tell(engine, notification, at=0):
    admitted = engine.admit(notification, f"#{engine.seq}", at, at)
    return engine.apply(engine.seq + 1, admitted)


def asks(engine, asked, notification, at=0):
    admitted = engine.admit(notification, "#x", at, at)
    return matches(asked, notification, World(history=engine.history(admitted)))


NEAR = parse_subscription("end after(2s) { k = 1 and end after(1s) { k = 2 } }")
WIDE = parse_subscription("end after(9s) { k = 2 } or start during { k >= 5 and k > 4 }")


def test_equal_inner_filters_are_one_node_whoever_asks_and_however_written():
    engine = TemporalEngine()
    for text in (
        "end after(2s) { a = 1 and b = 2 }",
        "start during { b = 2.0 and a = 1 }",
        "p filter(<, last 3) { a = 1 and a <= 5 and b = 2 }",
    ):
        assert engine.acquire(parse_subscription(text)) is None
    assert len(engine.memory.nodes) == 1
    (name,) = engine.memory.nodes
    assert name == inner_hash(parse_subscription("b = 2 and a = 1"))
    assert len(name) == 64


def test_a_hash_is_stable():
    assert inner_hash(parse_subscription("a = 1")) == (
        "b5bc1ffd90912fb18bef6e7d80909192c7a6492896320156d67fbaf104c6544a"
    )


def test_nodes_live_as_long_as_somebody_uses_them_nested_ones_included():
    engine = TemporalEngine()
    for asked in (NEAR, NEAR, WIDE):
        engine.acquire(asked)
    assert len(engine.memory.nodes) == 3
    engine.release(NEAR)
    assert len(engine.memory.nodes) == 3
    engine.release(NEAR)
    assert {inner_hash(parse_subscription(t)) for t in ("k = 2", "k >= 5")} == set(
        engine.memory.nodes
    )
    engine.release(WIDE)
    assert not engine.memory.nodes
    assert tell(engine, publication("INSTANT", "a", 1, 1, k=2))[1] == []


def test_inner_filters_are_listed_those_inside_others_first():
    inner = parse_subscription("k = 1 and end after(1s) { k = 2 }")
    names = [name for name, _ in inners(NEAR)]
    assert names == [inner_hash(parse_subscription("k = 2")), inner_hash(inner)]


def test_decisions_tell_what_holds_and_what_ceased_to():
    engine = TemporalEngine()
    asked = parse_subscription("start during { k = 1 }")
    engine.acquire(asked)
    name = inner_hash(parse_subscription("k = 1"))
    assert tell(engine, publication("START", "a", 5, k=1))[1] == [(name, "a", 1, True, 5, None)]
    assert tell(engine, publication("END", "a", None, 9, k=2))[1] == [(name, "a", 2, False, 5, 9)]
    assert tell(engine, publication("START", "b", 5, k=2))[1] == []
    # A decision says no start before the START came, even where the END states it.
    assert tell(engine, publication("END", "c", 5, 9, k=1))[1] == [(name, "c", 4, True, None, 9)]
    assert tell(engine, publication("START", "c", 5))[1] == [(name, "c", 5, True, 5, 9)]


def test_what_was_admitted_is_applied_next_or_not_at_all():
    engine = TemporalEngine()
    first = engine.admit(publication("START", "a", 5), "#1", 0, 0)
    second = engine.admit(publication("START", "a", 6), "#2", 0, 0)
    engine.apply(1, first)
    with pytest.raises(ValueError, match="admitted after 0"):
        engine.apply(2, second)
    with pytest.raises(ValueError, match="number 1"):
        engine.apply(1, engine.admit(publication("START", "b", 6), "#2", 0, 0))


def test_undo_takes_a_batch_back_and_what_is_on_disk_stays():
    engine = TemporalEngine()
    asked = parse_subscription("end after(9ms) { k = 1 }")
    engine.acquire(asked)
    tell(engine, publication("START", "a", 1, k=1))
    engine.committed(1)
    probe = publication("INSTANT", "x", 8, 8)
    tell(engine, publication("END", "a", None, 5, k=1))
    tell(engine, publication("INSTANT", "b", 7, 7, k=1))
    assert asks(engine, asked, probe)
    engine.undo(2)
    assert not asks(engine, asked, probe)
    assert (engine.seq, engine.event("b"), engine.event("a").end) == (1, None, None)
    with pytest.raises(ValueError, match="on disk"):
        engine.undo(1)
    tell(engine, publication("END", "a", None, 6, k=1))
    assert asks(engine, asked, probe)


def test_asking_what_nobody_acquired_is_an_error():
    with pytest.raises(LookupError, match="k = 1"):
        asks(
            TemporalEngine(),
            parse_subscription("end after(1s) { k = 1 }"),
            publication("INSTANT", "x", 1, 1),
        )


def stored(engine, store, notification, at=0):
    store.append(*tell(engine, notification, at))
    engine.committed(engine.seq)


def test_a_new_inner_filter_sees_the_log_and_what_arrives_meanwhile_once():
    store = Store()
    engine = TemporalEngine(store, store)
    stored(engine, store, publication("START", "a", 1, k=1))
    waiting = [tell(engine, publication("START", "b", 2, k=1))]
    asked = parse_subscription("end after(50ms) { k = 1 } and k filter(=) { k = 1 }")
    backfill = engine.acquire(asked)
    assert (backfill.upto, [i.name for i in backfill.missing]) == (
        1,
        [inner_hash(parse_subscription("k = 1"))],
    )
    with pytest.raises(ValueError, match="fed up to 0 of 1"):
        engine.adopt(backfill)
    first = backfill.feed(store.entries)
    waiting.append(tell(engine, publication("END", "a", None, 9)))
    last = engine.adopt(backfill)
    assert [(d.event, d.seq) for d in [*first, *last]] == [("a", 1), ("b", 2), ("a", 3)]
    assert asks(engine, asked, publication("INSTANT", "x", 10, 10, k=1))
    with pytest.raises(ValueError, match="not under way"):
        engine.adopt(backfill)
    # The store fails: what the back-fill made of those entries goes with them.
    engine.undo(2)
    assert not asks(engine, asked, publication("INSTANT", "x", 10, 10, k=1))
    engine.release(asked)
    assert not engine.memory.nodes


def test_an_abandoned_backfill_leaves_nothing_behind():
    store = Store()
    engine = TemporalEngine(store, store)
    stored(engine, store, publication("INSTANT", "a", 1, 1, k=2))
    backfill = engine.acquire(NEAR)
    engine.abandon(backfill)
    tell(engine, publication("INSTANT", "b", 2, 2, k=2))
    assert not backfill.queue
    assert not engine.memory.nodes


def test_a_wider_window_over_evicted_events_is_filled_from_the_log(monkeypatch):
    monkeypatch.setattr("kbn.temporal.node.SLACK", 0)
    store = Store()
    engine = TemporalEngine(store, store, Limits(events_per_filter=1))
    narrow = parse_subscription("p filter(=, last 1) { k = 1 }")
    wide = parse_subscription("p filter(=, last 3) { k = 1 }")
    engine.acquire(narrow)
    for at in range(5):
        stored(engine, store, publication("INSTANT", f"e{at}", at, at, k=1, p=at))
    (node,) = engine.memory.nodes.values()
    assert len(node.held) == 1
    backfill = engine.acquire(wide)
    assert backfill.feed(store.entries) == []  # its decisions are stored already
    assert engine.adopt(backfill) == []
    engine.stored(backfill)
    for value in range(5):
        probe = publication("PLAIN", p=value)
        assert asks(engine, narrow, probe) == (value == 4)
        assert asks(engine, wide, probe) == (value >= 2)
    engine.release(narrow)
    engine.release(wide)
    assert not engine.memory.nodes


def test_only_questions_that_reach_beyond_memory_go_to_the_past(monkeypatch):
    monkeypatch.setattr("kbn.temporal.node.SLACK", 0)
    store = Store()
    engine = TemporalEngine(store, store, Limits(events_per_filter=2))
    asked = parse_subscription("end after(5ms) { k = 1 } or start during { k = 1 }")
    engine.acquire(asked)
    for at in range(0, 100, 10):
        stored(engine, store, publication("INSTANT", f"e{at}", at, at, k=1))
    (node,) = engine.memory.nodes.values()
    assert node.gone == Box(0, 70, 0, 70)
    assert asks(engine, asked, publication("INSTANT", "x", 92, 92))
    assert not asks(engine, asked, publication("INSTANT", "x", 97, 97))
    assert not store.asked
    assert asks(engine, asked, publication("INSTANT", "x", 42, 42))
    assert store.asked


def test_a_node_inside_another_is_loaded_first():
    engine = TemporalEngine(seq=5)
    outer = parse_subscription("end after(1s) { k = 1 }")
    with pytest.raises(ValueError, match="loaded first"):
        engine.load(outer, [])
    engine.load(parse_subscription("k = 1"), [])
    engine.load(outer, [])
    engine.prune()
    assert not engine.memory.nodes


def test_forgotten_events_are_asked_of_the_source():
    store = Store()
    engine = TemporalEngine(store, store, Limits(recent_events=1))
    for name in "abcdef":
        stored(engine, store, publication("START", name, 5))
    assert engine.event("a") == store.get("a")
    stored(engine, store, publication("END", "a", None, 9))
    assert engine.event("a").final
