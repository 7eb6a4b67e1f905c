"""The sorted blocks and duration classes, against lists."""

from __future__ import annotations

import random
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from kbn.matching.naive import value_holds
from kbn.model import Bag
from kbn.model.operators import BagKind, BagOp, Content, Semantic
from kbn.model.past import Box
from kbn.temporal.allen import contains
from kbn.temporal.ordered import Ordered
from kbn.temporal.spans import Spans
from kbn.temporal.windows import Values
from tests.temporal.worlds import Parity

numbers = st.integers(0, 12)


@given(st.lists(numbers, max_size=40), st.lists(st.tuples(st.booleans(), numbers), max_size=60))
def test_sorted_blocks_are_a_sorted_list(first, steps):
    with mock.patch("kbn.temporal.ordered.MOST", 4):
        blocks, plain = Ordered(first), sorted(first)
        for adding, key in steps:
            if adding or key not in plain:
                blocks.add(key)
                plain.append(key)
                plain.sort()
            else:
                blocks.remove(key)
                plain.remove(key)
            assert list(blocks) == plain
            assert len(blocks) == len(plain)
            assert blocks.first() == (plain[0] if plain else None)
            assert blocks.last() == (plain[-1] if plain else None)
            for probe in range(-1, 14):
                assert blocks.below(probe) == max((k for k in plain if k < probe), default=None)
                assert blocks.above(probe) == min((k for k in plain if k > probe), default=None)
            for count in range(len(plain) + 2):
                assert blocks.top(count) == (plain[-count:] if count else [])


bounds = st.one_of(st.none(), st.integers(-5, 110))
boxes = st.builds(Box, bounds, bounds, bounds, bounds)


@given(st.integers(0, 2**32), st.lists(boxes, min_size=1, max_size=20))
def test_spans_in_duration_classes_are_found_as_by_looking_at_each(seed, asked):
    draw = random.Random(seed)
    with mock.patch("kbn.temporal.spans.MOST", 4):
        spans, held = Spans(), {}
        for step in range(60):
            if held and draw.random() < 0.4:
                event = draw.choice(sorted(held))
                spans.remove(*held.pop(event), event)
            else:
                start = draw.randrange(100)
                held[f"e{step}"] = (start, start + draw.choice([0, 0, 1, 3, 4, 15, 16, 60]))
                spans.add(*held[f"e{step}"], f"e{step}")
            box = asked[step % len(asked)]
            exclude = draw.choice([*sorted(held), None])
            found = any(contains(box, *times) for event, times in held.items() if event != exclude)
            assert spans.any_within(box, exclude) == found


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 3),
    st.sampled_from([1.0, 2.5, float("nan"), "", "a", "ab", "b"]),
    st.builds(Bag, st.lists(st.integers(0, 2), max_size=2)),
)
operators = [*Content, Semantic.IS_A, BagOp(BagKind.SUBBAG), BagOp(BagKind.SUPERBAG, Content.LT)]


@given(st.lists(st.tuples(st.booleans(), values), max_size=30), values)
def test_a_bag_of_values_compares_as_each_of_them(steps, x):
    knowledge = Parity()
    kept, held = Values(), []
    for adding, value in steps:
        if adding or not held:
            kept.add(value)
            held.append(value)
        else:
            kept.remove(held.pop(0))
        for op in operators:
            found = any(value_holds(op, x, value, knowledge) for value in held)
            assert kept.any(op, x, knowledge) == found, op
