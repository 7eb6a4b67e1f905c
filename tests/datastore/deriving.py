"""Deriving, ended at random points: ``python -m tests.datastore.deriving FOLDER KILLS SEED``.

Each child appends a little, drains, derives in small steps and at times deletes old
events; at some step chosen by chance it ends without a word, as by ``kill -9``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from datastore.delta import merged
from datastore.delta.store import open_delta
from datastore.delta.table import Table
from datastore.sql.link import Link
from datastore.store import Batch, Retention
from datastore.testing.crash import entries
from tests.ending import after_steps, lives

RUN, GROUP = 40, 60


def steps_before_the_end(count: int) -> None:
    ends = after_steps(count)
    Link.run = ends(Link.run)
    merged.write_deltalake = ends(ends(merged.write_deltalake), after=True)
    merged.MergedTable.commit = ends(ends(merged.MergedTable.commit), after=True)
    Table._delete = ends(ends(Table._delete), after=True)
    Table._promote = ends(ends(Table._promote), after=True)


def live(path: str, seed: int, count: int | None) -> None:
    """A child's life; ``count`` None: it ends well."""
    if count is not None:
        steps_before_the_end(count)
    store = open_delta(Path(path), background=False, keep=0, low_water=0)
    coming = entries(seed, store.last_seq())
    store.append(Batch([next(coming) for _ in range(GROUP)]))
    store.index("ab"[: seed % 3])
    while store.drain(RUN):
        sum(store.derive(steps=1, size=RUN // 2))
    if seed % 3 == 0:
        store.retain(Retention(count=150))
    store.work()
    store.trim()
    sum(store.derive(size=RUN))
    store.close()


def main() -> None:
    path, kills, seed = sys.argv[1:]
    lives(lambda number, count: live(path, number, count), int(kills), seed, 50)


if __name__ == "__main__":
    main()
