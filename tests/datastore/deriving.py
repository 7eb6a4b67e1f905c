"""Deriving, ended at random points: ``python -m tests.datastore.deriving FOLDER KILLS SEED``.

Each child appends a little, drains, derives in small steps and at times deletes old
events; at some step chosen by chance it ends without a word, as by ``kill -9``.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from pathlib import Path

from datastore.delta import merged
from datastore.delta.store import open_delta
from datastore.delta.table import Table
from datastore.sql.link import Link
from datastore.store import Batch, Retention
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
    draw = random.Random(seed)
    codes: Counter[int] = Counter()
    for number in range(int(kills) + 1):
        count = draw.randrange(50) if number < int(kills) else None
        child = os.fork()
        if child == 0:
            try:
                live(path, number, count)
            except BaseException as error:
                sys.stderr.write(f"{number}: {error!r}\n")
                os._exit(1)
            os._exit(0)
        codes[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] += 1
    sys.stdout.write(json.dumps({str(code): times for code, times in codes.items()}))


if __name__ == "__main__":
    main()
