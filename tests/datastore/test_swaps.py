"""Exchanges of what a broker knows, among the arrivals of a window."""

from __future__ import annotations

import pytest

from datastore.memory import MemoryStore
from datastore.store import SWAP
from datastore.swaps import Swap, crossed, swaps_in


def test_the_marks_of_a_store_tell_of_exchanges_in_order() -> None:
    store = MemoryStore()
    for name, value in (("ontology", 5), (f"{SWAP}12", 300), (f"{SWAP}2", 100)):
        store.set_mark(name, value)
    marks = store.info()["marks"]
    assert isinstance(marks, dict)
    assert swaps_in(marks) == (Swap(2, 100), Swap(12, 300))


@pytest.mark.parametrize(
    ("swap", "since", "until", "lies_within"),
    [
        (Swap(5, 100), None, None, True),
        (Swap(5, 100), 100, 101, True),
        (Swap(5, 100), 101, None, False),
        (Swap(5, 100), None, 100, False),
        (Swap(0, 100), None, None, False),
        (Swap(9, 100), None, None, False),
    ],
)
def test_an_exchange_counts_with_something_stored_on_either_side(
    swap: Swap, since: int | None, until: int | None, lies_within: bool
) -> None:
    assert (crossed([swap], 9, since, until) == [swap]) is lies_within
