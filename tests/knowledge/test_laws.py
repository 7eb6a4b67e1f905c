"""Laws over random ontologies: covering, the index, value sets, the byte form.

KBN_PROFILE=deep    10^5 pairs of constraints, and as many of filters
"""

from __future__ import annotations

import os
import pickle
import random

import pytest

from kbn.covering import filter_covers
from kbn.errors import MalformedError
from kbn.knowledge.hierarchy import from_bytes, to_bytes
from kbn.matching.index import PredicateIndex, semantic
from kbn.matching.naive import filter_matches, matches
from kbn.matching.world import World
from kbn.model import Bag, Constraint, Filter, Notification, Subscription
from kbn.model.operators import BagKind, BagOp, Content, Related, Semantic
from tests.knowledge.ask import hierarchy
from tests.knowledge.worlds import OPERATORS, STRANGERS, random_hierarchy, terms

WORLDS = 500 if os.environ.get("KBN_PROFILE") == "deep" else 15
PAIRS = 200
SEEDS = range(WORLDS)
BY_ORDER = {Semantic.IS_A, Semantic.IS_NOT_A, Related("rdf:type")}


def drawn(seed):
    draw = random.Random(f"knowledge {seed}")
    known = random_hierarchy(draw)
    return draw, known, [*terms(known), *STRANGERS]


def test_covering_is_inclusion_of_what_holds_and_misses_nothing():
    """But for two ``is_a`` or ``is_not_a``, which go by the order of their classes."""
    covered = 0
    for seed in SEEDS:
        draw, known, values = drawn(seed)
        for _ in range(PAIRS):
            op_f, op_g = draw.choice(OPERATORS), draw.choice(OPERATORS)
            f, g = draw.choice(values), draw.choice(values)
            included = all(known.holds(op_f, v, f) for v in values if known.holds(op_g, v, g))
            answered = known.covers(op_f, f, op_g, g)
            if answered or not {op_f, op_g} <= BY_ORDER:
                assert answered == included, (seed, op_f, f, op_g, g)
            covered += included and any(known.holds(op_g, v, g) for v in values)
    assert covered > WORLDS


def test_a_term_that_is_class_and_property_covers_only_what_both_orders_say():
    known = hierarchy(
        ":pun rdfs:subClassOf :C . :q rdfs:subPropertyOf :pun . :D rdfs:subClassOf :C ."
    )
    more, less = Semantic.MORE_SPECIFIC, Semantic.LESS_SPECIFIC
    assert known.holds(more, "x:q", "x:pun")
    assert not known.covers(more, "x:C", more, "x:pun")
    assert known.covers(more, "x:C", more, "x:D")
    up = hierarchy(":C rdfs:subClassOf :pun . :pun rdfs:subPropertyOf :q .")
    assert not up.covers(less, "x:C", less, "x:pun")


def test_classes_cover_along_their_order_and_not_by_accident():
    for seed in SEEDS:
        _, known, values = drawn(seed)
        classes = [v for v in values if known.holds(Semantic.MORE_SPECIFIC, v, "owl:Thing")]
        for f in classes:
            for g in classes:
                below = known.class_up.has(known.thing(g), known.thing(f))
                assert known.covers(Semantic.IS_A, f, Semantic.IS_A, g) == below
                assert known.covers(Semantic.IS_NOT_A, g, Semantic.IS_NOT_A, f) == below


def test_filters_and_bags_are_covered_soundly():
    for seed in SEEDS:
        draw, known, values = drawn(seed)
        world = World(knowledge=known)
        events = [Notification({"x": value}) for value in values]
        events += [
            Notification({"x": Bag(draw.choices(values, k=draw.randrange(4)))}) for _ in range(30)
        ]
        for _ in range(PAIRS):
            f, g = (_filter(draw, values) for _ in range(2))
            if filter_covers(f, g, known):
                for event in events:
                    if filter_matches(g, event, world):
                        assert filter_matches(f, event, world), (seed, f, g, event)


def test_the_index_equals_naive_while_subscriptions_and_ontologies_come_and_go(monkeypatch):
    monkeypatch.setattr(semantic, "REMEMBERED", 7)
    monkeypatch.setattr(semantic, "OFTEN", 2)
    found = 0
    for seed in SEEDS:
        draw, first, values = drawn(seed)
        worlds = [World(knowledge=first), World(knowledge=random_hierarchy(draw))]
        index, live = PredicateIndex(), {}
        for turn in range(4):
            for key in draw.sample(list(live), len(live) // 3):
                index.remove(key)
                del live[key]
            for key in range(100 * turn, 100 * turn + 20):
                live[key] = Subscription(_filter(draw, values) for _ in range(draw.randint(1, 2)))
                index.add(key, live[key])
            for _ in range(12):
                world = draw.choice(worlds)
                event = Notification({"x": _value(draw, values), "y": _value(draw, values)})
                expected = {key for key, asked in live.items() if matches(asked, event, world)}
                assert index.match(event, world) == expected, (seed, event)
                found += len(expected)
    assert found > 50 * WORLDS


def test_a_matching_set_has_every_spelling_that_holds_and_no_other():
    for seed in SEEDS:
        draw, known, values = drawn(seed)
        spellings = {s for iri in known.iris for s in known.prefixes.spellings(iri)}
        asked = spellings | {v for v in values if isinstance(v, str)}
        for _ in range(40):
            op, operand = draw.choice(OPERATORS), draw.choice(values)
            expected = {v for v in asked if known.holds(op, v, operand)}
            assert known.matching_set(op, operand) == expected


def test_what_was_written_down_answers_as_before():
    for seed in SEEDS:
        _, known, values = drawn(seed)
        for again in (from_bytes(to_bytes(known)), pickle.loads(pickle.dumps(known))):
            assert again.hash == known.hash
            assert to_bytes(again) == to_bytes(known)
            for op in OPERATORS:
                for value in values[:6]:
                    for operand in values:
                        held = known.holds(op, value, operand)
                        assert again.holds(op, value, operand) == held


def test_a_damaged_byte_is_noticed():
    _, known, _ = drawn(1)
    data = to_bytes(known)
    for at in (0, 10, len(data) // 2, len(data) - 1):
        with pytest.raises(MalformedError):
            from_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def test_an_explanation_is_found_for_every_question():
    for seed in SEEDS:
        draw, known, values = drawn(seed)
        for _ in range(100):
            op, value, operand = draw.choice(OPERATORS), draw.choice(values), draw.choice(values)
            assert known.why(op, value, operand)


def _value(draw, values):
    if draw.random() < 0.2:
        return Bag(draw.choices(values, k=draw.randrange(4)))
    return draw.choice(values)


def _filter(draw, values):
    return Filter(_constraint(draw, values) for _ in range(draw.randint(1, 2)))


def _constraint(draw, values):
    op = draw.choice(OPERATORS)
    chance = draw.random()
    if chance < 0.1:
        return Constraint("x", Content.EQ, draw.choice(values))
    if chance < 0.35:
        operand = Bag(draw.choices(values, k=draw.randint(0, 3)))
        return Constraint("x", BagOp(draw.choice(tuple(BagKind)), op), operand)
    return Constraint(draw.choice("xxy"), op, draw.choice(values))
