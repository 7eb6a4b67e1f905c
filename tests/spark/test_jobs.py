"""``backtest``, ``rematch`` and ``mine`` against plain Python over the same log."""

from __future__ import annotations

import itertools
import random
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from datastore.spark import backtest
from datastore.spark.mine import attributes, sequences
from datastore.spark.picture import bars
from datastore.spark.rematch import pairs, rematch
from datastore.spark.replay import replay
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


@pytest.mark.parametrize(
    ("least", "taken"),
    [(1, 1), (3, 5), (501, 1000), (7_200_001, 10_800_000), (10**8, 172_800_000)],
)
def test_a_bucket_is_as_long_as_people_count(least, taken):
    assert backtest._round(least) == taken


def test_the_picture_is_an_svg_with_a_bar_for_each_bucket_and_version():
    drawn = ET.fromstring(bars("a < b", ["then", "now"], [("old", [1, 2, 0]), ("new", [3, 0, 4])]))
    assert "a < b" in [element.text for element in drawn.iter()]
    _, *found = [element for element in drawn.iter() if element.tag.endswith("}rect")]
    spans = [(float(r.get("x")), float(r.get("x")) + float(r.get("width"))) for r in found]
    assert len(spans) == 4  # nothing is no bar
    ordered = sorted(spans)
    assert all(one[1] <= other[0] + 0.02 for one, other in itertools.pairwise(ordered))
    heights = [float(r.get("height")) for r in found]
    assert [round(4 * height / max(heights)) for height in heights] == [1, 2, 3, 4]
    assert ET.fromstring(bars("empty", [], [])) is not None


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


def runs(rows):
    """By the kinds of a sequence: count, gaps that half and 95 of 100 keep, AFTER limits."""
    return {tuple(kind.value for kind in row.kinds): tuple(row)[1:] for row in rows}


def test_mine_tells_what_follows_what_and_after_what_time(spark, rounds):
    found = runs(sequences(framed(spark, rounds), "act", length=3).collect())
    assert found == {
        ("open", "shut"): (10, [10_000], [10_000], [10_000]),
        ("shut", "open"): (9, [10_000], [60_000], [60_000]),
        ("open", "shut", "open"): (9, [10_000] * 2, [10_000, 60_000], [10_000, 60_000]),
        ("shut", "open", "shut"): (9, [10_000] * 2, [60_000, 10_000], [60_000, 10_000]),
    }
    pairs_only = runs(sequences(framed(spark, rounds), "act", length=2).collect())
    assert pairs_only == {kinds: said for kinds, said in found.items() if len(kinds) == 2}
    per_number = sequences(framed(spark, rounds), "act", per="n").collect()
    assert Counter(per_number) == Counter(), "each number has one event: nothing follows"


def test_sequences_of_any_length_are_sorted_once_and_nothing_is_joined(spark, rounds, capsys):
    sequences(framed(spark, rounds), "act", per="n", length=4).explain()
    plan = capsys.readouterr().out
    assert plan.count("hashpartitioning(per") == 1
    assert "Join" not in plan
    assert "Cartesian" not in plan


def test_the_limits_that_mine_tells_catch_the_share_it_says(spark):
    """Random rounds of events; the limits, asked as a filter, find that share of the runs."""
    draw = random.Random(3)
    log, now = [], 0
    for number in range(300):
        now += draw.choice((1, 5, 20, 500, 4000))
        kind = draw.choice("ab")
        log.append(entry(number + 1, f"e{number}", Part.INSTANT, now, now, now, k=kind))
    history = framed(spark, log)
    for cover in (0.5, 0.95):
        for row in sequences(history, "k", length=3, cover=cover).collect():
            asked = _asked([kind.value for kind in row.kinds], row.after_ms)
            told = {found.seq for found in replay(history, [asked]).collect()}
            size = len(row.kinds)
            ends = [
                at
                for at in range(size - 1, len(log))
                if all(
                    log[at - size + 1 + step].notification["k"] == kind.value
                    for step, kind in enumerate(row.kinds)
                )
            ]
            caught = sum(log[at].seq in told for at in ends)
            assert len(ends) == row["count"]
            assert caught >= cover * len(ends), (row, caught)


def _asked(kinds, limits):
    said = f'k = "{kinds[0]}"'
    for kind, limit in zip(kinds[1:], limits, strict=True):
        said = f'k = "{kind}" and start after({limit}ms) {{ {said} }}'
    return parse_subscription(said)


def test_no_limit_is_told_where_none_would_do(spark):
    """Overlapping events, open ones, and publications without a time are never AFTER."""
    overlapping = [
        entry(1, "a", Part.START, 0, None, 0, k="a"),
        entry(2, "b", Part.INSTANT, 5, 5, 5, k="b"),
        entry(3, "a", Part.END, None, 9, 9, k="a"),
    ]
    plain = [entry(n, f"p{n}", Part.PLAIN, n * 10, None, n * 10, k="p") for n in (4, 5)]
    late = [
        entry(6, "y", Part.INSTANT, 100, 100, 100, k="y"),
        entry(7, "x", Part.INSTANT, 90, 90, 101, k="x"),
    ]
    rows = sequences(framed(spark, [*overlapping, *plain, *late]), "k", length=2).collect()
    assert {kinds: said[3] for kinds, said in runs(rows).items()} == {
        ("a", "b"): [None],
        ("b", "p"): [None],
        ("p", "p"): [None],
        ("p", "x"): [40],
        ("x", "y"): [None],
    }
