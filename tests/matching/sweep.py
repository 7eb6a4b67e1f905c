"""Index against naive on many random pairs: ``python -m tests.matching.sweep``.

A pair is one subscription and one notification. Subscriptions come and go while
notifications are matched; all operators occur, with stub oracles for the
semantic and temporal ones. Everything follows from the seed. Prints one JSON
line: pairs, how many of them matched, differences, seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from typing import NamedTuple

from kbn.matching.index import PredicateIndex
from kbn.matching.naive import matches
from kbn.model import Bag, Constraint, Filter, Notification, Scalar, Subscription, Value
from kbn.model.operators import (
    After,
    Allen,
    BagKind,
    BagOp,
    Content,
    During,
    Operator,
    Related,
    Relation,
    Semantic,
    Window,
)
from kbn.model.time import END_TIME, START_TIME
from tests.matching.index.worlds import stub_world

_NAMES = ("a", "b", "c", "d", START_TIME, END_TIME)
_POINTS: tuple[Scalar, ...] = (
    *(-(2**63), -1, 0, 1, 2, 3, 5, 2**53, 2**53 + 1, 2**63 - 1),
    *(-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, 2.5, 2.0**53, 5e-324),
    *(float("nan"), float("inf"), float("-inf")),
    *("", "a", "ab", "abc", "abcab", "b", "ba", "cab", "bcabc", "é"),
    *(True, False, None),
)
_SEMANTIC = (*Semantic, Related("p"), Related("q"))
_ORDERED = (Content.LT, Content.LE, Content.GT, Content.GE)
#: How many constraints a filter has; the empty one matches all and so hides much.
_SIZES = (0, *(1,) * 10, *(2,) * 12, *(3,) * 8, *(4,) * 4)
_POPULATION = 400
_REPLACED = 40
_EVENTS = 10


class Swept(NamedTuple):
    pairs: int
    matched: int
    differences: int
    seconds: float


def sweep(pairs: int, seed: int = 1) -> Swept:
    """Compare until at least ``pairs`` pairs were decided by both."""
    draw = random.Random(f"matching sweep {seed}")
    world = stub_world()
    index = PredicateIndex()
    live: dict[int, Subscription] = {}
    done = matched = differences = fresh = 0
    began = time.perf_counter()
    while done < pairs:
        for key in draw.sample(list(live), min(_REPLACED, len(live))):
            index.remove(key)
            del live[key]
        while len(live) < _POPULATION:
            live[fresh] = _subscription(draw)
            index.add(fresh, live[fresh])
            fresh += 1
        for _ in range(_EVENTS):
            event = _notification(draw)
            expected = {key for key, asked in live.items() if matches(asked, event, world)}
            differences += len(expected ^ index.match(event, world))
            done += len(live)
            matched += len(expected)
    return Swept(done, matched, differences, time.perf_counter() - began)


def _value(draw: random.Random) -> Value:
    if draw.random() < 0.15:
        return Bag(draw.choices(_POINTS, k=draw.randrange(4)))
    return draw.choice(_POINTS)


def _simple(draw: random.Random) -> Content | Semantic | Related:
    return draw.choice(tuple(Content)) if draw.random() < 0.7 else draw.choice(_SEMANTIC)


def _bag_operator(draw: random.Random) -> BagOp:
    return BagOp(draw.choice(tuple(BagKind)), None if draw.random() < 0.5 else _simple(draw))


def _temporal(draw: random.Random, depth: int) -> Constraint:
    inner = _subscription(draw, depth + 1)
    name = draw.choice((START_TIME, END_TIME))
    op: Operator
    match draw.randrange(4):
        case 0:
            op = During()
        case 1:
            op = After(draw.choice((1, 1000)))
        case 2:
            op, name = Window(_simple(draw), draw.choice((1, 50))), draw.choice(_NAMES)
        case _:
            op, name = Relation(draw.choice(tuple(Allen)), 0), END_TIME
    return Constraint(name, op, inner)


def _constraint(draw: random.Random, depth: int) -> Constraint:
    chance = draw.random()
    if chance < 0.04 and depth < 2:
        return _temporal(draw, depth)
    name = draw.choice(_NAMES)
    if chance < 0.14:
        return Constraint(name, draw.choice(_SEMANTIC), _value(draw))
    if chance < 0.26:
        return Constraint(name, _bag_operator(draw), _value(draw))
    op = draw.choice(_ORDERED) if chance < 0.6 else draw.choice(tuple(Content))
    return Constraint(name, op, None if op is Content.ANY else _value(draw))


def _filter(draw: random.Random, depth: int) -> Filter:
    return Filter(_constraint(draw, depth) for _ in range(draw.choice(_SIZES)))


def _subscription(draw: random.Random, depth: int = 0) -> Subscription:
    return Subscription(_filter(draw, depth) for _ in range(draw.choice((1, 1, 1, 2, 3))))


def _notification(draw: random.Random) -> Notification:
    return Notification({name: _value(draw) for name in _NAMES if draw.random() < 0.8})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.matching.sweep", description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(json.dumps(sweep(options.pairs, options.seed)._asdict()))  # noqa: T201


if __name__ == "__main__":
    main()
