"""The position a durable client confirms never passes what is not dealt with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbn.client.confirming import Confirmations


def test_nothing_is_confirmed_before_anything_came() -> None:
    assert Confirmations().level == 0


def test_a_position_counts_when_all_its_readers_are_done() -> None:
    confirmations = Confirmations()
    confirmations.arrived(5, 2)
    confirmations.done(5)
    assert confirmations.level == 4
    confirmations.done(5)
    assert confirmations.level == 5


def test_what_arrives_late_with_a_lower_position_holds_the_level() -> None:
    confirmations = Confirmations()
    confirmations.arrived(9, 1)
    confirmations.arrived(3, 1)
    confirmations.done(9)
    assert confirmations.level == 2
    confirmations.done(3)
    assert confirmations.level == 9


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 3)), max_size=30),
    st.lists(st.integers(1, 30), max_size=60),
)
def test_the_level_is_below_everything_that_is_left(
    arrivals: list[tuple[int, int]], done: list[int]
) -> None:
    confirmations = Confirmations()
    left: dict[int, int] = {}
    for pos, readers in arrivals:
        confirmations.arrived(pos, readers)
        left[pos] = left.get(pos, 0) + readers
    for pos in done:
        if left.get(pos, 0) > 0:
            confirmations.done(pos)
            left[pos] -= 1
        open_positions = [p for p, count in left.items() if count > 0]
        newest = max(left, default=0)
        assert confirmations.level == min(open_positions, default=newest + 1) - 1
