"""Identity of values, and what the model refuses to hold."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given

from kbn.errors import ValueRangeError
from kbn.model import Bag, Notification
from kbn.model.values import identity, is_finite, members_of, type_name
from tests import strategies

NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (1, True), (0, False), (0.0, -0.0), ("", None), (1, Bag([1])), ("1", 1)],
)
def test_values_of_different_type_or_spelling_are_not_identical(one, other):
    assert identity(one) != identity(other)


@pytest.mark.parametrize("value", [None, True, 7, 7.5, NAN, "é", Bag([1, "a", NAN])])
def test_a_value_is_identical_to_itself(value):
    assert identity(value) == identity(pickle.loads(pickle.dumps(value)))


def test_a_bag_remembers_the_order_it_was_written_in():
    assert Bag([1, 2]) != Bag([2, 1])
    assert Bag([1, 2]) == Bag((1, 2))
    assert hash(Bag([1, 2])) == hash(Bag([1, 2]))


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_overflow_of_64_bits_is_an_error_and_not_a_wrap(value):
    with pytest.raises(ValueRangeError, match="64-bit"):
        Notification({"x": value})
    with pytest.raises(ValueRangeError, match="64-bit"):
        Bag([value])


def test_a_lone_surrogate_is_refused_in_values_and_names():
    with pytest.raises(ValueRangeError, match="surrogate"):
        Notification({"x": "a\ud800"})
    with pytest.raises(ValueRangeError, match="surrogate"):
        Notification({"\ud800": 1})


def test_a_bag_holds_no_bag_and_no_foreign_object():
    with pytest.raises(ValueRangeError, match="bag cannot hold"):
        Bag([Bag()])
    with pytest.raises(ValueRangeError, match="no value"):
        Bag([[1]])
    with pytest.raises(ValueRangeError, match="no value"):
        Notification({"x": b"bytes"})


def test_a_bag_and_its_members_cannot_be_changed():
    bag = Bag([1])
    with pytest.raises(AttributeError, match="immutable"):
        bag.members = ()
    with pytest.raises(AttributeError, match="immutable"):
        del bag.members


def test_only_finite_numbers_can_be_written():
    assert is_finite(Bag([1, 2.5]))
    assert not is_finite(NAN)
    assert not is_finite(Bag([1, float("inf")]))


def test_a_plain_value_where_a_bag_is_expected_is_a_bag_of_one():
    assert members_of(None) == (None,)
    assert members_of(Bag([1, 1])) == (1, 1)


def test_types_have_the_names_of_the_language():
    named = [type_name(v) for v in (None, True, 1, 1.0, "", Bag())]
    assert named == ["null", "bool", "long", "double", "string", "bag"]


@given(strategies.notifications())
def test_a_notification_survives_pickling_and_ignores_order(notification):
    again = pickle.loads(pickle.dumps(notification))
    turned = Notification(dict(reversed(list(notification.items()))))
    assert again == notification == turned
    assert hash(again) == hash(turned)


def test_notifications_differ_when_a_value_has_another_type():
    assert Notification({"x": 1}) != Notification({"x": 1.0})
    assert Notification({"x": 1}) != {"x": 1}
    assert Notification({"x": 1}).merged({"x": 2, "y": 3}) == Notification({"x": 2, "y": 3})
