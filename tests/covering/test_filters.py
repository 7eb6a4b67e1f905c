"""Covering, case by case; the laws are in ``test_laws``."""

from __future__ import annotations

import math

import pytest

from kbn.covering import contradictory, covers, filter_covers
from kbn.covering.filters import facts_of
from kbn.model import Filter
from tests.covering.builders import c, sub, x

NAN, INF = math.nan, math.inf

COVERED = [
    # bounds
    (x("<=", 5), x("<", 5)),
    (x("<", 5.0), x("<=", 4)),
    (x("<", 5), x("<=", 5, "!=", 5.0)),
    (x(">", 5), x(">=", 5, "!=", 5)),
    (x("=", 5), x(">=", 5, "<=", 5.0)),
    (x("!=", 5), x(">", 1, "<", 3)),
    (x("!=", 5), x(">", 5)),
    (x("!=", 5), x("=", "5")),
    (x("!=", 5), x("<", "5")),
    (x("!=", 5), x("=", [5])),
    (x("any", None), x("!=", 5)),
    (x("<=", 2**53 + 1), x("<", 2.0**53)),
    (x("<=", 0.0), x("<=", -0.0)),
    (x("<", INF), x("<=", 1e308)),
    (x("<=", INF), x(">", 5)),
    (x(">=", -INF), x("<", 5)),
    # strings
    (x("prefix", "ab"), x(">=", "ab", "<", "ac")),
    (x("<", "ac"), x("prefix", "ab")),
    (x(">", "ab"), x("prefix", "ab", "!=", "ab")),
    (x(">=", "ab"), x("prefix", "abc")),
    (x("=", "a"), x("prefix", "a", "<=", "a")),
    (x("=", "a"), x(">=", "a", "<=", "a")),
    (x("=", ""), x("<=", "")),
    (x(">=", ""), x("suffix", "z")),
    (x("prefix", ""), x("contains", "z")),
    (x("prefix", "\ud7ff"), x(">=", "\ud7ff", "<", "\ue000")),
    (x("contains", "b"), x("contains", "abc")),
    (x("contains", "b"), x("suffix", "xb")),
    (x("contains", "b"), x("prefix", "ab")),
    (x("contains", "b"), x("prefix", "\U0010ffffb")),
    (x("contains", "b"), x("=", "abc")),
    (x("contains", "b"), x(">", "ab1", "<", "ab2")),
    (x("suffix", "c"), x("suffix", "bc")),
    (x("suffix", ""), x("<", "c")),
    (x("!=", "abc"), x("suffix", "b")),
    # bools, null, NaN
    (x("=", False), x("<", True)),
    (x("=", True), x("!=", False, "<=", True)),
    (x("<=", True), x(">=", False)),
    (x("!=", None), x(">=", False)),
    (x("=", None), x("=", None)),
    (x("!=", NAN), x("any", None)),
    (x("!=", [1, NAN]), x("any", None)),
    # contradictions are covered by anything
    (x("=", 1), x(">", 5, "<", 5)),
    (x("=", 1), x("<", "")),
    (x("=", 1), x("=", NAN)),
    (x("=", 1), x("<", NAN)),
    (x("=", 1), x("<", None)),
    (x("=", 1), x("<", [1])),
    (x("=", 1), x("prefix", 1)),
    (x("=", 1), x("=", 1, "=", 2)),
    (x("=", 1), x("<", 5, "prefix", "a")),
    (x("=", 1), x("=", [1, 2], "<", 5)),
    (x("=", 1), x(">=", True, "!=", True)),
    (x("=", 1), x(">", INF)),
    (x("=", 1), x("=", "ab", "suffix", "c")),
    (x("=", 1), x("superbag", [1, 2], "<", 5)),
    (x("=", 1), x("subbag", [], "=", 5)),
    (x("=", 1), x("subbag[<]", [None], "superbag", [1])),
    # other names only narrow
    (Filter(), x("=", 1)),
    (x("<", 5), Filter([c("y", "=", 1), c("x", "<", 3)])),
]

NOT_COVERED = [
    (x("<=", "abc"), x("prefix", "ab")),
    (x("<=", 4), x("<", 5.0)),
    (x("<", 5), x("<=", 5)),
    (x("<=", 2.0**53), x("<=", 2**53 + 1)),
    (x("!=", 5), x("any", None)),
    (x("!=", 5), x("!=", 6)),
    (x("<", 5), x("!=", 5)),
    (x("=", 5), x("=", True)),
    (x("=", 1), x("=", True)),
    (x("=", 5), x("=", [5])),
    (x("=", [5]), x("bageq", [5])),
    (x("prefix", "ab"), x(">=", "ab", "<=", "ac")),
    (x("contains", "b"), x("prefix", "a")),
    (x("suffix", "b"), x("contains", "b")),
    (x("suffix", "b"), x("prefix", "ab")),
    (x(">=", 5), x(">=", "5")),
    (x("<=", INF), x("any", None)),
    (x("any", None), Filter()),
    (x("any", None), Filter([c("y", "any")])),
    (Filter([c("x", "<", 5), c("y", "any")]), x("<", 5)),
]


@pytest.mark.parametrize(("f", "g"), COVERED, ids=repr)
def test_everything_that_matches_the_second_matches_the_first(f, g):
    assert filter_covers(f, g)


@pytest.mark.parametrize(("f", "g"), NOT_COVERED, ids=repr)
def test_something_matches_the_second_only(f, g):
    assert not filter_covers(f, g)


def test_each_alternative_needs_one_alternative_that_covers_it():
    assert covers(sub(x("<", 5), x(">", 7)), sub(x("<", 3)))
    assert covers(sub(x("<", 5), x(">", 7)), sub(x("<", 3), x(">", 8)))
    assert not covers(sub(x("<", 5), x(">", 7)), sub(x("<", 3), x("=", 6)))


def test_values_one_by_one_do_not_cover_a_bag_of_them():
    assert not covers(sub(x("=", 1), x("=", 2)), sub(x("in", [1, 2])))


def test_a_contradictory_alternative_is_covered_by_any_subscription():
    assert covers(sub(x("=", 1)), sub(x("<", 1, ">", 1), x("=", 1)))


@pytest.mark.parametrize("g", [g for f, g in COVERED if f == x("=", 1)], ids=repr)
def test_a_filter_that_nothing_can_match_is_contradictory(g):
    assert contradictory(g)


@pytest.mark.parametrize(
    "g", [Filter(), x("any", None), x("!=", NAN), x(">=", 5, "<=", 5), x("subbag", [])], ids=repr
)
def test_a_filter_that_something_matches_is_not(g):
    assert not contradictory(g)


def test_the_facts_of_a_filter_are_read_once():
    assert facts_of(x("<", 5)) is facts_of(x("<", 5))
