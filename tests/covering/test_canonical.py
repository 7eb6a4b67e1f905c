from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbn.covering import canonical, contradictory, covers
from kbn.covering.canonical import NEVER
from kbn.matching.naive import matches
from kbn.model import Bag, Constraint, Filter, Subscription
from kbn.model.operators import After, Content, During, Window
from kbn.model.time import END_TIME
from tests import strategies as kbn_st
from tests.covering.builders import c, sub, x

_NAMES = st.sampled_from(["a", "b"])
_SUBSCRIPTIONS = kbn_st.content_subscriptions(_NAMES)


@given(_SUBSCRIPTIONS, st.lists(kbn_st.notifications(_NAMES), min_size=8, max_size=8))
def test_it_matches_exactly_what_the_original_matches(subscription, events):
    form = canonical(subscription)
    for event in events:
        assert matches(form, event) == matches(subscription, event)


@given(kbn_st.any_subscriptions(_NAMES, kbn_st.values))
def test_it_is_its_own_canonical_form(subscription):
    form = canonical(subscription)
    assert canonical(form) == form


@given(_SUBSCRIPTIONS)
def test_it_and_the_original_cover_each_other(subscription):
    form = canonical(subscription)
    assert covers(form, subscription)
    assert covers(subscription, form)


@given(kbn_st.any_subscriptions(_NAMES, kbn_st.values), st.randoms(use_true_random=False))
def test_the_order_in_which_it_was_written_does_not_count(subscription, rng):
    def shuffled(items):
        return rng.sample(list(items), len(items))

    other = Subscription(Filter(shuffled(f)) for f in shuffled(subscription.alternatives))
    assert canonical(other) == canonical(subscription)


@pytest.mark.parametrize(
    ("given", "form"),
    [
        (sub(x("<", 5, "<", 3)), sub(x("<", 3))),
        (sub(x("<", 3.0, "<", 3)), sub(x("<", 3))),
        (sub(x("=", -0.0)), sub(x("=", 0))),
        (sub(x("=", 0.5)), sub(x("=", 0.5))),
        (sub(x("<", 1e300)), sub(x("<", 1e300))),
        (sub(x("any", None, "!=", 7, "<", 3)), sub(x("<", 3))),
        (sub(x("subbag[=]", 3.0)), sub(x("subbag", [3]))),
        (sub(x("=", ["b", 2, 1.0])), sub(x("=", [1, 2, "b"]))),
        (sub(Filter([c("b", "any"), c("a", "any")])), sub(Filter([c("a", "any"), c("b", "any")]))),
        (sub(x("<", 3), x("<", 5)), sub(x("<", 5))),
        (sub(x("<", 3), x("<", 1, ">", 1)), sub(x("<", 3))),
        (sub(x("=", math.nan), x("<", None)), NEVER),
        (NEVER, NEVER),
        (sub(Filter()), sub(Filter())),
        (sub(x("=", 1), Filter()), sub(Filter())),
        (sub(x("is_a", "p:b", "is_a", "p:b")), sub(x("is_a", "p:b"))),
    ],
    ids=repr,
)
def test_it_has_one_spelling(given, form):
    assert canonical(given) == form


def test_what_stands_in_braces_is_canonical_too():
    def asks(op, inner, name=END_TIME):
        return Subscription.of(Constraint(name, op, inner))

    untidy, tidy = sub(x("<", 5, "<", 3.0), x("<", 1, ">", 2)), sub(x("<", 3))
    assert canonical(asks(During(), untidy)) == asks(During(), tidy)
    assert canonical(asks(Window(Content.LT, 5), untidy)) == asks(Window(Content.LT, 5), tidy)
    assert canonical(asks(After(5), sub(x("<", 1, ">", 2)))) == NEVER


def test_the_form_of_what_cannot_be_matched_is_contradictory():
    assert all(contradictory(alternative) for alternative in NEVER)


def test_a_long_and_the_double_beside_it_stay_apart():
    assert canonical(sub(x("=", 2.0**53))) == sub(x("=", 2**53))
    assert canonical(sub(x("=", 2**53 + 1))) == sub(x("=", 2**53 + 1))
    assert canonical(sub(x("=", 2.0**63))) == sub(x("=", 2.0**63))


def test_members_of_a_semantic_bag_keep_their_spelling():
    form = canonical(sub(x("subbag[is_a]", ["p:b", 1.0, "p:a"])))
    assert form == sub(x("subbag[is_a]", list(Bag([1.0, "p:a", "p:b"]))))
