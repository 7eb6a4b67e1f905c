"""The definition itself: absence, conjunction, alternatives, and the injected world."""

from __future__ import annotations

import pytest

from kbn.errors import NoOntologyError, UnsupportedError
from kbn.matching.naive import matches
from kbn.matching.world import World
from kbn.model import Bag, Constraint, Filter, Notification, Subscription
from kbn.model.operators import BagKind, BagOp, Content, During, Related, Semantic, Window

EVERYTHING = Subscription([Filter()])


class Said:
    """An oracle that holds exactly what it was told, and remembers what it was asked."""

    def __init__(self, *facts):
        self.facts = set(facts)
        self.asked = []

    def holds(self, *question):
        self.asked.append(question)
        return question in self.facts


@pytest.mark.parametrize("op", [op for op in Content if op is not Content.ANY])
def test_an_absent_attribute_satisfies_no_constraint(op):
    assert not matches(Subscription.of(Constraint("x", op, "")), Notification({"y": ""}))


def test_any_asks_for_presence_and_null_is_present():
    anything = Subscription.of(Constraint("x", Content.ANY))
    assert matches(anything, Notification({"x": None}))
    assert not matches(anything, Notification())


def test_an_empty_filter_matches_every_notification():
    assert matches(EVERYTHING, Notification())


def test_all_constraints_on_one_name_must_hold():
    between = Subscription.of(Constraint("x", Content.GT, 1), Constraint("x", Content.LT, 3))
    assert matches(between, Notification({"x": 2}))
    assert not matches(between, Notification({"x": 3}))


def test_one_matching_alternative_is_enough():
    either = Subscription(
        [
            Filter([Constraint("a", Content.EQ, 1)]),
            Filter([Constraint("b", BagOp(BagKind.SUBBAG), Bag([2, 3]))]),
        ]
    )
    assert matches(either, Notification({"b": 2}))
    assert not matches(either, Notification({"b": 4}))


def test_semantic_operators_ask_the_knowledge_alone_and_inside_bags():
    west = Related("geo:isWestOf")
    known = Said((Semantic.IS_A, "m", "Red"), (west, "Hall", "Hamilton"))
    world = World(knowledge=known)
    red = Subscription.of(Constraint("w", Semantic.IS_A, "Red"))
    near = Subscription.of(Constraint("c", BagOp(BagKind.SUPERBAG, west), Bag(["Hamilton"])))
    assert matches(red, Notification({"w": "m"}), world)
    assert not matches(red, Notification({"w": "n"}), world)
    assert matches(near, Notification({"c": Bag([1, "Hall"])}), world)
    assert not matches(near, Notification({"c": Bag([1])}), world)


def test_a_bag_is_no_term():
    red = Subscription.of(Constraint("w", Semantic.IS_A, "Red"))
    known = Said()
    assert not matches(red, Notification({"w": Bag(["m"])}), World(knowledge=known))
    assert known.asked == []


def test_temporal_operators_ask_the_history_when_the_attribute_is_there():
    constraint = Constraint("KBN_END_TIME", During(), EVERYTHING)
    now = Notification({"KBN_END_TIME": 5})
    history = Said((constraint, now))
    assert matches(Subscription.of(constraint), now, World(history=history))
    assert not matches(Subscription.of(constraint), Notification(), World(history=history))


def test_without_an_ontology_or_a_history_the_error_says_so():
    with pytest.raises(NoOntologyError, match="is_a"):
        matches(Subscription.of(Constraint("w", Semantic.IS_A, "R")), Notification({"w": "m"}))
    with pytest.raises(NoOntologyError, match="related"):
        matches(Subscription.of(Constraint("w", Related("p"), "R")), Notification({"w": "m"}))
    with pytest.raises(UnsupportedError, match="history"):
        matches(
            Subscription.of(Constraint("w", Window(Content.LT), EVERYTHING)),
            Notification({"w": 1}),
        )
