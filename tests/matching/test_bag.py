"""Bag operators: the definition by trying every injection, against the fast ways."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbn.matching.bag import bag_holds, bags_pair, pairing
from kbn.matching.content import content_holds
from kbn.model.operators import BagKind, Content
from tests import strategies

members = st.lists(st.one_of(strategies.scalars, st.just(float("nan"))), max_size=5)
subs = st.one_of(st.none(), st.sampled_from(list(Content)))


def brute(kind, sub, values, targets):
    """Every v (or t) gets its own partner: look at every way to give one."""

    def pairs(v, t):
        return content_holds(sub or Content.EQ, v, t)

    if kind is BagKind.SUPERBAG:
        return any(
            all(map(pairs, chosen, targets)) for chosen in permutations(values, len(targets))
        )
    if kind is BagKind.BAGEQ and len(values) != len(targets):
        return False
    return any(all(map(pairs, values, chosen)) for chosen in permutations(targets, len(values)))


@given(st.sampled_from(list(BagKind)), subs, members, members)
def test_the_fast_way_and_the_pairing_equal_every_injection_tried(kind, sub, values, targets):
    expected = brute(kind, sub, values, targets)
    assert bag_holds(kind, sub, values, targets) is expected
    slow = bags_pair(kind, lambda v, t: content_holds(sub or Content.EQ, v, t), values, targets)
    assert slow is expected


@pytest.mark.parametrize(
    ("values", "kind", "sub", "targets", "expected"),
    [
        ([2, 4], BagKind.SUBBAG, Content.LT, [1, 3, 5, 7, 9], True),
        ([2, 2, 2], BagKind.SUBBAG, Content.LT, [1, 3, 4], False),
        ([1, 1, 2], BagKind.BAGEQ, None, [1, 2, 1], True),
        ([1, 2], BagKind.BAGEQ, None, [1, 2, 1], False),
        ([1, 2], BagKind.SUBBAG, None, [1, 1, 2], True),
        ([1, 1], BagKind.SUBBAG, None, [1, 2], False),
        ([], BagKind.SUBBAG, Content.LT, [], True),
        ([], BagKind.SUPERBAG, None, [], True),
        ([], BagKind.SUPERBAG, None, [1], False),
        (["x"], BagKind.SUBBAG, Content.LT, [5], False),
        ([1, "a"], BagKind.SUBBAG, Content.LE, ["b", 2], True),
        ([True], BagKind.SUBBAG, None, [1], False),
        ([5, 1], BagKind.SUPERBAG, Content.GT, [4], True),
    ],
)
def test_a_bag_stands_in_the_relation_the_language_defines(values, kind, sub, targets, expected):
    assert bag_holds(kind, sub, values, targets) is expected


def test_a_greedy_choice_is_taken_back_when_another_member_needs_it():
    # 1 could take either; 2 only the first: a greedy pairing would fail.
    edges = {(1, "p"), (1, "q"), (2, "p")}
    partners = pairing([1, 2], ["p", "q"], lambda v, t: (v, t) in edges)
    assert partners == [1, 0]


def test_a_pairing_along_a_long_chain_needs_no_deep_stack():
    size = 1500
    chain = pairing(
        list(range(size)),
        list(range(size)),
        lambda v, t: t in (v, v + 1) or (v == size - 1 and t == 0),
    )
    assert sorted(chain) == list(range(size))
