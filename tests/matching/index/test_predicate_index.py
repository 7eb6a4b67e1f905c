"""The index is naive, only faster: laws under churn, and the traps by name."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kbn.errors import NoOntologyError
from kbn.matching.index import PredicateIndex
from kbn.matching.naive import matches
from kbn.matching.world import World
from kbn.model import Bag, Constraint, Filter, Notification, Subscription
from kbn.model.operators import BagKind, BagOp, Content, During, Semantic
from kbn.model.time import END_TIME, START_TIME
from tests import strategies as some
from tests.matching.index.worlds import stub_world

NAN = float("nan")
LESS_NAMES = st.sampled_from(["a", "b", START_TIME, END_TIME])


class Churn(RuleBasedStateMachine):
    """Subscriptions come and go; every publication is matched by both."""

    def __init__(self) -> None:
        super().__init__()
        self.index = PredicateIndex()
        self.live: dict[Hashable, Subscription] = {}
        self.world = stub_world()
        self.fresh = 0

    @rule(subscription=some.any_subscriptions(LESS_NAMES, some.values))
    def subscribe(self, subscription: Subscription) -> None:
        self._add(subscription)

    @rule(subscription=some.content_subscriptions(LESS_NAMES))
    def subscribe_to_content(self, subscription: Subscription) -> None:
        self._add(subscription)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def subscribe_to_the_same_in_another_order(self, data: st.DataObject) -> None:
        known = data.draw(st.sampled_from(list(self.live.values())))
        turned = [Filter(reversed(asked.constraints)) for asked in reversed(known.alternatives)]
        self._add(Subscription(turned))

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(list(self.live)))
        self.index.remove(key)
        del self.live[key]

    @rule(notification=some.notifications(LESS_NAMES))
    def publish(self, notification: Notification) -> None:
        expected = {k for k, s in self.live.items() if matches(s, notification, self.world)}
        assert self.index.match(notification, self.world) == expected

    @invariant()
    def as_many_are_in_it_as_came_and_did_not_go(self) -> None:
        assert len(self.index) == len(self.live)

    def teardown(self) -> None:
        for key in self.live:
            self.index.remove(key)
        assert_empty(self.index)

    def _add(self, subscription: Subscription) -> None:
        self.index.add(self.fresh, subscription)
        self.live[self.fresh] = subscription
        self.fresh += 1


Churn.TestCase.settings = settings(
    max_examples=settings.default.max_examples // 4, stateful_step_count=40, deadline=None
)
TestChurn = Churn.TestCase


def assert_empty(index: PredicateIndex) -> None:
    """Nothing is left behind: no node, no entry, no check, no count."""
    assert len(index) == index.distinct_filters == len(index._checks) == 0
    assert not index._root
    assert not index._operands


@given(
    st.lists(some.content_subscriptions(LESS_NAMES), min_size=1, max_size=30),
    some.notifications(LESS_NAMES),
)
def test_match_is_the_set_of_keys_that_naive_accepts(
    subscriptions: list[Subscription], notification: Notification
):
    index = PredicateIndex()
    for key, subscription in enumerate(subscriptions):
        index.add(key, subscription)
    expected = {k for k, s in enumerate(subscriptions) if matches(s, notification)}
    assert index.match(notification) == expected


VALUES = [
    *(True, False, None, 1, 1.0, 0, 0.0, -0.0, 2, NAN, float("inf")),
    *(2**53, 2**53 + 1, 2.0**53, 2**63 - 1, 2.0**63, 5e-324),
    *("", "a", "ab", "abab", "é", "1", "true"),
    *(Bag([]), Bag([1]), Bag([1.0]), Bag([True]), Bag([NAN]), Bag([1, 2, 1]), Bag([1, 1, 2])),
    *(Bag([1, 2]), Bag(["a"]), Bag([None])),
]
OPERATORS = [op for op in Content if op is not Content.ANY]
OPERATORS += [BagOp(kind) for kind in BagKind]
OPERATORS += [BagOp(kind, sub) for kind in BagKind for sub in (Content.EQ, Content.LE)]


@pytest.mark.parametrize("op", OPERATORS, ids=repr)
def test_every_operator_on_every_pair_of_awkward_values(op: Content | BagOp):
    index = PredicateIndex()
    asked = [Subscription.of(Constraint("x", op, operand)) for operand in VALUES]
    for key, subscription in enumerate(asked):
        index.add(key, subscription)
    for value in VALUES:
        told = Notification({"x": value})
        assert index.match(told) == {k for k, s in enumerate(asked) if matches(s, told)}
    assert index.match(Notification({"y": 1})) == set()
    for key in range(len(asked)):
        index.remove(key)
    assert_empty(index)


def constraint(name: str, op: Content, operand: object = None) -> Constraint:
    return Constraint(name, op, operand)  # type: ignore[arg-type]


def matched(*constraints: Constraint, **attributes: object) -> bool:
    """Whether the index finds a filter of these constraints."""
    index = PredicateIndex()
    index.add("it", Subscription.of(*constraints))
    return index.match(Notification(attributes)) == {"it"}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operand", "value", "found"),
    [
        (1, True, False),
        (True, 1, False),
        (False, 0.0, False),
        (True, True, True),
        (1, 1.0, True),
        (0.0, -0.0, True),
        (NAN, NAN, False),
        (2**53 + 1, 2.0**53, False),
        (2.0**53, 2**53, True),
        (None, None, True),
        (Bag([1, 2]), Bag([2.0, 1]), True),
        (Bag([1]), 1, False),
        (Bag([True]), Bag([1]), False),
        (Bag([NAN]), Bag([NAN]), False),
    ],
)
def test_equality_is_by_number_and_never_across_types(operand: object, value: object, found: bool):
    assert matched(constraint("x", Content.EQ, operand), x=value) is found
    assert matched(constraint("x", Content.NE, operand), x=value) is not found


def test_a_long_is_compared_with_a_double_without_rounding():
    assert matched(constraint("x", Content.LT, 2**53 + 1), x=2.0**53)
    assert not matched(constraint("x", Content.GE, 2**53 + 1), x=2.0**53)
    assert not matched(constraint("x", Content.LT, 2.0**63), x=2.0**63)
    assert matched(constraint("x", Content.LT, 2.0**63), x=2**63 - 1)


def test_nan_lies_within_no_bound_wherever_it_stands():
    for op in (Content.LT, Content.LE, Content.GT, Content.GE):
        assert not matched(constraint("x", op, 1.0), x=NAN)
        assert not matched(constraint("x", op, NAN), x=1.0)
        assert not matched(constraint("x", op, 1.0), constraint("y", op, 1.0), x=1.0, y=NAN)


def test_an_absent_attribute_satisfies_nothing_not_even_unequal():
    assert not matched(constraint("x", Content.NE, 5), y=1)
    assert not matched(constraint("x", Content.ANY), y=1)
    assert matched(constraint("x", Content.ANY), x=None)


def test_the_empty_string_is_in_every_string_and_in_nothing_else():
    for op in (Content.PREFIX, Content.SUFFIX, Content.CONTAINS):
        assert matched(constraint("x", op, ""), x="")
        assert matched(constraint("x", op, ""), x="abc")
        assert not matched(constraint("x", op, ""), x=1)


def test_the_empty_filter_matches_every_notification():
    assert matched()
    assert matched(x=1)


def test_all_constraints_on_one_name_must_hold():
    inside = [
        constraint("x", Content.GT, 1),
        constraint("x", Content.GE, 1),
        constraint("x", Content.LE, 9),
        constraint("x", Content.LT, 9),
        constraint("x", Content.NE, 5),
    ]
    assert [x for x in range(12) if matched(*inside, x=x)] == [2, 3, 4, 6, 7, 8]


def test_a_filter_that_contradicts_itself_is_held_and_never_told():
    index = PredicateIndex()
    index.add(
        "never", Subscription.of(constraint("x", Content.EQ, 1), constraint("x", Content.EQ, 2))
    )
    index.add(
        "nor", Subscription.of(constraint("x", Content.LT, 1), constraint("x", Content.GT, 2))
    )
    assert len(index) == 2
    assert "never" in index
    assert not any(index.match(Notification({"x": x})) for x in (0, 1, 2, 3))
    index.remove("never")
    index.remove("nor")
    assert_empty(index)


def test_a_subscription_is_told_once_however_many_alternatives_match():
    index = PredicateIndex()
    asked = [constraint("x", Content.LT, 5), constraint("x", Content.LT, 7)]
    asked += [constraint("x", Content.GT, 0), constraint("x", Content.EQ, 3)]
    index.add("it", Subscription(Filter([c]) for c in asked))
    assert index.match(Notification({"x": 3})) == {"it"}
    index.remove("it")
    assert_empty(index)


def test_equal_filters_of_many_subscribers_are_one_entry():
    index = PredicateIndex()
    low, small = constraint("price", Content.LT, 80), constraint("volume", Content.LT, 7)
    index.add("first", Subscription.of(low, small))
    index.add("second", Subscription.of(small, low, small))
    index.add("third", Subscription.of(small, constraint("price", Content.LT, 80.0)))
    assert index.distinct_filters == 1
    told = Notification({"price": 79, "volume": 1})
    assert index.match(told) == {"first", "second", "third"}
    index.remove("first")
    assert index.match(told) == {"second", "third"}
    index.remove("third")
    assert index.match(told) == {"second"}
    index.remove("second")
    assert_empty(index)


def test_the_answer_belongs_to_the_caller():
    index = PredicateIndex()
    for key in ("one", "two"):
        index.add(key, Subscription.of(constraint("x", Content.EQ, 1)))
    index.match(Notification({"x": 1})).clear()
    assert index.match(Notification({"x": 1})) == {"one", "two"}


def test_a_key_is_added_once_and_removed_once():
    index = PredicateIndex()
    index.add("it", Subscription.of())
    with pytest.raises(ValueError, match="'it' is in the index already"):
        index.add("it", Subscription.of())
    index.remove("it")
    with pytest.raises(KeyError, match="it"):
        index.remove("it")


def test_a_subclass_of_a_plain_type_is_found_by_its_value():
    class Price(float):
        pass

    class Word(str):
        __slots__ = ()

    assert matched(constraint("x", Content.LT, 2), x=Price(1.5))
    assert matched(constraint("x", Content.EQ, 1.5), x=Price(1.5))
    assert matched(
        constraint("x", Content.LT, "b"), constraint("y", Content.GT, 1), x=Word("a"), y=2
    )


class Yes:
    """Knowledge and history that agree to everything, and count the questions."""

    def __init__(self) -> None:
        self.questions = 0

    def holds(self, *question: object) -> bool:
        self.questions += 1
        return True


def test_dear_constraints_are_asked_only_of_candidates_and_once_each():
    index, knowledge, history = PredicateIndex(), Yes(), Yes()
    world = World(knowledge, history)
    during = Constraint(START_TIME, During(), Subscription.of(constraint("x", Content.EQ, 1)))
    for key in range(50):
        index.add(
            key,
            Subscription.of(
                during,
                Constraint("wine", Semantic.IS_NOT_A, "Red"),
                constraint("symbol", Content.EQ, "A" if key % 2 else "B"),
                constraint("price", Content.LT, key),
            ),
        )

    def publish(symbol: str, price: int) -> int:
        told = {"symbol": symbol, "price": price, START_TIME: 0, "wine": "w"}
        return len(index.match(Notification(told), world))  # type: ignore[arg-type]

    assert publish("C", 1) == publish("A", 99) == 0
    assert (knowledge.questions, history.questions) == (0, 0)
    for told_before in range(10):
        assert publish("A", 0) == 25
        assert (knowledge.questions, history.questions) == (told_before + 1, told_before + 1)


def test_what_the_world_refuses_is_not_hidden():
    index = PredicateIndex()
    index.add("it", Subscription.of(Constraint("wine", Semantic.IS_A, "Red")))
    with pytest.raises(NoOntologyError):
        index.match(Notification({"wine": "Merlot"}))
    assert index.match(Notification({"grape": "Merlot"})) == set()
