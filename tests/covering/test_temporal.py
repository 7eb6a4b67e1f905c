"""Temporal covering, against a history small enough to be obvious."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from kbn.covering import canonical, contradictory, covers, filter_covers
from kbn.covering.temporal import temporal_covers
from kbn.matching.naive import filter_matches, matches, value_holds
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import NOTHING_KNOWN, World
from kbn.model import Constraint, Filter, Notification, Subscription
from kbn.model.operators import After, Allen, Content, During, Relation, Window
from kbn.model.time import END_TIME, START_TIME
from tests.covering.builders import c, sub, x
from tests.temporal import worlds
from tests.temporal.rig import entries_of

WIDE, NARROW = sub(x("<", 5)), sub(x("<", 3))
NEVER = sub(x("<", 3, ">", 3))


def _asks(op, inner, name=END_TIME):
    return Filter([Constraint(name, op, inner)])


COVERED = [
    (_asks(During(), WIDE), _asks(During(), NARROW)),
    (_asks(After(2000), WIDE), _asks(After(1000), NARROW)),
    (_asks(After(1000), WIDE), _asks(After(1000), WIDE)),
    (_asks(Relation(Allen.MEETS, 5), WIDE), _asks(Relation(Allen.MEETS, 0), NARROW)),
    (_asks(Window(Content.LT, 20), WIDE, "p"), _asks(Window(Content.LT, 10), WIDE, "p")),
    (
        _asks(Window(Content.LT, 20), sub(x("<", 3)), "p"),
        _asks(Window(Content.LT, 20), sub(x("<", 3.0, "<", 4)), "p"),
    ),
    (Filter([c(END_TIME, "any")]), _asks(During(), WIDE)),
    (_asks(During(), _s := sub(_asks(After(9), WIDE))), _asks(During(), _s)),
    (_asks(During(), sub(_asks(After(9), WIDE))), _asks(During(), sub(_asks(After(8), NARROW)))),
]
NOT_COVERED = [
    (_asks(During(), NARROW), _asks(During(), WIDE)),
    (_asks(During(), WIDE, START_TIME), _asks(During(), WIDE, END_TIME)),
    (_asks(After(1000), WIDE), _asks(After(2000), NARROW)),
    (_asks(After(1000), WIDE), _asks(During(), NARROW)),
    (_asks(Relation(Allen.MEETS, 0), WIDE), _asks(Relation(Allen.MEETS, 5), WIDE)),
    (_asks(Relation(Allen.MEETS, 5), WIDE), _asks(Relation(Allen.BEFORE, 5), WIDE)),
    (_asks(Window(Content.LT, 20), WIDE, "p"), _asks(Window(Content.LT, 20), NARROW, "p")),
    (_asks(Window(Content.LT, 10), WIDE, "p"), _asks(Window(Content.LT, 20), WIDE, "p")),
    (_asks(Window(Content.LE, 20), WIDE, "p"), _asks(Window(Content.GT, 20), WIDE, "p")),
    (_asks(During(), WIDE), Filter([c(END_TIME, "=", 5)])),
]


@pytest.mark.parametrize(("f", "g"), COVERED, ids=repr)
def test_a_temporal_constraint_covers(f, g):
    assert filter_covers(f, g)


@pytest.mark.parametrize(("f", "g"), NOT_COVERED, ids=repr)
def test_a_temporal_constraint_does_not_cover(f, g):
    assert not filter_covers(f, g)


def test_looking_for_an_event_that_cannot_match_is_contradictory():
    assert contradictory(_asks(During(), NEVER))
    assert contradictory(_asks(Window(Content.NE, 5), NEVER, "p"))
    assert not contradictory(_asks(During(), Subscription([*NEVER, *WIDE])))


def _nested(limit, depth):
    """Two alternatives at each level, both with a FILTER over the level below."""
    inner = sub(x("<", limit))
    for _ in range(depth):
        asks = [Constraint(n, Window(Content.LT, 5), inner) for n in ("p", "q")]
        inner = sub(*(Filter([c("x", "<", limit), one]) for one in asks))
    return inner


@pytest.mark.parametrize(("limit", "found"), [(5.0, True), (6, False)])
def test_each_pair_of_nested_subscriptions_is_asked_about_once(monkeypatch, limit, found):
    calls = []

    def counting(*arguments):
        calls.append(arguments)
        assert len(calls) <= 1000
        return temporal_covers(*arguments)

    monkeypatch.setattr("kbn.covering.filters.temporal_covers", counting)
    assert covers(_nested(limit, 14), _nested(5, 14)) == found
    assert calls


class ListedHistory:
    """Stored events as a list, asked as the definitions of the operators read."""

    def __init__(self, events):
        self.events = events

    def holds(self, constraint, notification):
        op, inner, name = constraint.op, constraint.inner, constraint.name
        found = [y for y in self.events if matches(inner, y)]
        at = notification[name]
        if isinstance(op, During):
            return any(y[START_TIME] <= at <= y[END_TIME] for y in found)
        if isinstance(op, After):
            return any(at - op.limit <= y[END_TIME] < at for y in found)
        if isinstance(op, Relation):
            return any(y[END_TIME] < notification[START_TIME] + op.tolerance for y in found)
        recent = sorted(found, key=lambda y: -y[START_TIME])[: op.limit]
        knowledge = NOTHING_KNOWN.knowledge
        return any(value_holds(op.op, at, y[name], knowledge) for y in recent)


def _random_filter(rng):
    inner = sub(*(x(rng.choice(["<", "<=", ">"]), rng.randint(1, 3)) for _ in range(2)))
    op = rng.choice(
        [
            During(),
            After(rng.randint(1, 4)),
            Relation(Allen.AFTER, rng.randint(0, 3)),
            Window(rng.choice([Content.LT, Content.EQ]), rng.randint(1, 3)),
        ]
    )
    return _asks(op, inner)


def _random_event(rng):
    start = rng.randint(0, 9)
    times = {START_TIME: start, END_TIME: start + rng.randint(0, 4)}
    return Notification({"x": rng.randint(0, 4), **times})


def test_no_random_pair_is_covered_wrongly_under_any_random_history():
    rng = random.Random(3)
    filters = [_random_filter(rng) for _ in range(150)]
    scenes = [
        (World(history=ListedHistory([_random_event(rng) for _ in range(5)])), _random_event(rng))
        for _ in range(200)
    ]
    matched = {
        f: {i for i, (world, event) in enumerate(scenes) if filter_matches(f, event, world)}
        for f in filters
    }
    covered = [(f, g) for f in filters for g in filters if f != g and filter_covers(f, g)]
    assert len(covered) > 100
    for f, g in covered:
        assert matched[g] <= matched[f], (f, g)


def _relaxed(asked: Subscription) -> Subscription:
    """The same with larger limits and tolerances, at every depth that covering allows."""
    return Subscription(Filter(map(_relaxed_constraint, alternative)) for alternative in asked)


def _relaxed_constraint(constraint: Constraint) -> Constraint:
    op, inner = constraint.op, constraint.inner
    if inner is None:
        return constraint
    if isinstance(op, Window):
        return Constraint(constraint.name, Window(op.op, op.limit + 1), inner)
    if isinstance(op, After):
        op = After(op.limit + 2)
    elif isinstance(op, Relation):
        op = Relation(op.kind, op.tolerance + 1)
    return Constraint(constraint.name, op, _relaxed(inner))


@given(worlds.subscriptions, worlds.subscriptions, worlds.logs)
def test_nested_covering_is_sound_under_histories_that_come_late_and_undo(f, g, published):
    wider = _relaxed(g)
    assert covers(wider, g)
    pairs = [(f, g), (wider, g), (Subscription([*f, *g]), g), (canonical(g), g), (g, canonical(g))]
    covered = [(wide, narrow) for wide, narrow in pairs if covers(wide, narrow)]
    knowledge = worlds.Parity()
    history = NaiveHistory(knowledge=knowledge)
    for entry in entries_of(published):
        world = World(knowledge, history.about(entry))
        for wide, narrow in covered:
            if matches(narrow, entry.notification, world):
                assert matches(wide, entry.notification, world)
        history.append(entry)
