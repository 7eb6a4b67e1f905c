"""Reasons for temporal verdicts: always the definition's, with the numbers in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbn.language import parse_subscription
from kbn.matching.explain import explain
from kbn.matching.naive import constraint_holds, matches
from kbn.matching.reasons import least_tolerance
from kbn.matching.temporal import NaiveHistory, allen_holds
from kbn.matching.world import World
from kbn.model.operators import Allen
from kbn.temporal import TemporalEngine
from tests.temporal.rig import entries_of
from tests.temporal.worlds import Parity, publication, publications, subscriptions


@given(
    st.lists(publications(), min_size=1, max_size=15), subscriptions, st.sampled_from([None, 2])
)
def test_the_verdict_is_the_definitions_and_a_miss_is_never_told_of_a_hit(
    published, asked, max_open
):
    log = entries_of(published)
    naive = NaiveHistory(log[:-1], Parity(), max_open)
    for entry in log[-1:]:
        world = World(Parity(), naive.about(entry))
        said = explain(asked, entry.notification, world)
        assert said.holds == matches(asked, entry.notification, world)
        for alternative in said.alternatives:
            for verdict in alternative.constraints:
                constraint = verdict.constraint
                assert verdict.holds == constraint_holds(constraint, entry.notification, world)
                missed = "nearest" in verdict.why or "none of" in verdict.why
                assert verdict.why
                assert not (verdict.holds and missed)


def why(asked, *published, x, max_open=None):
    """Why the first constraint about time held or not for the last publication."""
    engine = TemporalEngine()
    naive = NaiveHistory(max_open=max_open)
    for notification in (*published, x):
        admitted = engine.admit(notification, f"#{engine.seq}", 0, 0)
        world = World(history=naive.about(admitted.entry))
        naive.append(engine.apply(engine.seq + 1, admitted)[0])
    said = explain(parse_subscription(asked), x, world)
    return next(v.why for v in said.alternatives[0].constraints if v.constraint.inner is not None)


Y = (publication("START", "y", 10, k=1, p=5), publication("END", "y", None, 20))
OPEN = publication("START", "y", 10, k=1)


def at(moment, **attributes):
    return publication("INSTANT", "x", moment, moment, **attributes)


@pytest.mark.parametrize(
    ("asked", "published", "x", "words"),
    [
        ("end after(5ms) { k = 1 }", (), at(25), "the history is empty"),
        ("end after(5ms) { k = 2 }", Y, at(25), "none of 1 stored events matches { k = 2 }"),
        ("end after(5ms) { k = 1 }", Y, at(25), "25 − 20 = 5 ms: event 'y' ended that long"),
        (
            "end after(2s) { k = 1 }",
            Y,
            at(2320),
            "the nearest was event 'y', ended 2,300 ms before, limit 2,000 ms",
        ),
        ("end after(2s) { k = 1 }", Y, at(20), "in the same millisecond, and after is strict"),
        ("end after(2s) { k = 1 }", Y, at(15), "event 'y', ended 5 ms later"),
        ("end after(2s) { k = 1 }", (OPEN,), at(15), "event 'y', which is still going on"),
        ("start during { k = 1 }", Y, at(15), "10 ≤ 15 and 15 ≤ 20: within event 'y'"),
        ("start during { k = 1 }", (OPEN,), at(15), "it is still going on: within event 'y'"),
        ("start during { k = 1 }", Y, at(26), "the nearest was event 'y', ended 6 ms before"),
        ("start during { k = 1 }", Y, at(7), "the nearest was event 'y', began 3 ms later"),
        (
            "start during { k = 1 }",
            (publication("END", "y", None, 20, k=1),),
            at(15),
            "whose start is not known",
        ),
        ("relation(after) { k = 1 }", Y, at(25), "25 … 25 after 10 … 20: event 'y'"),
        (
            "relation(finishes) { k = 1 }",
            Y,
            at(23),
            "event 'y', 10 … 20: 23 … 23 after it, finishes would need ±3 ms",
        ),
        ("relation(equals) { k = 1 }", (OPEN,), at(23), "10 … ∞: 23 … 23 during it"),
        (
            "relation(after) { k = 1 }",
            Y,
            publication("END", "x", None, 30),
            "the start of this event is not known",
        ),
        ("p filter(>) { k = 1 }", Y, at(9, p=6), "6 > 5 of event 'y', number 1 of the last 1"),
        (
            "p filter(=) { k = 1 }",
            Y,
            at(9, p=6),
            "6 = holds for none of the 1 values; the nearest was 5 of event 'y'",
        ),
        (
            "p filter(=, last 1) {}",
            (*Y, publication("INSTANT", "z", 30, 30, p=1)),
            at(9, p=5),
            "none of the last 1 events; the nearest was number 2: 5 = 5 of event 'y'",
        ),
        ("q filter(=) { k = 1 }", Y, at(9, q=6), "none of the 1 events has an attribute 'q'"),
    ],
)
def test_the_reason_has_the_numbers(asked, published, x, words):
    assert words in why(asked, *published, x=x)


@pytest.mark.parametrize("asked", ["start during { k = 1 }", "relation(finishes) { k = 1 }"])
def test_an_event_open_for_too_long_is_told_with_its_age(asked):
    said = why(asked, OPEN, x=at(16), max_open=5)
    assert "event 'y', open for 6 ms, at most 5 ms count" in said


pairs = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)


@given(st.sampled_from(list(Allen)), pairs, pairs)
def test_the_least_tolerance_is_the_least_under_which_the_relation_holds(kind, x, y):
    least = least_tolerance(kind, tuple(x), tuple(y))
    for tolerance in range(25):
        assert allen_holds(kind, tolerance, tuple(x), tuple(y)) == (tolerance >= least)
