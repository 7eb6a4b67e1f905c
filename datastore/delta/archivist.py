"""The thread that archives old entries of a SQL store while its broker runs.

Each round moves what arrived longer ago than ``older``, in runs of ``PIECE`` entries by
the same four steps as ``kbn archive``, and takes from SQL what is settled, ``STEP``
numbers a transaction: the writer never waits for longer than one of those. After each
run it rests as long as the run took, so that at most half of a core goes into it. A
round that fails is told, counted and tried again at the next; ended at any point, the
next start goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from datastore.delta.store import DeltaStore

PIECE = 10_000
STEP = 500
#: Seconds the writer is left alone between two steps; at most so long a rest after a run.
_BREATH, _REST = 0.001, 2.0

#: Takes a level and a message; called in the archivist's thread.
Say = Callable[[str, str], None]


class Archivist(threading.Thread):
    """Archives ``store`` until it is told to ``stop``; ``now`` and ``older`` in milliseconds."""

    def __init__(
        self, store: DeltaStore, older: int, every: float, now: Callable[[], int], say: Say
    ) -> None:
        super().__init__(name="kbn-archivist", daemon=True)
        self._store = store
        self._older = older
        self._every = every
        self._now = now
        self._say = say
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            self.round()
            self._stopping.wait(self._every)

    def stop(self) -> None:
        """End after the run that is under way; waits for it."""
        self._stopping.set()
        self.join()

    def round(self) -> int:
        """Archive what has become old enough; how many entries. Raises nothing."""
        figures = self._store.figures
        before = figures.entries
        try:
            self._move(self._store.hot_before(self._now() - self._older))
        except Exception as error:
            # Whatever it is, SQL still has everything that is not marked as archived.
            figures.failed(error)
            self._say("error", f"archiving failed and is tried again: {error}")
        else:
            figures.failure = None
        moved = figures.entries - before
        if moved:
            self._say("info", f"{moved} entries archived, up to number {figures.upto}")
        return moved

    def _move(self, upto: int) -> None:
        stopping = self._stopping
        more = True
        while more and not stopping.is_set():
            begun = time.monotonic()
            # A disk that is nearly full is left to the log: archiving frees none of it.
            self._store.link.before_writing()
            more = self._store.drain(PIECE, upto) > 0
            self._settle()
            if more:
                stopping.wait(min(time.monotonic() - begun, _REST))
        after: int | None = 0
        while after is not None and not stopping.is_set():
            after = self._store.sweep(after, STEP)
            stopping.wait(_BREATH)

    def _settle(self) -> None:
        """Bring the projection as far as the archive, and take from SQL what is settled."""
        store, stopping = self._store, self._stopping
        while store.projection.watermark() < store.figures.upto and not stopping.is_set():
            if not store.projection.advance(STEP):
                break
            stopping.wait(_BREATH)
        while store.untrimmed() > 0 and not stopping.is_set():
            store.trim(STEP)
            stopping.wait(_BREATH)
