"""Other knowledge takes over: the answers become those of an engine that never knew less."""

from __future__ import annotations

import random

import pytest

from kbn.errors import RefusedError
from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.world import World
from kbn.temporal import Admitted, TemporalEngine
from tests.knowledge.worlds import random_hierarchy
from tests.temporal.worlds import Store, publication

ASKED = [
    parse_subscription(text)
    for text in (
        "end after(5ms) { a is_a x:c1 }",
        "start during { a more_specific x:c2 or b = 1 }",
        "end after(9ms) { b = 1 and end after(9ms) { a is_a x:c0 } }",
        "a filter(is_a, last 3) { a any }",
        "b filter(<, last 4) { a related x:p1 x:i2 }",
        "relation(overlaps) { a is_not_a x:c1 }",
        "end after(3ms) { b = 1 }",
    )
]
PARTS = ("START", "END", "INSTANT", "PLAIN")


def some_event(draw: random.Random, n: int):
    part = draw.choice(PARTS)
    said = {"b": draw.randrange(3)}
    if draw.random() < 0.8:
        said["a"] = f"x:{draw.choice('ci')}{draw.randrange(8)}"
    start = n + draw.randrange(-3, 3)
    end = start + draw.randrange(4)
    if part == "PLAIN":
        return publication(part, **said)
    event = f"e{draw.randrange(n // 2 + 1)}"
    return publication(
        part,
        event,
        start if part != "END" else None,
        None if part == "START" else (start if part == "INSTANT" else end),
        **said,
    )


def tell(engine, event, n):
    try:
        admitted = engine.admit(event, f"#{n}", n, n)
    except RefusedError:
        return None
    if not isinstance(admitted, Admitted):
        return None
    return engine.apply(engine.seq + 1, admitted)


def answers(engine, knowledge, event, n):
    try:
        admitted = engine.admit(event, f"?{n}", n, n)
    except RefusedError:
        return None
    if not isinstance(admitted, Admitted):
        return None
    world = World(knowledge, engine.history(admitted))
    return [matches(asked, event, world) for asked in ASKED]


@pytest.mark.parametrize("seed", range(25))
def test_after_a_swap_the_answers_are_those_of_a_fresh_engine_over_the_whole_log(seed):
    draw = random.Random(seed)
    old, new = random_hierarchy(draw), random_hierarchy(draw)
    store = Store()
    engine = TemporalEngine(store, store, knowledge=old)
    for asked in ASKED:
        assert engine.acquire(asked) is None
    log, waiting = [], []
    begin, ready, swap = (draw.randrange(60) for _ in range(3))
    begin, ready, swap = sorted((begin, ready, swap))
    backfill = None
    for n in range(60):
        if n == begin:
            backfill = engine.relearn(ASKED, new)
        if n == ready and backfill is not None:
            backfill.feed(e for e in log if e.seq <= backfill.upto)
            backfill.replay.seq = max(backfill.replay.seq, backfill.upto)
        if n == swap:
            engine.swap(new, backfill)
        made = tell(engine, some_event(draw, n), n)
        if made is not None:
            log.append(made[0])
            waiting.append(made)
            if draw.random() < 0.5:
                for one in waiting:
                    store.append(*one)
                waiting.clear()
                engine.committed(log[-1].seq)
        elif waiting and draw.random() < 0.5:
            waiting.pop()
            engine.undo(log.pop().seq)
    fresh_store = Store()
    fresh = TemporalEngine(fresh_store, fresh_store, knowledge=new)
    for asked in ASKED:
        fresh.acquire(asked)
    for entry in log:
        admitted = fresh.admit(entry.notification, entry.uid, entry.at, entry.arrived)
        assert isinstance(admitted, Admitted)
        made = fresh.apply(entry.seq, admitted)
        fresh_store.append(*made)
    for n in range(60, 100):
        event = some_event(draw, n)
        assert answers(engine, new, event, n) == answers(fresh, new, event, n)


def test_nothing_is_relearned_where_nobody_asks_about_terms():
    engine = TemporalEngine(knowledge=random_hierarchy(random.Random(1)))
    asked = parse_subscription("end after(3ms) { b = 1 }")
    engine.acquire(asked)
    assert engine.relearn([asked], random_hierarchy(random.Random(2))) is None
