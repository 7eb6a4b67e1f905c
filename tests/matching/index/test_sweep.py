"""The index equals naive on many random pairs; a million under KBN_PROFILE=deep."""

from __future__ import annotations

import os

import pytest

from kbn.matching.index import semantic, sorted_bounds, strings, tiles
from tests.matching.sweep import sweep

PAIRS = 1_000_000 if os.environ.get("KBN_PROFILE") == "deep" else 20_000


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few, so that a small population cuts and joins them all the time."""
    monkeypatch.setattr(sorted_bounds, "MOST", 8)
    monkeypatch.setattr(tiles, "MOST", 8)
    monkeypatch.setattr(strings, "FEW", 1)
    monkeypatch.setattr(semantic, "REMEMBERED", 5)
    monkeypatch.setattr(semantic, "OFTEN", 1)


def test_index_and_naive_agree_on_random_pairs_under_churn():
    swept = sweep(PAIRS)
    assert swept.pairs >= PAIRS
    assert swept.matched > PAIRS // 20
    assert swept.differences == 0


@pytest.mark.usefixtures("tiny_blocks")
def test_they_agree_when_blocks_are_cut_and_joined_all_the_time():
    assert sweep(PAIRS, seed=2).differences == 0


def test_the_sweep_follows_from_its_seed():
    assert sweep(4000, seed=3)[:3] == sweep(4000, seed=3)[:3]
