"""``backtest``, ``rematch`` and ``mine`` against plain Python over the same log."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from datastore.merge import merge, place
from datastore.spark import backtest
from datastore.spark.mine import attributes, sequences
from datastore.spark.picture import lines
from datastore.spark.rematch import pairs, rematch
from datastore.testing.histories import entry
from kbn.language import parse_subscription
from kbn.model.publications import Part
from tests.spark.stories import framed, lived, published, subscriptions
from tests.temporal.rig import KNOWLEDGE


@pytest.fixture(scope="module")
def story(spark):
    asked = subscriptions(11)
    log, delivered = lived(published(11, 120), asked)
    return framed(spark, log), log, asked, delivered


def test_rematch_counts_what_each_subscription_matches_and_when(story):
    history, _, asked, delivered = story
    found = {
        row.key: tuple(row)[1:] for row in rematch(history, asked, knowledge=KNOWLEDGE).collect()
    }
    wanted = {}
    for key in {key for _, key in delivered}:
        seqs = [seq for seq, each in delivered if each == key]
        wanted[key] = (len(seqs), min(seqs), max(seqs))
    assert found == wanted
    told = pairs(history, asked, knowledge=KNOWLEDGE).collect()
    assert sorted(map(tuple, told)) == sorted(delivered)


def test_backtest_tells_what_only_one_version_delivers(story):
    history, log, asked, delivered = story
    sides = [{seq for seq, key in delivered if key == one} for one in (0, 5)]
    old, new = sides
    difference = backtest.compare(
        backtest.told(history, asked[0], asked[5], knowledge=KNOWLEDGE), buckets=4, samples=2
    )
    assert (difference.both, difference.only_old, difference.only_new) == (
        len(old & new),
        len(old - new),
        len(new - old),
    )
    assert difference.old_samples == tuple(sorted(old - new)[:2])
    assert difference.new_samples == tuple(sorted(new - old)[:2])
    arrived = {each.seq: each.arrived for each in log}
    for bucket in difference.buckets:
        inside = {
            seq for seq in old | new if 0 <= arrived[seq] - bucket.begins < difference.step
        }  # fmt: skip
        assert (bucket.old, bucket.new) == (len(inside & old), len(inside & new))
    assert len(difference.buckets) <= 4
    assert sum(bucket.old for bucket in difference.buckets) == len(old)


def test_backtest_of_filters_that_match_nothing_is_empty(story):
    history = story[0]
    nothing = parse_subscription("nobody = 1")
    difference = backtest.compare(backtest.told(history, nothing, nothing))
    assert difference[:3] == (0, 0, 0)
    assert difference.buckets == ()


def test_the_picture_is_an_svg_with_a_line_for_each_version():
    drawn = ET.fromstring(
        lines("a < b", ["then", "now"], [("old", [1, 2, 0]), ("new", [3, 0, 4])])
    )
    shapes = [element.tag.rsplit("}", 1)[1] for element in drawn.iter()]
    assert shapes.count("polyline") == 2
    assert "a < b" in [element.text for element in drawn.iter()]
    assert ET.fromstring(lines("empty", [], [])) is not None


@pytest.fixture(scope="module")
def rounds():
    """Doors that open and close, ten seconds apart but for one that waits."""
    log, now = [], 0
    for number in range(20):
        gap = 60_000 if number == 7 else 10_000
        name = f"d{number}"
        kind = "open" if number % 2 == 0 else "shut"
        log.append(entry(2 * number + 1, name, Part.START, now, None, now, act=kind, n=number))
        log.append(entry(2 * number + 2, name, Part.END, None, now + 1000, now, act=kind, ok=True))
        now += 1000 + gap
    return log


@pytest.mark.parametrize("promoted", [None, {"act": 1, "n": 2}], ids=["maps", "flat"])
def test_mine_counts_attributes_and_their_values(spark, rounds, promoted):
    found = {
        (row["name"], row["type"]): (row["count"], row["values"])
        for row in attributes(framed(spark, rounds, promoted)).collect()
    }
    assert found == {
        ("act", "string"): (40, 2),
        ("n", "long"): (20, 20),
        ("ok", "bool"): (20, 1),
    }


def test_mine_tells_what_follows_what_and_after_what_time(spark, rounds):
    rows = sequences(framed(spark, rounds), "act").collect()
    found = {(row.follows, row.kind): (row["count"], row.p50_ms, row.p95_ms) for row in rows}
    events = [merge(rounds[at : at + 2]) for at in range(0, len(rounds), 2)]
    assert [place(e.start, e.end) for e in events] == sorted(e.start for e in events)
    assert found == {("open", "shut"): (10, 10_000, 10_000), ("shut", "open"): (9, 10_000, 60_000)}
    per_number = sequences(framed(spark, rounds), "act", per="n").collect()
    assert Counter(per_number) == Counter(), "each number has one event: nothing follows"
