"""Sorted bounds and tiles against a plain scan, through many cuts and joins."""

from __future__ import annotations

import operator
import random
from itertools import product

import pytest

from kbn.matching.index import sorted_bounds, tiles
from kbn.matching.index.sorted_bounds import SortedBounds
from kbn.matching.index.tiles import Tiles
from kbn.model.operators import Content

COMPARE = {
    Content.LT: operator.lt,
    Content.LE: operator.le,
    Content.GT: operator.gt,
    Content.GE: operator.ge,
}
POINTS = [*range(-3, 20), 0.5, 7.5, 2**53, 2**53 + 1, -(2.0**60)]


@pytest.fixture(autouse=True, params=[4, 16, 512])
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_bounds, "MOST", request.param)
    monkeypatch.setattr(tiles, "MOST", request.param)


@pytest.mark.parametrize("op", COMPARE, ids=lambda op: op.text)
def test_a_line_gives_the_items_whose_bound_holds(op: Content):
    draw = random.Random(f"line {op.text}")
    line, held = SortedBounds(op), {}
    for step in range(600):
        bound = draw.choice(POINTS)
        if bound in held:
            line.remove(bound)
            del held[bound]
        else:
            line.insert(bound, step)
            held[bound] = step
        found: list[int] = []
        x = draw.choice(POINTS)
        line.collect(x, found.extend)
        expected = [item for b, item in held.items() if COMPARE[op](x, b)]
        assert sorted(found) == sorted(expected)
    for bound in held:
        line.remove(bound)
    found = []
    line.collect(5, found.extend)
    assert not found


@pytest.mark.parametrize(
    "ops", list(product(COMPARE, COMPARE)), ids=lambda p: f"{p[0].text} {p[1].text}"
)
def test_tiles_give_the_items_whose_pair_holds(ops: tuple[Content, Content]):
    draw = random.Random(f"tiles {ops[0].text} {ops[1].text}")
    plane, held = Tiles(*ops), {}
    # Few first bounds, so that ties run over several tiles.
    firsts = POINTS[:6] if draw.random() < 0.5 else POINTS
    for step in range(600):
        pair = (draw.choice(firsts), draw.choice(POINTS))
        if pair in held and draw.random() < 0.6:
            plane.remove(pair)
            del held[pair]
        elif pair not in held:
            plane.insert(pair, step)
            held[pair] = step
        found: list[int] = []
        x, y = draw.choice(POINTS), draw.choice(POINTS)
        plane.collect(x, y, found.extend)
        expected = [
            item
            for (a, b), item in held.items()
            if COMPARE[ops[0]](x, a) and COMPARE[ops[1]](y, b)
        ]
        assert sorted(found) == sorted(expected)
    for pair in held:
        plane.remove(pair)
    found = []
    plane.collect(5, 5, found.extend)
    assert not found
