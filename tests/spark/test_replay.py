"""Live against replay: what a broker delivers is what the job says, publication by publication."""

from __future__ import annotations

import os
from functools import reduce

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from datastore.spark.replay import Arrivals, last, replay
from datastore.spark.rows import publications
from datastore.spark.source import History, read_history
from datastore.sql.store import open_sqlite
from datastore.store import Batch
from kbn.errors import NoOntologyError
from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import World
from tests.spark.stories import framed, lived, published, subscriptions
from tests.temporal.rig import KNOWLEDGE

STORIES = 200 if os.environ.get("KBN_PROFILE") == "deep" else 20
#: Histories of one job: each is a task.
TOGETHER = 20


def naively(log, asked):
    naive, told = NaiveHistory(knowledge=KNOWLEDGE), set()
    for entry in log:
        world = World(KNOWLEDGE, naive.about(entry))
        told |= {
            (entry.seq, k) for k, s in enumerate(asked) if matches(s, entry.notification, world)
        }
        naive.append(entry)
    return told


@pytest.mark.parametrize("first", range(0, STORIES, TOGETHER))
def test_replay_tells_what_the_live_engine_delivered_for_random_histories(spark, first):
    frames, wanted = [], set()
    for story in range(first, first + TOGETHER):
        asked = subscriptions(story)
        log, delivered = lived(published(story), asked)
        assert delivered == naively(log, asked)
        wanted |= {(story, seq, key) for seq, key in delivered}
        history = framed(spark, log, {"a": 1} if story % 2 else None)
        found = replay(history, asked, knowledge=KNOWLEDGE)
        frames.append(found.select(f.lit(story).alias("story"), "seq", "key"))
    rows = reduce(DataFrame.unionAll, frames).collect()
    assert len(rows) == len(set(rows)), "told twice"
    assert {tuple(row) for row in rows} == wanted
    assert len({key for _, _, key in wanted}) == 20, "every kind of subscription tells something"


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A SQLite store with one story in it."""
    asked = subscriptions(7)
    log, delivered = lived(published(7, 150), asked)
    path = tmp_path_factory.mktemp("replay") / "history.db"
    with open_sqlite(path) as store:
        store.append(Batch(log))
    return f"sqlite:///{path}", log, asked, delivered


def test_a_window_of_arrivals_counts_all_earlier_history(spark, stored):
    url, log, asked, delivered = stored
    history = read_history(spark, url)
    low, high = log[len(log) // 3].arrived, log[-len(log) // 4].arrived
    found = replay(history, asked, Arrivals(low, high), groups=2, knowledge=KNOWLEDGE)
    inside = {entry.seq for entry in log if low <= entry.arrived < high}
    assert {tuple(row) for row in found.collect()} == {d for d in delivered if d[0] in inside}


def test_publications_come_back_as_published_and_in_order(spark, stored):
    url, log, asked, delivered = stored
    history = read_history(spark, url)
    told = list(publications(history, replay(history, asked[:3], knowledge=KNOWLEDGE)))
    by_seq = {entry.seq: entry for entry in log}
    assert [(entry.seq, key) for entry, key in told] == sorted(d for d in delivered if d[1] < 3)
    assert all(entry == by_seq[entry.seq] for entry, _ in told)


def test_the_newest_seq_is_fixed_when_the_job_is_planned(spark, tmp_path):
    log, _ = lived(published(3), [])
    with open_sqlite(tmp_path / "history.db") as store:
        store.append(Batch(log[:10]))
        history = read_history(spark, f"sqlite:///{tmp_path / 'history.db'}")
        store.append(Batch(log[10:]))
    assert history.frame.count() == 10
    assert history.last_seq == log[9].seq


def test_last_counts_back_from_the_newest_stored_arrival(spark):
    history = History(spark.range(1), 1, 50_000)
    assert last(history, 10_000) == Arrivals(40_000, 50_001)


def test_a_semantic_operator_without_an_ontology_is_refused(spark):
    history = History(spark.range(1), 1, None)
    with pytest.raises(NoOntologyError):
        replay(history, [parse_subscription('a is_a "Wine"')])
