"""Hypothesis strategies for the model: small alphabets, so that things meet.

Values are drawn from a few neighbouring points (numbers next to each other in
both types, words that are prefixes of each other), because random values from
wide ranges would never be equal, nested or contradictory.
"""

from __future__ import annotations

from hypothesis import strategies as st

from kbn.model import Bag, Constraint, Filter, Notification, Subscription
from kbn.model.operators import (
    After,
    Allen,
    BagKind,
    BagOp,
    Content,
    During,
    Related,
    Relation,
    Semantic,
    Window,
)
from kbn.model.time import END_TIME, TIME_ATTRIBUTES

NAMES = ("a", "b", "pos.x", "and", "two words", "é", "start")

near_longs = st.sampled_from([-(2**63), -2, -1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1])
near_doubles = st.sampled_from([-1.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.0**53, 1e300, 5e-324])
near_strings = st.sampled_from(["", "a", "ab", "abc", "b", "ba", "bab", "c\x00", "é", "a:b"])

scalars = st.one_of(st.none(), st.booleans(), near_longs, near_doubles, near_strings)
bags = st.builds(Bag, st.lists(scalars, max_size=4))
values = st.one_of(scalars, bags)

#: Any value that every form can write, over the whole range of the types.
wide_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
)
wide_values = st.one_of(wide_scalars, st.builds(Bag, st.lists(wide_scalars, max_size=4)))

names = st.sampled_from(NAMES)
wide_names = st.one_of(names, st.text(max_size=8))

content_operators = st.sampled_from([op for op in Content if op is not Content.ANY])
semantic_operators = st.one_of(
    st.sampled_from(list(Semantic)),
    st.builds(Related, st.sampled_from(["geo:isWestOf", "http://x/g#isWestOf"])),
)
simple_operators = st.one_of(st.sampled_from(list(Content)), semantic_operators)
bag_operators = st.builds(
    BagOp, st.sampled_from(list(BagKind)), st.one_of(st.none(), simple_operators)
)
content_bag_operators = st.builds(
    BagOp,
    st.sampled_from(list(BagKind)),
    st.one_of(st.none(), st.sampled_from(list(Content))),
)
milliseconds = st.sampled_from([1, 2, 999, 1000, 1500, 2000, 60_000, 5_400_000, 86_400_000])


def content_constraints(
    names: st.SearchStrategy[str] = names, values: st.SearchStrategy = values
) -> st.SearchStrategy[Constraint]:
    """Content and bag constraints with content sub-operators: decided without a world."""
    return st.one_of(
        st.builds(Constraint, names, content_operators, values),
        st.builds(Constraint, names, st.just(Content.ANY)),
        st.builds(Constraint, names, content_bag_operators, values),
    )


def content_filters(
    names: st.SearchStrategy[str] = names, max_size: int = 4
) -> st.SearchStrategy[Filter]:
    return st.builds(Filter, st.lists(content_constraints(names), max_size=max_size))


def content_subscriptions(
    names: st.SearchStrategy[str] = names,
) -> st.SearchStrategy[Subscription]:
    return st.builds(Subscription, st.lists(content_filters(names), min_size=1, max_size=3))


def _flat_constraints(
    names: st.SearchStrategy[str], values: st.SearchStrategy
) -> st.SearchStrategy[Constraint]:
    return st.one_of(
        content_constraints(names, values),
        st.builds(Constraint, names, semantic_operators, values),
        st.builds(Constraint, names, bag_operators, values),
    )


def _temporal_constraints(
    names: st.SearchStrategy[str], inner: st.SearchStrategy[Subscription]
) -> st.SearchStrategy[Constraint]:
    times = st.sampled_from(TIME_ATTRIBUTES)
    windows = st.builds(
        Window,
        st.one_of(simple_operators, bag_operators),
        st.sampled_from([1, 50, 200, 10_000]),
    )
    relations = st.builds(
        Relation, st.sampled_from(list(Allen)), st.one_of(st.just(0), milliseconds)
    )
    return st.one_of(
        st.builds(Constraint, times, st.just(During()), inner),
        st.builds(Constraint, times, st.builds(After, milliseconds), inner),
        st.builds(Constraint, names, windows, inner),
        st.builds(Constraint, st.just(END_TIME), relations, inner),
    )


def _subscriptions_of(
    constraints: st.SearchStrategy[Constraint],
) -> st.SearchStrategy[Subscription]:
    filters = st.builds(Filter, st.lists(constraints, max_size=3))
    return st.builds(Subscription, st.lists(filters, min_size=1, max_size=3))


def any_subscriptions(
    names: st.SearchStrategy[str] = wide_names, values: st.SearchStrategy = wide_values
) -> st.SearchStrategy[Subscription]:
    """Subscriptions with every operator of the language, nested up to a few levels."""
    flat = _flat_constraints(names, values)
    return st.recursive(
        _subscriptions_of(flat),
        lambda inner: _subscriptions_of(st.one_of(flat, _temporal_constraints(names, inner))),
        max_leaves=3,
    )


def notifications(
    names: st.SearchStrategy[str] = names, values: st.SearchStrategy = values
) -> st.SearchStrategy[Notification]:
    return st.builds(Notification, st.dictionaries(names, values, max_size=5))
