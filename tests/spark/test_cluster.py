"""The jobs on a real cluster, which goes on when a worker is killed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from datastore.delta.attached import attach, move
from datastore.sql.store import open_sqlite
from datastore.store import Batch
from kbn.matching.temporal import NaiveHistory
from tests.spark.cluster import Cluster
from tests.spark.conftest import JAVA
from tests.spark.stories import lived, published, subscriptions
from tests.temporal.rig import KNOWLEDGE

STORY = 7


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.stop()


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(not JAVA, reason="Spark needs Java, and there is none")
def test_the_jobs_run_on_a_cluster_and_go_on_when_a_worker_is_killed(cluster, tmp_path):
    asked = subscriptions(STORY)
    log, delivered = lived(published(STORY, 120), asked)
    with open_sqlite(tmp_path / "history.db") as store:
        store.append(Batch(log))
        move(attach(store, tmp_path / "archive"), log[len(log) // 2].seq)
    naive = NaiveHistory(log, KNOWLEDGE)
    latest = {entry.uid: number for number, entry in enumerate(log)}
    wanted = {
        "told": sorted(map(list, delivered)),
        "found": sorted(uid for uid, at in latest.items() if naive.decided(asked[1], at)),
    }
    command = [sys.executable, "-m", "tests.spark.on_cluster", cluster.url]
    with subprocess.Popen(
        [*command, f"sqlite:///{tmp_path}/history.db", str(STORY)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as job:
        try:
            assert json.loads(job.stdout.readline()) == wanted
            job.stdin.write("go on\n")
            job.stdin.flush()
            cluster.kill_a_worker()
            assert json.loads(job.stdout.readline()) == wanted
            assert job.wait(120) == 0
        finally:
            job.kill()
