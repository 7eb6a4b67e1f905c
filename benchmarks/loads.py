"""The loads that benchmarks share: deterministic subscriptions and events.

*stock*: ``symbol = S and price < p``, every other filter also ``volume > v``. A
thousand symbols, drawn zipf-like for filters and events alike: the symbol of
rank r has weight 1 / (r + 1.4), so every tenth filter and event is the first's.
Prices and volumes are uniform, so a filter of the event's symbol matches with
probability 1/2 or 1/4, and an event finds about 0.8 % of all filters.

*range*: two one-sided ranges on two of ten attributes and no equality; each
range holds with probability up to 0.2, so an event finds about 1 %.

Every filter is its own subscriber: two equal ones hardly occur.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate

from kbn.model import Constraint, Filter, Notification, Subscription
from kbn.model.operators import Content

SYMBOLS = tuple(f"S{rank:03d}" for rank in range(1000))
_WEIGHTS = tuple(accumulate(1 / (rank + 1.4) for rank in range(len(SYMBOLS))))
MOST_PRICE = 1000.0
MOST_VOLUME = 1_000_000

RANGE_NAMES = tuple(f"a{i}" for i in range(10))
_RANGE_SELECTIVITY = 0.2
_RANGE_TOP = 1_000_000


def stock_filters(n: int, seed: int = 1) -> Iterator[Subscription]:
    """``n`` subscriptions of one filter each; half of them with a third constraint."""
    draw = random.Random(f"stock filters {seed}")
    symbols = draw.choices(SYMBOLS, cum_weights=_WEIGHTS, k=n)
    for i, symbol in enumerate(symbols):
        constraints = [
            Constraint("symbol", Content.EQ, symbol),
            Constraint("price", Content.LT, round(draw.uniform(0, MOST_PRICE), 2)),
        ]
        if i % 2:
            constraints.append(Constraint("volume", Content.GT, draw.randrange(MOST_VOLUME)))
        yield Subscription((Filter(constraints),))


def stock_events(n: int, seed: int = 1) -> Iterator[Notification]:
    """``n`` events of four attributes, ``seq`` counting from 0."""
    draw = random.Random(f"stock events {seed}")
    for seq, symbol in enumerate(draw.choices(SYMBOLS, cum_weights=_WEIGHTS, k=n)):
        yield Notification(
            {
                "symbol": symbol,
                "price": round(draw.uniform(0, MOST_PRICE), 2),
                "volume": draw.randrange(MOST_VOLUME),
                "seq": seq,
            }
        )


def range_filters(n: int, seed: int = 1) -> Iterator[Subscription]:
    """``n`` subscriptions of two orderings on two different attributes."""
    draw = random.Random(f"range filters {seed}")
    for _ in range(n):
        constraints = []
        for name in draw.sample(RANGE_NAMES, 2):
            width = round(draw.uniform(0, _RANGE_SELECTIVITY) * _RANGE_TOP)
            if draw.random() < 0.5:
                constraints.append(Constraint(name, Content.LT, width))
            else:
                constraints.append(Constraint(name, Content.GT, _RANGE_TOP - width))
        yield Subscription((Filter(constraints),))


def range_events(n: int, seed: int = 1) -> Iterator[Notification]:
    """``n`` events that say all ten attributes."""
    draw = random.Random(f"range events {seed}")
    for _ in range(n):
        yield Notification({name: draw.randrange(_RANGE_TOP) for name in RANGE_NAMES})
