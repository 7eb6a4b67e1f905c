"""Killed while it appends, a store has everything it acknowledged, once."""

from __future__ import annotations

import os
import random

import pytest

from datastore.factory import open_store
from datastore.testing.crash import killed_run, verify

KILLS = 1000 if os.environ.get("KBN_PROFILE") == "deep" else 20


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "delta"])
def test_nothing_acknowledged_is_lost_or_doubled_by_a_kill(kind, request, tmp_path) -> None:
    if kind == "postgresql":
        url = request.getfixturevalue("postgres")()
    else:
        url = f"{kind}:///{tmp_path}/history?low_water=0"
    acknowledged: list[int] = []
    draw = random.Random(f"kills {kind}")
    for seed in range(KILLS):
        acknowledged += killed_run(url, seed, draw.randrange(1, 20_000))
    assert acknowledged, "the children were killed before they could store anything"
    with open_store(url) as store:
        verify(store, acknowledged)


@pytest.mark.parametrize("step", ["write", "mark"])
def test_a_drain_killed_before_or_after_its_write_is_exactly_once(step, tmp_path) -> None:
    """The child ends between planning and writing, or between writing and marking."""
    import subprocess
    import sys

    folder = tmp_path / "delta"
    code = f"""
import os
from pathlib import Path
from datastore.delta import store as module
from datastore.delta.store import open_delta
from datastore.store import Batch
from datastore.testing.histories import history
store = open_delta(Path({str(folder)!r}), background=False)
store.append(Batch(list(history(1, 200))))
store.drain(50)
write = store.archive.write
def killed(*arguments):
    if {step!r} == "mark":
        write(*arguments)
    os._exit(9)
store.archive.write = killed
store.drain(50)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == 9
    from datastore.delta.store import open_delta

    with open_delta(folder, background=False, keep=0) as store:
        while store.drain(50):
            pass
        store.work()
        assert store.trim() > 0
        rows, seqs = store.archive.distinct()
        assert rows == seqs == 200
        assert len(list(store.log())) == 200
        assert [f for f in store.check() if f.wrong] == []
