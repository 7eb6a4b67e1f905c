"""Archiving, ended at random points: ``python -m tests.spark.killing URL ARCHIVE KILLS SEED``.

Each child opens the store, appends a little, and archives in small runs; at some step
chosen by chance (a statement, a write of Delta, a sync of a file) it ends without a
word, as by ``kill -9``. Children are forked, so that none pays for the imports.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from pathlib import Path

from datastore.delta import archive as archives
from datastore.delta import store as deltas
from datastore.delta.attached import ArchivedStore, attach, move
from datastore.delta.merged import MergedTable
from datastore.factory import open_store
from datastore.sql.link import Link
from datastore.store import Batch
from datastore.testing.crash import entries

RUN, GROUP = 40, 60


def steps_before_the_end(count: int) -> None:
    """From now on every step counts, and the last one is not taken."""
    left = [count]

    def ends(function, after=False):
        def step(*arguments, **options):
            left[0] -= 1
            if left[0] < 0 and not after:
                os._exit(9)
            made = function(*arguments, **options)
            if left[0] < 0:
                os._exit(9)
            return made

        return step

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
    draw = random.Random(seed)
    codes: Counter[int] = Counter()
    for number in range(int(kills) + 1):
        count = draw.randrange(60) if number < int(kills) else None
        child = os.fork()
        if child == 0:
            try:
                archive_once(url, path, number, count)
            except BaseException as error:
                sys.stderr.write(f"{number}: {error!r}\n")
                os._exit(1)
            os._exit(0)
        codes[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] += 1
    sys.stdout.write(json.dumps({str(code): times for code, times in codes.items()}))


if __name__ == "__main__":
    main()
