"""The backtest as a Spark job. Import it only where Spark is installed."""

from __future__ import annotations

from pathlib import Path

from datastore.factory import default_url
from datastore.spark.backtest import Difference, compare, told
from datastore.spark.source import read_history
from kbn.cli.sparks import session
from kbn.knowledge.library import Library
from kbn.language import parse_subscription


def difference(data_dir: Path, old: str, new: str) -> Difference:
    """How two versions of a subscription differ over all of a history.

    Raises ``KbnError`` where Spark cannot be started: no Java, no jars.
    """
    built = Library(data_dir).current()
    print("\nstarting Spark (about 30 s) …", flush=True)
    with session("local[2]", "2g") as spark:
        history = read_history(spark, default_url(data_dir.resolve()))
        rows = told(
            history,
            parse_subscription(old),
            parse_subscription(new),
            knowledge=None if built is None else built.hierarchy,
        )
        return compare(rows)
