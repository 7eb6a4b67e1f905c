"""The one writer of the history: a thread that commits in groups.

While one transaction is on its way to the disk, whatever the broker accepts
gathers and becomes the next. When a transaction fails, everything that was
handed over in the same epoch is refused with it: later entries were matched
against the ones that failed. Everything is done in the order in which it was
handed over.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from datastore.store import Batch, Store
from kbn.broker.instructions import Record
from kbn.broker.statistics import Statistics
from kbn.errors import KbnError, StoreError
from kbn.model.publications import Part

#: The most entries one transaction holds, so that no acknowledgement waits for ever.
GROUP = 5_000


class Listener(Protocol):
    """Hears what became of the batches; called in the writer's thread."""

    def recorded(self, upto: int, number: int) -> None: ...

    def unrecorded(self, epoch: int, code: str, reason: str) -> None: ...


class Recorder:
    """Owns the writing side of a store from ``start`` to ``stop``."""

    def __init__(
        self, store: Store, listener: Listener, statistics: Statistics | None = None
    ) -> None:
        self._store = store
        self._statistics = Statistics() if statistics is None else statistics
        self._listener = listener
        #: Batches and other work, in the order in which they were handed over.
        self._waiting: deque[Record | Callable[[], object]] = deque()
        #: Work that failed and must be done before anything more is written.
        self._owed: deque[Callable[[], object]] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        #: Batches of this epoch or an earlier one are not written any more.
        self._refused_epoch = -1
        self._thread = threading.Thread(target=self._run, name="kbn-recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def record(self, record: Record) -> None:
        """Take over a batch; the answer comes through the listener."""
        self._hand_over(record)

    def run(self, task: Callable[[], object]) -> None:
        """Do something else with the store, between two transactions."""
        self._hand_over(lambda: self._try(task))

    def owe(self, task: Callable[[], object]) -> None:
        """The same, and write nothing more until it was done."""
        self._hand_over(lambda: self._owe(task))

    def stop(self) -> None:
        """Commit what was handed over, then end; waits for it."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _hand_over(self, work: Record | Callable[[], object]) -> None:
        with self._wake:
            self._waiting.append(work)
            self._wake.notify()

    def _run(self) -> None:
        more = True
        while True:
            with self._wake:
                while not self._waiting and not self._stopping and not more:
                    self._wake.wait()
                if not self._waiting and self._stopping:
                    return
                group = self._take_group()
            if not group:
                more = self._idle()
            elif isinstance(group, list):
                self._commit(group)
                more = True
            else:
                group()
                more = True

    def _idle(self) -> bool:
        """Use a quiet moment for what the store puts off."""
        try:
            return self._store.work(1_000)
        except Exception:  # it will be said when the next append fails
            return False

    def _try(self, task: Callable[[], object]) -> bool:
        try:
            task()
        except Exception:  # an engine's own error must not end the writer
            return False
        return True

    def _owe(self, task: Callable[[], object]) -> None:
        self._owed.append(task)
        self._pay()

    def _pay(self) -> bool:
        """Do what is owed, in order; whether all of it could be done."""
        while self._owed:
            if not self._try(self._owed[0]):
                return False
            self._owed.popleft()
        return True

    def _take_group(self) -> list[Record] | Callable[[], object] | None:
        """The next piece of work, or the batches up to it."""
        group: list[Record] = []
        size = 0
        while self._waiting and size < GROUP:
            work = self._waiting[0]
            if not isinstance(work, Record):
                if not group:
                    self._waiting.popleft()
                    return work
                break
            self._waiting.popleft()
            if work.epoch > self._refused_epoch:
                group.append(work)
                size += len(work.batch.entries)
        return group or None

    def _commit(self, group: list[Record]) -> None:
        last = group[-1]
        batch = _joined([record.batch for record in group])
        began = time.perf_counter_ns()
        try:
            if not self._pay():
                raise StoreError("what was asked before could not be done")
            self._store.append(batch)
        except Exception as error:  # an engine's own error must not end the writer
            if self._is_there(batch):
                # The connection was lost after the commit, before its answer.
                self._listener.recorded(last.upto, last.number)
                return
            self._refused_epoch = last.epoch
            if isinstance(error, KbnError):
                code, reason = error.code, error.message
            else:
                code = "store_unavailable"
                reason = f"the store failed: {type(error).__name__}: {error}"
            self._listener.unrecorded(last.epoch, code, reason)
        else:
            self._measure(batch, time.perf_counter_ns() - began)
            self._listener.recorded(last.upto, last.number)

    def _is_there(self, batch: Batch) -> bool:
        """Whether a batch whose commit failed is on disk all the same, as far as one can see."""
        if not batch.entries:
            return False
        seq = batch.entries[-1].seq
        try:
            return next(iter(self._store.log(seq, seq)), None) is not None
        except Exception:  # the store is down: it cannot be seen
            return False

    def _measure(self, batch: Batch, took: int) -> None:
        """Each entry's share of the transaction, by what it did to its event."""
        entries = len(batch.entries)
        if entries:
            ends = sum(entry.part is Part.END for entry in batch.entries)
            self._statistics.updated.observe(took // entries, ends)
            self._statistics.inserted.observe(took // entries, entries - ends)


def _joined(batches: list[Batch]) -> Batch:
    """One transaction of several batches, in order."""
    if len(batches) == 1:
        return batches[0]
    return Batch(
        entries=[entry for batch in batches for entry in batch.entries],
        bodies=[
            body
            for batch in batches
            for body in (batch.bodies if batch.bodies is not None else [None] * len(batch.entries))
        ],
        decisions=[decision for batch in batches for decision in batch.decisions],
        inners=[inner for batch in batches for inner in batch.inners],
        spool=[seq for batch in batches for seq in batch.spool],
        unspool=[seq for batch in batches for seq in batch.unspool],
        backlog=[row for batch in batches for row in batch.backlog],
        confirms={name: pos for batch in batches for name, pos in batch.confirms.items()},
        marks={name: value for batch in batches for name, value in batch.marks.items()},
    )
