"""How many rows a job looked at, counted while it runs.

    reading = Reading()
    found = replay(history, asked, reading=reading)
    found.collect()
    reading.rows()          # None: nobody counted, for nothing had to run

Counted by ``observe``, so it works through Spark Connect too, and costs no second pass.
The rows are those that the columns let through: what files and row groups were skipped,
and what a condition of columns left out, is not among them.
"""

from __future__ import annotations

import threading

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f


class Reading:
    """The counters of one job: each frame that is watched has its own."""

    def __init__(self) -> None:
        self._observed: list[Observation] = []

    def watch(self, rows: DataFrame) -> DataFrame:
        """The same rows, counted when they are first read."""
        one = Observation()
        self._observed.append(one)
        return rows.observe(one, f.count(f.lit(1)).alias("rows"))

    def rows(self, patience: float = 5.0) -> int | None:
        """The rows of the first action on what was watched; None: not known so many seconds
        after. Spark may find that a frame need not be read at all, and then never says."""
        told: list[int] = []

        def listen() -> None:
            try:
                told.append(sum(int(one.get["rows"]) for one in self._observed))
            except (PySparkException, KeyError):
                return

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        listener.join(patience)
        return told[0] if told else None
