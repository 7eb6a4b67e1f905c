"""The thread that drains a Delta store behind its writer, and derives behind the drain.

The merged events may lag: they follow when so many numbers wait that a step is worth
its rewriting of files, when that did not happen for a while, and at the end.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from datastore.delta.derive import STEP

if TYPE_CHECKING:
    from datastore.delta.store import DeltaStore


#: A step of the merged events is taken after so long (s), however few numbers wait.
FOLLOW = 900.0


class Drainer(threading.Thread):
    """Runs the drain when enough has come, or when the oldest has waited long enough."""

    def __init__(self, store: DeltaStore, run_size: int, patience: float) -> None:
        super().__init__(name="kbn-drain", daemon=True)
        self._store = store
        self._run_size = run_size
        self._patience = patience
        self._wake = threading.Event()
        self._stopping = False
        self._waiting = store.undrained()
        self._followed = time.monotonic()
        #: Why the last run failed; it is tried again.
        self.failure: Exception | None = None

    def appended(self, count: int) -> None:
        self._waiting += count
        if self._waiting >= self._run_size:
            self._wake.set()

    def run(self) -> None:
        while not self._stopping:
            enough = self._wake.wait(self._patience)
            self._wake.clear()
            if not enough:
                self.drain(at_least=1, runs=1)
            self.drain(at_least=self._run_size)
            late = time.monotonic() - self._followed >= FOLLOW
            self.derive(at_least=1 if late else STEP)

    def drain(self, at_least: int, runs: int | None = None) -> None:
        """Run while that many entries wait, or so many times; a failure is kept and told."""
        try:
            while (left := self._store.undrained()) >= at_least and runs != 0:
                if not self._store.drain():
                    break
                self._store.projection.advance(self._run_size)
                self._store.trim()
                if self._store.underived() >= 2 * STEP:
                    sum(self._store.derive(steps=1))
                runs = None if runs is None else runs - 1
            # What is counted as waiting must not stay above a run, or every append would
            # wake this thread for a few entries.
            self._waiting = left
            self.failure = self._store.figures.failure = None
        except Exception as error:
            # Whatever it is, the journal still has everything: say so and try again.
            self.failure = error
            self._store.figures.failed(error)

    def derive(self, at_least: int, steps: int = 2**62) -> None:
        """Follow with the merged events while so many numbers wait, until a run waits."""
        try:
            if self._store.underived() >= at_least:
                for _ in self._store.derive(steps=steps):
                    self._followed = time.monotonic()
                    if self._stopping or self._waiting >= self._run_size:
                        break
        except Exception as error:
            # The log has everything: say so and try again.
            self.failure = error

    def stop(self) -> None:
        """Drain what is left, follow by one step, then end."""
        self._stopping = True
        self._wake.set()
        self.join()
        self.drain(at_least=1)
        self.derive(at_least=1, steps=1)
