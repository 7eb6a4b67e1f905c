"""How many rows the jobs of a session read from tables and stores: Spark's own figures.

Law: the sum, over everything run so far, of what the scans of files and of the data
source gave out, after files and row groups were skipped; a table read twice counts twice,
what is kept in memory counts once. To watch the rows themselves (``observe``) would
keep filters from reaching the files. Spark Connect does not tell: None.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from datastore.spark.source import FORMAT

_ROWS = "number of output rows"
#: Nodes of a plan that read our rows. Delta reads its own log by others.
_READS = ("Scan parquet", f"BatchScan {FORMAT}")
#: How long to wait until Spark has told everything, in milliseconds.
_PATIENCE = 5000


def rows_read(spark: SparkSession) -> int | None:
    """How many so far."""
    try:
        session: Any = spark._jsparkSession
        bus = spark.sparkContext._jsc.sc().listenerBus()
    except Exception:  # Spark Connect has neither, and says so in its own way
        return None
    bus.waitUntilEmpty(_PATIENCE)
    told = session.sharedState().statusStore()
    return sum(_of_one(told, run.executionId()) for run in _each(told.executionsList()))


def _of_one(told: Any, number: int) -> int:
    values = told.executionMetrics(number)
    # What is kept in memory stands in a plan as often as it is used, with one count.
    counts = {
        metric.accumulatorId(): values.get(metric.accumulatorId())
        for node in _each(told.planGraph(number).allNodes())
        if node.name().startswith(_READS)
        for metric in _each(node.metrics())
        if metric.name() == _ROWS
    }
    return sum(int(said.get().replace(",", "")) for said in counts.values() if said.isDefined())


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(at) for at in range(sequence.size())]
