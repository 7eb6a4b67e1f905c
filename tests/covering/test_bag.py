"""The rules for bags, against every small bag there is."""

from __future__ import annotations

import random
from itertools import combinations_with_replacement

import pytest

from kbn.covering import filter_covers
from kbn.matching.naive import filter_matches
from kbn.model import Bag, Filter, Notification
from kbn.model.operators import BagKind, BagOp, Content
from tests.covering.builders import c, x

COVERED = [
    (x("subbag", [1, 2]), x("subbag", [1])),
    (x("subbag", [1, 2, 1]), x("bageq", [1, 1])),
    (x("superbag", [1]), x("superbag", [1, 2])),
    (x("superbag", [1]), x("bageq", [2, 1])),
    (x("bageq", [1, 2]), x("bageq", [2, 1.0])),
    (x("subbag[<]", [5, 9]), x("subbag[<]", [4, 8])),
    (x("subbag[<=]", [5]), x("subbag[<]", [5])),
    (x("superbag[>]", [5]), x("superbag", [3, 7])),
    (x("superbag[contains]", ["b"]), x("superbag[prefix]", ["ab", "z"])),
    (x("subbag[!=]", [3, 3]), x("subbag[<]", [1, 2])),
    (x("subbag[any]", [None, None]), x("bageq[<]", [1, 2])),
    (x("bageq[<=]", [False]), x("bageq[<]", [True])),
    # one value that is known
    (x("in", [1, 2]), x("=", 2)),
    (x("superbag", [1]), x("=", [1, 2])),
    (x("bageq", [1, 2]), x("=", [2, 1])),
    (x("=", [1, 2]), x("bageq", [2, 1])),
    (x("=", []), x("subbag", [])),
    (x("subbag[<]", [5]), x(">=", 3, "<=", 3)),
    # a plain value is a bag of one
    (x("subbag[<]", [1, 5]), x("<", 3)),
    (x("superbag[<]", [5]), x("<", 3)),
    (x("bageq[prefix]", ["a"]), x("prefix", "ab")),
    (x("in", [False, True]), x("<=", True)),
    (x("<=", 3), x("in", [3], ">", 0)),
    (x("superbag", []), x("any", None)),
    (x("any", None), x("in", [1])),
    # values that a bag constraint excludes
    (x("!=", 5), x("in", [1, 2])),
    (x("!=", [5]), x("superbag", [1])),
    # what no value can be paired with is no place
    (x("subbag", [1]), x("subbag", [1, float("nan")])),
    (x("subbag[<]", [5]), x("subbag[<]", [None, 5])),
]
NOT_COVERED = [
    (x("subbag", [1]), x("subbag", [1, 1])),
    (x("superbag", [1, 1]), x("superbag", [1])),
    (x("bageq", [1]), x("subbag", [1])),
    (x("bageq", [1]), x("superbag", [1])),
    (x("subbag", [1]), x("superbag", [1])),
    (x("subbag[<]", [5]), x("subbag[<=]", [5])),
    (x("superbag", [1, 2]), x("<", 3)),
    (x("superbag[<]", [5]), x("any", None)),
    (x("<", 5), x("bageq[<]", [5])),
    (x("=", 1), x("in", [1])),
    (x("!=", 1), x("in", [1, 2])),
    (x("subbag", []), x("any", None)),
]


@pytest.mark.parametrize(("f", "g"), COVERED, ids=repr)
def test_a_bag_constraint_covers(f, g):
    assert filter_covers(f, g)


@pytest.mark.parametrize(("f", "g"), NOT_COVERED, ids=repr)
def test_a_bag_constraint_does_not_cover(f, g):
    assert not filter_covers(f, g)


def _bags(members, most):
    return [
        Bag(chosen)
        for size in range(most + 1)
        for chosen in combinations_with_replacement(members, size)
    ]


#: Between, on and beyond the operands 1 and 2, so that the brute force below is exact.
_EVENTS = [Notification({"x": v}) for v in [0, 1, 1.5, 2, 3, *_bags([0, 1, 1.5, 2, 3], 3)]]
_SUBS = [None, Content.NE, Content.LT, Content.LE, Content.GT, Content.GE, Content.ANY]
_ASKED = [
    c("x", BagOp(kind, op), list(operand))
    for kind in BagKind
    for op in _SUBS
    for operand in _bags([1, 2], 2)
]


def test_no_pair_of_bag_constraints_over_a_small_domain_is_covered_wrongly():
    matched = {
        asked: frozenset(
            i for i, event in enumerate(_EVENTS) if filter_matches(Filter([asked]), event)
        )
        for asked in _ASKED
    }
    covered = 0
    for f in _ASKED:
        for g in _ASKED:
            if filter_covers(x(f.op, f.operand), x(g.op, g.operand)):
                covered += 1
                assert matched[g] <= matched[f], (f, g)
    assert covered > len(_ASKED)


def test_between_two_of_a_kind_with_one_operator_the_rules_miss_nothing():
    for kind in BagKind:
        for op in (None, Content.LT, Content.LE, Content.GT, Content.GE):
            for t in _bags([1, 2], 2):
                for u in _bags([1, 2], 2):
                    f, g = x(BagOp(kind, op), t), x(BagOp(kind, op), u)
                    truth = all(filter_matches(f, e) for e in _EVENTS if filter_matches(g, e))
                    assert filter_covers(f, g) == truth, (f, g)


def test_the_quick_way_for_large_bags_agrees_with_pairing_member_by_member(monkeypatch):
    rng = random.Random(5)
    ordered = [op for op in Content if op is not Content.ANY]
    values = [0, 1, 1.0, 2.5, 3, "a", "ab", "b", None]
    pairs = []
    for _ in range(3000):
        kind, held = rng.choice(list(BagKind)), rng.choice(list(BagKind))
        f = x(BagOp(kind, rng.choice(ordered)), rng.choices(values, k=rng.randint(1, 4)))
        g = x(BagOp(held, rng.choice(ordered)), rng.choices(values, k=rng.randint(1, 4)))
        pairs.append((f, g))
    quick = [filter_covers(f, g) for f, g in pairs]
    monkeypatch.setattr("kbn.covering.bag._MEMBERWISE", {})
    assert [filter_covers(f, g) for f, g in pairs] == quick
    assert sum(quick) > 50
