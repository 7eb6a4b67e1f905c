"""The ordered pass in chunks says what one pass says, and what the broker said."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from datastore.spark.chunks import parallelism
from datastore.spark.ordered import _Ways, decisions, deliveries
from datastore.spark.project import kinds_of
from datastore.spark.replay import Arrivals, replay
from kbn.language import parse_subscription
from kbn.matching.temporal import NaiveHistory
from kbn.model.filters import needs_history
from kbn.temporal.chunks import Chunk, asks_of
from tests.spark.stories import framed, lived, published, subscriptions
from tests.temporal.rig import KNOWLEDGE

STORIES = range(100, 102)


def bounded(seed):
    """Temporal subscriptions that can be cut, each a story's own."""
    asked = [one for one in subscriptions(seed, 60) if needs_history(one)]
    return [one for one in asked if asks_of([one])][:12]


def _rows_read(batches):
    for batch in batches:
        yield pa.record_batch({"seq": pa.array([batch.num_rows], pa.int64())})


def test_chunks_side_by_side_tell_what_the_live_engine_delivered(spark):
    frames, wanted, shuffled = [], set(), 0
    for story in STORIES:
        asked = bounded(story)
        log, delivered = lived(published(story, 120), asked)
        wanted |= {(story, seq, key) for seq, key in delivered}
        history = framed(spark, log, {"a": 1} if story % 2 else None)
        found = deliveries(history, asked, chunks=4, least=1, groups=2, knowledge=KNOWLEDGE)
        shuffled += found.rdd.getNumPartitions()
        frames.append(found.select(f.lit(story).alias("story"), "seq", "key"))
    rows = reduce(DataFrame.unionAll, frames).collect()
    assert shuffled > 3 * len(frames), "most groups were cut"
    assert len(rows) == len(set(rows)), "told twice"
    assert {tuple(row) for row in rows} == wanted
    assert wanted


def test_decisions_in_chunks_are_those_of_the_definition(spark):
    for story, asked in ((110, bounded(110)[0]), (111, bounded(111)[1])):
        log, _ = lived(published(story, 120), [])
        naive = NaiveHistory(log, KNOWLEDGE)
        expected = {event.id for event in naive.standing(asked, len(log), "")}
        made = decisions(framed(spark, log), asked, chunks=3, least=1, knowledge=KNOWLEDGE)
        latest = made.groupBy("uid").agg(f.max_by("holds", "seq").alias("holds"))
        assert {row.uid for row in latest.where("holds").collect()} == expected


def test_a_window_reads_of_what_came_before_only_what_can_be_looked_back_to(spark):
    asked = parse_subscription("b any and KBN_END_TIME after(10ms) { a any }")
    log, delivered = lived(published(120, 400), [asked])
    low = log[-20].arrived
    history = framed(spark, log)
    found = replay(history, [asked], Arrivals(low))
    inside = {entry.seq for entry in log if entry.arrived >= low}
    wanted = {seq for seq, _ in delivered if seq in inside}
    assert {row.seq for row in found.collect()} == wanted
    assert wanted
    only = deliveries(history, [asked], after=log[-21].seq)
    assert {row.seq for row in only.collect()} == wanted
    assert not replay(history, [asked], Arrivals(log[-1].arrived + 1)).collect()
    assert not deliveries(history, [asked], after=log[-1].seq).collect()
    ways = _Ways(history, {0: asked}, Chunk(log[-21].seq, log[-1].seq), None)
    rows = ways.passed(_rows_read, ways.cut(1, 1), "seq long")
    assert len(wanted) < rows.agg(f.sum("seq")).collect()[0][0] < len(log) / 3


@pytest.mark.parametrize(
    "text",
    [
        "a filter(<, last 3) { a subbag[<] [1 2] }",  # no column decides what fills it
        "relation(after) { a = 1 }",
    ],
)
def test_what_cannot_be_cut_is_told_in_one_piece(spark, text):
    asked = parse_subscription(text)
    log, delivered = lived(published(130, 100), [asked])
    found = deliveries(framed(spark, log), [asked], chunks=3, least=1, knowledge=KNOWLEDGE)
    assert found.rdd.getNumPartitions() == 1
    assert {row.seq for row in found.collect()} == {seq for seq, _ in delivered}


def test_a_session_says_how_many_tasks_run_at_once(spark):
    assert parallelism(spark) == 2


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ('a = "x" and b any', {"a": "s", "b": ""}),
        ("a < 3 and a != 2.5", {"a": "ld"}),
        ("a = true or end after(1s) { a = 1 }", {"a": "bld"}),
        ("a = 1 and a subbag [1 2]", {}),
        ("a filter(<, last 3) { b = null }", {}),
    ],
)
def test_only_the_kinds_of_value_that_constraints_tell_apart_are_read(text, kinds):
    found = kinds_of([parse_subscription(text)])
    temporal = {name for name in found if name.startswith("KBN_")}
    assert {n: k for n, k in found.items() if n not in temporal} == {
        name: frozenset(told) for name, told in kinds.items()
    }
