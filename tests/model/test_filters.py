"""The syntax tree: identity, immutability, pickling, and what it refuses."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given

from kbn.errors import LimitError, TemporalReferenceError, UnsupportedError
from kbn.model import Bag, Constraint, Filter, Subscription
from kbn.model.filters import constraints_within, needs_history, needs_ontology
from kbn.model.operators import (
    After,
    Allen,
    BagKind,
    BagOp,
    Content,
    During,
    Related,
    Relation,
    Semantic,
    Window,
)
from tests import strategies

ANYTHING = Subscription([Filter()])


@given(strategies.any_subscriptions())
def test_a_subscription_survives_pickling(subscription):
    again = pickle.loads(pickle.dumps(subscription))
    assert again == subscription
    assert hash(again) == hash(subscription)


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (0.0, -0.0)])
def test_constraints_differ_when_their_operands_differ_in_type(one, other):
    assert Constraint("a", Content.EQ, one) != Constraint("a", Content.EQ, other)


def test_the_order_of_constraints_is_kept():
    a, b = Constraint("a", Content.ANY), Constraint("b", Content.ANY)
    assert Filter([a, b]) != Filter([b, a])


def test_equal_alternatives_are_held_once():
    a, b = Filter([Constraint("a", Content.ANY)]), Filter()
    assert Subscription([a, b, a]).alternatives == (a, b)


def test_nodes_are_immutable():
    constraint = Constraint("a", Content.EQ, 1)
    for node in (constraint, Filter([constraint]), ANYTHING):
        with pytest.raises(AttributeError, match="immutable"):
            node.depth = 3
        with pytest.raises(AttributeError, match="immutable"):
            del node.depth


@pytest.mark.parametrize("op", [During(), After(5)])
def test_during_and_after_refer_to_a_time(op):
    assert Constraint("KBN_START_TIME", op, ANYTHING).inner == ANYTHING
    with pytest.raises(TemporalReferenceError) as caught:
        Constraint("price", op, ANYTHING)
    assert caught.value.code == "temporal_reference"
    assert caught.value.name == "price"


def test_a_relation_refers_to_the_end_time_and_filter_to_any_name():
    relation = Relation(Allen.MEETS)
    assert Constraint("KBN_END_TIME", relation, ANYTHING).inner == ANYTHING
    with pytest.raises(TemporalReferenceError):
        Constraint("KBN_START_TIME", relation, ANYTHING)
    assert Constraint("price", Window(Content.LT), ANYTHING).inner == ANYTHING


@pytest.mark.parametrize(
    ("op", "operand"),
    [(During(), 5), (Content.EQ, ANYTHING), (Content.ANY, 5)],
)
def test_operand_and_operator_must_fit(op, operand):
    with pytest.raises(UnsupportedError):
        Constraint("KBN_END_TIME", op, operand)


@pytest.mark.parametrize(
    "build",
    [
        lambda: After(0),
        lambda: Window(Content.LT, 0),
        lambda: Relation(Allen.MEETS, -1),
        lambda: After(2**63),
    ],
)
def test_limits_are_at_least_one_and_tolerances_not_negative(build):
    with pytest.raises(LimitError):
        build()


def test_a_limit_is_a_whole_number():
    with pytest.raises(UnsupportedError, match="whole number"):
        After(1.5)
    with pytest.raises(UnsupportedError, match="whole number"):
        After(True)


def test_bags_and_windows_take_no_temporal_sub_operator():
    with pytest.raises(UnsupportedError):
        BagOp(BagKind.SUBBAG, During())
    with pytest.raises(UnsupportedError):
        BagOp(BagKind.SUBBAG, BagOp(BagKind.SUBBAG))
    with pytest.raises(UnsupportedError):
        Window(During())


def nested(depth: int) -> Subscription:
    inner = ANYTHING
    for _ in range(depth - 1):
        inner = Subscription.of(Constraint("KBN_END_TIME", During(), inner))
    return inner


def test_filters_nest_sixteen_deep_and_no_deeper():
    assert nested(16).depth == 16
    with pytest.raises(LimitError) as caught:
        nested(17)
    assert (caught.value.limit, caught.value.allowed) == ("max_depth", 16)


def test_more_than_64_alternatives_are_refused():
    filters = [Filter([Constraint("a", Content.EQ, i)]) for i in range(65)]
    assert len(Subscription(filters[:64])) == 64
    with pytest.raises(LimitError, match="65 alternatives"):
        Subscription(filters)
    with pytest.raises(UnsupportedError, match="at least one"):
        Subscription([])


def test_what_a_subscription_needs_is_seen_at_any_depth():
    kind = Subscription.of(Constraint("k", BagOp(BagKind.SUBBAG, Related("p:q")), Bag(["x"])))
    deep = Subscription.of(Constraint("KBN_END_TIME", During(), kind))
    window = Subscription.of(Constraint("w", Window(Semantic.IS_A), ANYTHING))
    assert needs_ontology(kind)
    assert needs_ontology(deep)
    assert needs_ontology(window)
    assert not needs_ontology(ANYTHING)
    assert needs_history(deep)
    assert not needs_history(kind)
    assert [c.name for c in constraints_within(deep)] == ["KBN_END_TIME", "k"]
