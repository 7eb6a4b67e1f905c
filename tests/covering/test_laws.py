"""The law of covering, for any content and bag constraints; and what follows from it."""

from __future__ import annotations

import os
import random

from hypothesis import given
from hypothesis import strategies as st

from kbn.covering import contradictory, covers, filter_covers
from kbn.matching.naive import filter_matches, matches
from kbn.model import Filter
from tests import strategies as kbn_st
from tests.covering import sweep as sweeping
from tests.covering.pairs import Pool
from tests.covering.sweep import sweep
from tests.covering.witnesses import BruteForce

_NAMES = st.sampled_from(["a", "b"])
_DEEP = os.environ.get("KBN_PROFILE") == "deep"


@given(
    kbn_st.content_subscriptions(_NAMES),
    kbn_st.content_subscriptions(_NAMES),
    st.lists(kbn_st.notifications(_NAMES), max_size=8),
)
def test_whatever_matches_the_covered_matches_the_covering(f, g, events):
    if covers(f, g):
        for event in events:
            assert not matches(g, event) or matches(f, event)


@given(kbn_st.content_filters(_NAMES, 2), kbn_st.content_filters(_NAMES, 3))
def test_no_value_near_the_operands_tells_the_covered_from_the_covering(f, g):
    if filter_covers(f, g):
        brute = BruteForce([constraint.value for constraint in (*f, *g)])
        assert brute.counterexample(f, g) is None


@given(kbn_st.any_subscriptions(_NAMES, kbn_st.values))
def test_every_subscription_covers_itself(subscription):
    assert covers(subscription, subscription)


@given(kbn_st.content_filters(_NAMES), kbn_st.content_filters(_NAMES))
def test_asking_more_is_covered_by_asking_less(f, g):
    assert filter_covers(f, Filter([*f, *g]))
    assert filter_covers(f, Filter([*g, *f]))


@given(kbn_st.content_filters(_NAMES), kbn_st.notifications(_NAMES))
def test_nothing_matches_a_contradictory_filter(g, event):
    assert not (contradictory(g) and filter_matches(g, event))


def test_covering_is_transitive_where_it_is_complete():
    rng = random.Random(11)
    chains = 0
    for _ in range(20):
        pool = Pool(rng)
        filters = [f for _ in range(12) for f in pool.pair(complete=True)]
        for b in filters:
            above = [a for a in filters if filter_covers(a, b)]
            below = [d for d in filters if filter_covers(b, d)]
            for a in above:
                for d in below:
                    chains += 1
                    assert filter_covers(a, d), (a, b, d)
    assert chains > 1000


def test_a_sweep_finds_nothing_unsound_and_nothing_missed():
    outcome = sweep(1_000_000 if _DEEP else 20_000)
    assert outcome.failures == []
    assert (outcome.unsound, outcome.incomplete) == (0, 0)
    assert outcome.covered - outcome.vacuous > outcome.pairs // 10
    assert outcome.promised > outcome.pairs // 10


def test_a_sweep_notices_an_answer_that_is_wrong_in_either_direction(monkeypatch):
    monkeypatch.setattr(sweeping, "filter_covers", lambda f, g: not filter_covers(f, g))
    outcome = sweep(300)
    assert outcome.unsound > 50
    assert outcome.incomplete > 10
