"""The laws of the forms: what is written reads back as the same tree."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbn.errors import UnsupportedError
from kbn.language import (
    dumps_event,
    dumps_subscription,
    event_from_json,
    event_to_json,
    loads_event,
    loads_subscription,
    parse_event,
    parse_subscription,
    print_constraint,
    print_event,
    print_filter,
    print_subscription,
    print_value,
    show_value,
    subscription_from_json,
    subscription_to_json,
)
from kbn.language.literals import read_double, read_string, write_string
from kbn.language.shorthand import MARKERS, WORD_OF, expand, fold
from kbn.model import Bag, Constraint, Filter, Subscription
from kbn.model.operators import Content, During
from kbn.model.spelling import double_text
from kbn.model.values import identity
from tests.strategies import any_subscriptions, notifications, wide_names, wide_values

#: Rows where markers and times stand in every order, so that folding is tempted.
folding_rows = st.lists(
    st.one_of(
        st.sampled_from(list(MARKERS.values())),
        st.builds(Constraint, st.sampled_from(list(WORD_OF)), st.just(Content.GT), st.just(5)),
        st.builds(
            Constraint,
            st.sampled_from(list(WORD_OF)),
            st.just(During()),
            st.just(Subscription.of()),
        ),
        st.just(Constraint("x", Content.ANY)),
    ),
    max_size=7,
)


@given(any_subscriptions())
def test_a_subscription_reads_back_from_its_text(subscription):
    assert parse_subscription(print_subscription(subscription)) == subscription


@given(any_subscriptions())
def test_printing_again_gives_the_same_text(subscription):
    text = print_subscription(subscription)
    assert print_subscription(parse_subscription(text)) == text


@given(any_subscriptions())
def test_a_subscription_reads_back_from_its_json(subscription):
    form = subscription_to_json(subscription)
    assert subscription_from_json(form) == subscription
    assert loads_subscription(dumps_subscription(subscription)) == subscription
    assert json.loads(dumps_subscription(subscription)) == form


@given(notifications(wide_names, wide_values))
def test_an_event_reads_back_from_its_text_and_its_json(event):
    assert parse_event(print_event(event)) == event
    assert list(parse_event(print_event(event))) == list(event)
    assert event_from_json(event_to_json(event)) == event
    assert loads_event(dumps_event(event)) == event


@given(any_subscriptions())
def test_every_constraint_and_filter_reads_back_alone(subscription):
    for alternative in subscription:
        assert parse_subscription(print_filter(alternative)) == Subscription((alternative,))
        for constraint in alternative:
            assert parse_subscription(print_constraint(constraint)) == Subscription.of(constraint)


@given(folding_rows)
def test_folding_the_shorthand_loses_nothing(row):
    assert expand(fold(row)) == tuple(row)
    held = Subscription((Filter(row),))
    assert parse_subscription(print_subscription(held)) == held


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back_and_never_as_a_long(number):
    text = double_text(number)
    assert identity(read_double(text)) == identity(number)
    assert "." in text
    assert "+" not in text


@given(st.text())
def test_a_string_reads_back_and_prints_only_what_a_terminal_shows(text):
    literal = write_string(text)
    assert read_string(literal) == text
    assert literal.isprintable()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1e10, "1.0E10"),
        (-1.25e300, "-1.25E300"),
        (5e-324, "5.0E-324"),
        (1e16, "1.0E16"),
        (123456789012345680.0, "1.2345678901234568E17"),
        (12345678.9, "1.23456789E7"),
    ],
)
def test_doubles_have_the_layout_of_the_wire(number, text):
    assert double_text(number) == text


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_no_form_can_write_is_refused_and_can_still_be_shown(number):
    for value in (number, Bag([1, number])):
        with pytest.raises(UnsupportedError):
            print_value(value)
        with pytest.raises(UnsupportedError):
            subscription_to_json(Subscription.of(Constraint("a", Content.EQ, value)))
    assert show_value(Bag([1, number, "x"])) == f'[1 {number} "x"]'
