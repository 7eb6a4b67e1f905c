"""The units of one subscriber: few or many, they answer as covering does."""

from __future__ import annotations

import random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from kbn.covering import covers
from kbn.language import parse_subscription
from kbn.model import Filter, Subscription
from kbn.routing import holdings
from kbn.routing.holdings import FEW, Holdings
from tests.covering.pairs import Pool


class Held(NamedTuple):
    number: int
    asked: Subscription
    options: str = "plain"


@given(st.integers(0, 2**32))
def test_many_units_answer_as_if_each_were_asked(seed):
    rng = random.Random(seed)
    pool = Pool(rng)
    units: Holdings[Held] = Holdings()
    held: dict[int, Held] = {}
    for number in range(24):
        asked = _subscription(rng, pool)
        options = rng.choice(("plain", "history"))
        peers = [u for u in held.values() if u.options == options]
        assert units.covering(asked, options) == any(covers(u.asked, asked) for u in peers)
        assert units.covered(asked, options) == [u for u in peers if covers(asked, u.asked)]
        assert units.covered(asked) == [u for u in held.values() if covers(asked, u.asked)]
        held[number] = Held(number, asked, options)
        units.add(held[number])
        if len(held) > FEW + 4:
            units.remove(held.pop(rng.choice(list(held))))
    assert list(units) == list(held.values())
    for unit in held.values():
        units.remove(unit)
    assert len(units) == 0


def _subscription(rng: random.Random, pool: Pool) -> Subscription:
    made: list[Filter] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        made.append(rng.choice(pool.pair(complete=rng.random() < 0.5)))
    return Subscription(made)


def test_a_subscriber_with_many_units_compares_a_new_one_with_few_of_them(monkeypatch):
    units: Holdings[Held] = Holdings()
    for number in range(200):
        units.add(Held(number, parse_subscription(f'symbol = "S{number}" and price < 5')))

    def refuse(*_: object) -> bool:
        raise AssertionError("every unit was asked")

    monkeypatch.setattr(holdings, "covers", refuse)
    asked = parse_subscription('symbol = "S7" and price < 3')
    assert units.covering(asked, "plain")
    assert not units.covering(asked, "history")
    wider = parse_subscription('symbol prefix "S19" and price < 9')
    assert [unit.number for unit in units.covered(wider)] == [19, *range(190, 200)]
