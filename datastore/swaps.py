"""When a broker exchanged what it knows, as its marks tell.

A replay decides everything by one ontology; publications before and after an exchange
were matched by two. ``crossed`` says which exchanges lie among the arrivals of a window,
with something stored on either side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from datastore.store import SWAP


class Swap(NamedTuple):
    """The newest number given before an exchange, and when it took place (ms)."""

    seq: int
    at: int


def swaps_in(marks: Mapping[str, int]) -> tuple[Swap, ...]:
    """The exchanges that a store's marks tell of, in order."""
    found = (
        Swap(int(name.removeprefix(SWAP)), at)
        for name, at in marks.items()
        if name.startswith(SWAP)
    )
    return tuple(sorted(found))


def crossed(
    swaps: Iterable[Swap], last_seq: int, since: int | None, until: int | None
) -> list[Swap]:
    """Those between two publications that arrived at ``since`` or later and before ``until``."""
    return [
        swap
        for swap in swaps
        if 0 < swap.seq < last_seq
        and (since is None or since <= swap.at)
        and (until is None or until > swap.at)
    ]
