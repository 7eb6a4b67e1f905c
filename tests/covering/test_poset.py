"""The covering forest: its roots are the maximal filters, whatever comes and goes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbn.covering import contradictory, filter_covers
from kbn.covering.poset import CoveringForest, Moved
from kbn.matching.naive import filter_matches
from kbn.model import Filter
from tests.covering.builders import c, x
from tests.covering.pairs import Pool
from tests.covering.witnesses import BruteForce

WIDE, MIDDLE, NARROW = x("<", 9), x("<", 5), x("<", 3)


@given(st.integers(0, 2**32))
def test_roots_cover_everything_and_none_of_them_another(seed):
    rng = random.Random(seed)
    pool = Pool(rng)
    brute = BruteForce(pool.operands)
    forest = CoveringForest()
    held: dict[int, Filter] = {}
    told: set[Filter] = set()
    for key in range(30):
        if held and (len(held) > 12 or rng.random() < 0.3):
            gone = rng.choice(list(held))
            del held[gone]
            moved = forest.remove(gone)
        else:
            asked = rng.choice(pool.pair(complete=rng.random() < 0.5))
            held[key] = asked
            moved = forest.add(key, asked)
        assert told.isdisjoint(moved.exposed)
        told |= set(moved.exposed)
        assert told >= set(moved.hidden)
        told -= set(moved.hidden)
        roots = list(forest.roots())
        assert sorted(map(repr, told)) == sorted(map(repr, roots))
        assert all(forest.is_root(root) for root in roots)
        assert not any(f is not g and filter_covers(f, g) for f in roots for g in roots)
        assert set(roots) <= set(held.values())
        for asked in held.values():
            example = None if contradictory(asked) else brute.example(asked)
            assert example is None or any(filter_matches(root, example) for root in roots)
    for key in list(held):
        forest.remove(key)
    assert list(forest.roots()) == []
    assert len(forest) == 0


def test_a_wider_filter_hides_and_its_removal_exposes():
    forest = CoveringForest()
    assert forest.add(1, MIDDLE) == Moved((MIDDLE,), ())
    assert forest.add(2, NARROW) == Moved()
    assert forest.add(3, WIDE) == Moved((WIDE,), (MIDDLE,))
    assert forest.remove(1) == Moved()
    assert forest.remove(3) == Moved((NARROW,), (WIDE,))


def test_equal_filters_count_until_the_last_is_gone():
    forest = CoveringForest()
    forest.add("a", MIDDLE)
    assert forest.add("b", MIDDLE) == Moved()
    assert forest.remove("a") == Moved()
    assert forest.remove("b") == Moved((), (MIDDLE,))


def test_a_filter_that_nothing_matches_is_never_a_root():
    forest = CoveringForest()
    never = x("<", 1, ">", 2)
    assert forest.add(1, never) == Moved()
    assert not forest.is_root(never)
    assert forest.remove(1) == Moved()


def test_a_key_is_held_once():
    forest = CoveringForest()
    forest.add(1, WIDE)
    with pytest.raises(KeyError, match="held already"):
        forest.add(1, NARROW)


def test_a_chain_that_lost_its_root_several_times_stays_one_root():
    forest = CoveringForest()
    order = random.Random(1).sample(range(200), 200)
    for bound in order:
        forest.add(bound, Filter([c("s", "=", "S"), c("x", "<", bound)]))
    for bound in range(199, 0, -1):
        moved = forest.remove(bound)
        assert [f.constraints[1].operand for f in moved.exposed] == [bound - 1]
