"""A bar of the tasks that Spark has done, for people only: silent where there is no terminal.

Spark does not know beforehand how many stages there will be. So the bar counts the tasks of
all stages seen so far, is never full, and never goes back; what is printed comes after it
is gone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress

#: How often Spark is asked, in seconds.
_EVERY = 0.2


@contextmanager
def watching(spark: SparkSession, title: str) -> Iterator[None]:
    """A bar while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    with _bar() as bar:
        tasks = Tasks(bar, title)
        try:
            tracker = spark.sparkContext.statusTracker()
        except Exception:  # Spark Connect has no context to ask: it tells by itself
            handler = _handler(tasks)
            spark.registerProgressHandler(handler)
            try:
                yield
            finally:
                spark.removeProgressHandler(handler)
            return
        with _asking(tracker, tasks):
            yield


@contextmanager
def announced(what: str) -> Iterator[None]:
    """A word on the terminal while something starts, which is gone afterwards."""
    if not sys.stderr.isatty():
        yield
        return
    sys.stderr.write(f"{what} …")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    said = TextColumn("{task.description}")
    count = TextColumn("{task.fields[count]}")
    console = Console(stderr=True)
    return Progress(said, BarColumn(), count, TimeElapsedColumn(), console=console, transient=True)


class Tasks:
    """The tasks of all stages seen so far, as one line of a bar."""

    def __init__(self, bar: Progress, title: str) -> None:
        self._bar = bar
        self._line = bar.add_task(title, total=None, count="")
        #: By stage: how many tasks it has, and how many of them are done.
        self._stages: dict[int, tuple[int, int]] = {}
        self._shown = 0.0

    def seen(self, active: Iterable[tuple[int, int, int]]) -> None:
        """(stage, tasks, done) of the stages that run; the others have ended."""
        now = {stage: (tasks, done) for stage, tasks, done in active}
        ended = {stage: (held[0], held[0]) for stage, held in self._stages.items()}
        self._stages = {**ended, **now}
        total = sum(tasks for tasks, _ in self._stages.values())
        done = sum(done for _, done in self._stages.values())
        if not total:
            return
        # One more may always come.
        self._shown = max(self._shown, done / (total + 1))
        count = f"{done}/{total} tasks"
        self._bar.update(self._line, completed=self._shown, total=1.0, count=count)


def _handler(tasks: Tasks) -> Any:
    def told(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        held = list(stages or ())
        tasks.seen((one.stage_id, one.num_tasks, one.num_completed_tasks) for one in held)

    return told


@contextmanager
def _asking(tracker: Any, tasks: Tasks) -> Iterator[None]:
    """Ask again and again, in a thread of its own."""
    over = threading.Event()

    def ask() -> None:
        while not over.wait(_EVERY):
            held = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            tasks.seen(
                (one.stageId, one.numTasks, one.numCompletedTasks)
                for one in held
                if one is not None
            )

    asker = threading.Thread(target=ask, daemon=True)
    asker.start()
    try:
        yield
    finally:
        over.set()
        asker.join()
