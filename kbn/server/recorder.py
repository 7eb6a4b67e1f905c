"""The one writer of the history: a thread that commits in groups.

While one transaction is on its way to the disk, whatever the broker accepts
gathers and becomes the next. When a transaction fails, everything that was
handed over in the same epoch is refused with it: later entries were matched
against the ones that failed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from datastore.store import Batch, Store
from kbn.broker.instructions import Record
from kbn.errors import KbnError

#: The most entries one transaction holds, so that no acknowledgement waits for ever.
GROUP = 5_000


class Listener(Protocol):
    """Hears what became of the batches; called in the writer's thread."""

    def recorded(self, upto: int) -> None: ...

    def unrecorded(self, epoch: int, code: str, reason: str) -> None: ...


class Recorder:
    """Owns the writing side of a store from ``start`` to ``stop``."""

    def __init__(self, store: Store, listener: Listener) -> None:
        self._store = store
        self._listener = listener
        #: Batches and other work, in the order in which they were handed over.
        self._waiting: deque[Record | Callable[[], None]] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        #: Batches of this epoch or an earlier one are not written any more.
        self._refused_epoch = -1
        self._thread = threading.Thread(target=self._run, name="kbn-recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def record(self, record: Record) -> None:
        """Take over a batch; the answer comes through the listener."""
        with self._wake:
            self._waiting.append(record)
            self._wake.notify()

    def run(self, task: Callable[[], None]) -> None:
        """Do something else with the store, between two transactions."""
        with self._wake:
            self._waiting.append(task)
            self._wake.notify()

    def stop(self) -> None:
        """Commit what was handed over, then end; waits for it."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        more = True
        while True:
            with self._wake:
                while not self._waiting and not self._stopping and not more:
                    self._wake.wait()
                group = self._take_group()
                tasks = self._take_tasks()
                if not group and not tasks and self._stopping:
                    return
            if group:
                self._commit(group)
            for task in tasks:
                task()
            more = self._idle() if not group and not tasks else True

    def _idle(self) -> bool:
        """Use a quiet moment for what the store puts off."""
        try:
            return self._store.work(1_000)
        except KbnError:
            return False  # it will be said when the next append fails

    def _take_group(self) -> list[Record]:
        group: list[Record] = []
        size = 0
        while self._waiting and size < GROUP and isinstance(self._waiting[0], Record):
            record = self._waiting.popleft()
            assert isinstance(record, Record)
            if record.epoch > self._refused_epoch:
                group.append(record)
                size += len(record.batch.entries)
        return group

    def _take_tasks(self) -> list[Callable[[], None]]:
        """What stands before the next batch."""
        tasks: list[Callable[[], None]] = []
        while self._waiting and not isinstance(self._waiting[0], Record):
            task = self._waiting.popleft()
            assert not isinstance(task, Record)
            tasks.append(task)
        return tasks

    def _commit(self, group: list[Record]) -> None:
        try:
            self._store.append(_joined([record.batch for record in group]))
        except KbnError as error:
            self._refused_epoch = group[-1].epoch
            self._listener.unrecorded(group[-1].epoch, error.code, error.message)
        except Exception as error:  # an engine's own error must not end the writer
            self._refused_epoch = group[-1].epoch
            reason = f"the store failed: {type(error).__name__}: {error}"
            self._listener.unrecorded(group[-1].epoch, "store_unavailable", reason)
        else:
            self._listener.recorded(max(record.upto for record in group))


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
