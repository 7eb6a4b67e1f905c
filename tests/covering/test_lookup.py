"""Looking up who covers and who is covered: the same as asking everybody."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbn.covering.filters import Facts, facts_imply
from kbn.covering.lookup import CoverIndex
from kbn.model import Constraint, Filter
from kbn.model.operators import Content
from tests.covering.builders import c, x
from tests.covering.pairs import Pool


class Both:
    """The index, and everybody in it."""

    def __init__(self) -> None:
        self.index: CoverIndex[int] = CoverIndex()
        self.held: dict[int, tuple[Filter, Facts]] = {}
        self._next = 0

    def add(self, asked: Filter) -> None:
        facts = Facts(asked.constraints)
        if not facts.contradictory:
            self.index.add(self._next, asked, facts)
            self.held[self._next] = (asked, facts)
            self._next += 1

    def remove(self, key: int) -> None:
        self.index.remove(key)
        del self.held[key]

    def agree_on(self, asked: Filter) -> None:
        facts = Facts(asked.constraints)
        if facts.contradictory:
            return
        above = {key for key, (held, _) in self.held.items() if facts_imply(facts, held)}
        below = {key for key, (_, theirs) in self.held.items() if facts_imply(theirs, asked)}
        assert sorted(self.index.coverers(facts)) == sorted(above)
        assert sorted(self.index.covered(asked, facts)) == sorted(below)


@given(st.integers(0, 2**32), st.booleans())
def test_the_index_finds_exactly_those_that_cover_and_are_covered(seed, tight):
    rng = random.Random(seed)
    pool = Pool(rng, tight=tight)
    both = Both()
    for _ in range(25):
        asked = rng.choice(pool.pair(complete=rng.random() < 0.5))
        both.agree_on(asked)
        both.add(asked)
        if len(both.held) > 12:
            both.remove(rng.choice(list(both.held)))


numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.sampled_from([2**53, 2**53 + 1, 5e-324, -5e-324, 1e308, 1.7976931348623157e308, 0, -0.0]),
)


@given(st.lists(st.tuples(numbers, numbers, st.booleans()), max_size=12))
def test_intervals_of_any_size_and_place_are_found(ends):
    both = Both()
    for one, other, exclusive in ends:
        low, high = sorted((one, other))
        asked = x(">", low, "<", high) if exclusive else x(">=", low, "<=", high)
        both.agree_on(asked)
        both.add(asked)
    for key, (asked, _) in list(both.held.items()):
        both.agree_on(asked)
        both.remove(key)
    assert len(both.index) == 0


scalars = st.sampled_from([1, 1.0, 2, 3, "", "a", "b", True, False, None, math.inf, -math.inf])
bag_constraints = st.builds(
    lambda kind, op, members: c("x", f"{kind}[{op}]" if op else kind, members),
    st.sampled_from(["subbag", "superbag", "bageq"]),
    st.sampled_from(["", "", "", "=", "<=", ">", "any", "!="]),
    st.lists(scalars, max_size=3),
)
plain_constraints = st.builds(lambda value: c("x", "=", value), scalars)


@given(st.lists(st.lists(bag_constraints | plain_constraints, min_size=1, max_size=2)))
def test_bags_are_found_by_their_members(filters):
    both = Both()
    for constraints in filters:
        both.agree_on(Filter(constraints))
        both.add(Filter(constraints))


@given(st.lists(st.text("ab\U0010ffff", max_size=4), max_size=12))
def test_beginnings_of_any_length_are_found(words):
    both = Both()
    for word in words:
        for asked in (x("prefix", word), x(">=", word), x("=", word), x("contains", word)):
            both.agree_on(asked)
            both.add(asked)


def test_an_emptied_index_keeps_nothing():
    both = Both()
    for asked in (
        Filter(),
        x(">", 1, "<", 3),
        x("prefix", "ab"),
        x("=", 5),
        x("any", None),
        x("in", [1, 2]),
    ):
        both.add(asked)
    for key in list(both.held):
        both.remove(key)
    upwards, downwards = both.index._upwards, both.index._downwards
    assert (upwards._doors, upwards._behind, upwards._chosen) == ({}, {}, {})
    assert (upwards._grids, upwards._lengths, upwards._among) == ({}, {}, {})
    assert (downwards._names, downwards._numbers) == ({}, {})


@pytest.mark.parametrize("many", [400])
def test_few_are_asked_where_filters_have_values_intervals_or_beginnings_of_their_own(
    many, monkeypatch
):
    both = Both()
    for n in range(many):
        both.add(Filter([c("s", "=", f"S{n}"), c("p", "<", n)]))
        both.add(x(">", 10 * n, "<", 10 * n + 9))
        both.add(Filter([c("y", "prefix", f"{n:03d}")]))
        both.add(Filter([c("tags", "superbag", ["hot", f"t{n}"])]))
        both.add(Filter([c("k", "in", [n, n + 1000, n + 2000])]))
    asked = []

    def counted(facts: Facts, wanted: Filter, order: object = None) -> bool:
        asked.append(wanted)
        return facts_imply(facts, wanted)

    monkeypatch.setattr("kbn.covering.lookup.facts_imply", counted)
    for wanted in (
        Filter([c("s", "=", "S7"), c("p", "<", 3)]),
        x(">", 1001, "<", 1002),
        Filter([c("y", "prefix", "1234")]),
        Filter([c("tags", "superbag", ["t7", "hot", "new"])]),
        Filter([c("k", "in", [1007, 7])]),
        Filter([c("k", "=", 2007)]),
    ):
        facts = Facts(wanted.constraints)
        assert len(list(both.index.coverers(facts))) == 1
        assert list(both.index.covered(wanted, facts)) == []
    assert len(asked) < 20


def test_a_point_and_a_bag_are_looked_up_by_what_they_equal():
    both = Both()
    both.add(x("=", 1))
    both.add(x("=", [1, 2]))
    both.add(Filter([Constraint("x", Content.EQ, True)]))
    both.agree_on(x("=", 1.0))
    both.agree_on(x("=", [2.0, 1]))
    assert list(both.index.coverers(Facts(x("=", [2.0, 1]).constraints))) == [1]
    assert list(both.index.coverers(Facts(x("=", True).constraints))) == [2]
