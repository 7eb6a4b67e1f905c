"""The data source over hot stores: in ranges of seq, and only what can matter to the filters."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from datastore.factory import open_store
from datastore.spark import source
from datastore.spark.replay import replay
from datastore.spark.rows import events
from datastore.spark.scan import scan
from datastore.spark.source import LogReader, hot_log, read_history, widest
from datastore.store import Batch
from kbn.language import dumps_subscription, parse_subscription
from tests.spark.stories import lived, published, subscriptions
from tests.temporal.rig import KNOWLEDGE

STORY = 21


@pytest.fixture(scope="module")
def story():
    asked = subscriptions(STORY)
    log, delivered = lived(published(STORY, 200), asked)
    return log, asked, delivered


@pytest.fixture(scope="module")
def urls(story, postgres, tmp_path_factory):
    """The same log in SQLite and in PostgreSQL."""
    made = [f"sqlite:///{tmp_path_factory.mktemp('source')}/history.db", postgres()]
    for url in made:
        with open_store(url) as store:
            store.append(Batch(story[0]))
    return made


def rows(reader):
    """What all tasks of a reader send, in their order."""
    return [
        entry
        for part in reader.partitions()
        for batch in reader.read(part)
        for entry in zip(
            batch.column("seq").to_pylist(), batch.column("part").to_pylist(), strict=True
        )
    ]


def test_sqlite_and_postgresql_give_the_same_answers_from_several_tasks(spark, story, urls):
    log, asked, delivered = story
    said = []
    for url in urls:
        history = read_history(spark, url)
        assert history.last_seq == log[-1].seq
        short = hot_log(spark, url, 0, log[-1].seq, wanted=widest(asked), least=30)
        history = replace(history, frame=short)
        assert history.frame.rdd.getNumPartitions() > 3
        told = {tuple(row) for row in replay(history, asked, knowledge=KNOWLEDGE).collect()}
        assert told == delivered
        found = [
            event
            for one in (asked[0], asked[1])
            for event in events(history, scan(history, one, knowledge=KNOWLEDGE))
        ]
        said.append(found)
    assert said[0] == said[1]
    assert said[0]


def test_a_filter_that_is_handed_over_leaves_out_what_cannot_matter(urls, story):
    log, _, _ = story
    wanted = parse_subscription("a = 1")
    for url in urls:
        options = {"store": url, "low": "0", "high": str(log[-1].seq), "least": "50"}
        everything = rows(LogReader(options))
        assert [seq for seq, _ in everything] == [entry.seq for entry in log]
        some = rows(LogReader({**options, "filter": dumps_subscription(wanted)}))
        halves = [row for row in everything if row[1] in ("START", "END")]
        assert set(halves) < set(some) < set(everything)


def test_what_is_handed_over_holds_of_everything_that_any_level_may_match():
    asked = parse_subscription("a = 1 and start after(5s) { b < 3 and wine is_a w:Red } or c any")
    assert widest([asked]) == parse_subscription(
        'KBN_PUB_TYPE superbag ["START"] and KBN_START_TIME any and a = 1'
        " or c any or b < 3 and wine any"
    )
    assert widest([]) is None
    assert widest([asked, parse_subscription("")]) is None
    many = [parse_subscription(f"a = {number}") for number in range(100)]
    assert widest(many) is None
    assert widest([parse_subscription("start during { a < 1 and a > 2 }")]) is not None


@pytest.mark.parametrize("seed", range(5))
def test_ranges_cover_every_number_once(seed):
    draw = random.Random(seed)
    low, size, most = draw.randrange(100), draw.randrange(1, 500), draw.randrange(1, 20)
    cuts = source.ranges(low, low + size - 1, most, draw.randrange(1, 50))
    assert [n for cut in cuts for n in range(cut.low, cut.high + 1)] == list(
        range(low, low + size)
    )
    assert len(cuts) <= most
