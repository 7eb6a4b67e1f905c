"""The jobs on a cluster: ``python -m tests.spark.on_cluster URL STORE``; one JSON object a line.

A program of its own, since a process has one session and the tests have theirs. After
the first answer it waits for a line on standard input: meanwhile a worker may be killed.
"""

from __future__ import annotations

import json
import sys

from datastore.spark.replay import replay
from datastore.spark.scan import scan
from datastore.spark.session import make_session
from datastore.spark.source import read_history
from tests.spark.stories import subscriptions
from tests.temporal.rig import KNOWLEDGE

_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main() -> None:
    url, store, story = sys.argv[1:]
    spark = make_session(
        url,
        memory="512m",
        settings={
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": _QUICK,
            "spark.driver.extraJavaOptions": _QUICK,
            "spark.sql.shuffle.partitions": "2",
        },
    )
    asked = subscriptions(int(story))
    for step in range(2):
        if step:
            sys.stdin.readline()
        history = read_history(spark, store)
        told = replay(history, asked, groups=2, knowledge=KNOWLEDGE).collect()
        found = scan(history, asked[1], knowledge=KNOWLEDGE).collect()
        said = {"told": sorted(map(list, told)), "found": sorted(row.uid for row in found)}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main()
