"""Archiving, ended at random points: ``python -m tests.spark.killing URL ARCHIVE KILLS SEED``.

Each child opens the store, appends a little, and archives in small runs; at some step
chosen by chance (a statement, a write of Delta, a sync of a file) it ends without a
word, as by ``kill -9``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from datastore.delta import archive as archives
from datastore.delta import store as deltas
from datastore.delta.attached import ArchivedStore, attach, move
from datastore.delta.merged import MergedTable
from datastore.factory import open_store
from datastore.sql.link import Link
from datastore.store import Batch
from datastore.testing.crash import entries
from tests.ending import after_steps, lives

RUN, GROUP = 40, 60


def steps_before_the_end(count: int) -> None:
    ends = after_steps(count)
    Link.run = ends(Link.run)
    archives.write_deltalake = ends(ends(archives.write_deltalake), after=True)
    MergedTable.commit = ends(ends(MergedTable.commit), after=True)
    os.fsync = ends(os.fsync)
    deltas.DeltaStore._trim = ends(deltas.DeltaStore._trim)


def archive_once(url: str, path: str, seed: int, count: int | None) -> None:
    """A child's life; ``count`` None: it ends well."""
    if count is not None:
        steps_before_the_end(count)
    store = open_store(url)
    coming = entries(seed, store.last_seq())
    group = [next(coming) for _ in range(GROUP)]
    store.append(Batch(group, marks={"upto": group[-1].seq}))
    held = store if isinstance(store, ArchivedStore) else attach(store, Path(path))
    move(held, held.last_seq() - GROUP // 2, run=RUN)
    held.close()


def main() -> None:
    url, path, kills, seed = sys.argv[1:]
    lives(lambda number, count: archive_once(url, path, number, count), int(kills), seed, 60)


if __name__ == "__main__":
    main()
