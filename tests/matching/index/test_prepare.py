"""Other knowledge is made ready beside what is known: the answers never show it."""

from __future__ import annotations

import random

import pytest

from kbn.covering.filters import facts_imply, facts_of
from kbn.covering.lookup import CoverIndex
from kbn.matching.index import PredicateIndex, semantic
from kbn.matching.naive import matches
from kbn.matching.world import World
from kbn.model import Constraint, Filter, Notification, Subscription
from kbn.model.operators import Content
from tests.knowledge.worlds import OPERATORS, random_hierarchy, terms


def asked_of(draw, known) -> Subscription:
    def one() -> Constraint:
        if draw.random() < 0.2:
            return Constraint("b", Content.EQ, draw.randrange(2))
        return Constraint("a", draw.choice(OPERATORS), draw.choice(terms(known)))

    return Subscription(Filter(one() for _ in range(draw.randint(1, 2))) for _ in range(2))


@pytest.mark.parametrize("seed", range(20))
def test_answers_are_naive_before_between_and_after_slices_and_changes(seed, monkeypatch) -> None:
    monkeypatch.setattr(semantic, "SLICE", 3)
    draw = random.Random(seed)
    old, new = random_hierarchy(draw), random_hierarchy(draw)
    index, held = PredicateIndex(), {}
    for key in range(40):
        held[key] = asked_of(draw, old)
        index.add(key, held[key])

    def agree(known) -> None:
        world = World(known)
        event = Notification({"a": draw.choice(terms(known)), "b": draw.randrange(2)})
        assert index.match(event, world) == {
            key for key, one in held.items() if matches(one, event, world)
        }

    agree(old)
    for step, _ in enumerate(index.prepare(new)):
        gone = draw.choice(list(held))
        index.remove(gone)
        del held[gone]
        held[100 + step] = asked_of(draw, new)
        index.add(100 + step, held[100 + step])
        agree(old)
    for _ in range(20):
        agree(new)


@pytest.mark.parametrize("seed", range(20))
def test_who_covers_whom_in_terms_is_looked_up_as_the_relation_says(seed) -> None:
    draw = random.Random(seed)
    known = random_hierarchy(draw)
    filters = dict.fromkeys(f for _ in range(25) for f in asked_of(draw, known))
    possible = [f for f in filters if not facts_of(f).contradictory]
    index: CoverIndex[Filter] = CoverIndex()
    for one in possible:
        index.add(one, one, facts_of(one))
    for one in possible:
        facts = facts_of(one)
        for order in (None, known):
            above = {f for f in possible if facts_imply(facts, f, order)}
            below = {f for f in possible if facts_imply(facts_of(f), one, order)}
            assert set(index.coverers(facts, order)) == above
            assert set(index.covered(one, facts, order)) == below
