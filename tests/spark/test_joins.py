"""Temporal operators as joins, against the definition; and the plans of them."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from functools import reduce

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from datastore.spark import joins
from datastore.spark.buckets import RELATIONS, meeting
from datastore.spark.project import cells, read_entries
from datastore.spark.replay import replay
from datastore.spark.scan import scan
from datastore.spark.versions import HALVES, half_versions
from datastore.testing.histories import NAMES
from datastore.testing.histories import history as made_history
from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.temporal import AskedHistory, NaiveHistory
from kbn.matching.world import World
from kbn.model import Constraint, Filter, Notification, Subscription
from kbn.model.events import MergedEvent, merge
from kbn.model.operators import After, During, Relation
from kbn.model.time import END_TIME, START_TIME, TIME_ATTRIBUTES, TIME_MAX, TIME_MIN
from kbn.model.values import LONG_MAX
from tests.spark.stories import framed, lived, published
from tests.temporal.rig import KNOWLEDGE
from tests.temporal.sweep import _flat

DEEP = os.environ.get("KBN_PROFILE") == "deep"
STORIES = 40 if DEEP else 2
#: Joins of one subscription: Spark takes a second for each.
MOST = 9 if DEEP else 4
#: How long a moment of a story lasts, and when it begins: every class of lengths is met.
SCALES = [(700, -50_000), (3_600_000, 1_600_000_000_000), (1, 0), (2**31, TIME_MIN)]

OPERATORS = [
    *(
        After(limit)
        for limit in ((1, 2, 60, 2000, 2**40, LONG_MAX) if DEEP else (1, 60, LONG_MAX))
    ),
    During(),
    *(
        Relation(kind, tolerance)
        for kind in sorted(RELATIONS, key=lambda kind: kind.value)
        for tolerance in ((0, 3, 10**6, LONG_MAX) if DEEP else (0, 3))
    ),
]


def moments(draw):
    """Two times, in order: equal, near, far, at the borders of buckets, at the ends of time."""
    low = draw.choice([0, -1, 63, 64, 1024, -(2**14), 2**38, TIME_MIN, TIME_MAX - 10**6])
    low += draw.choice([0, 0, 1, -1, 5, draw.randrange(5000)])
    length = draw.choice([0, 0, 1, 2, 3, 63, 64, 65, 1024, 2**22 + 1, 2**38, TIME_MAX])
    low = max(TIME_MIN, min(low, TIME_MAX))
    return low, min(low + length, TIME_MAX)


def pair(draw):
    """Two events that often touch, the second as a version with the numbers it stands for."""
    begun, ended = moments(draw)
    start, end = moments(draw)
    if draw.random() < 0.7:
        start = draw.choice([begun, ended, begun - 2, ended + 1, (begun + ended) // 2])
        end = draw.choice([start, ended, ended + 3, ended - 1, begun, begun - 1, start + 70])
        start = max(TIME_MIN, min(start, TIME_MAX))
        end = max(start, min(end, TIME_MAX))
    y_seq, seq = draw.choice([(1, 2), (5, 3000), (100, 2**30), (2**20, 2**20 + 70), (9, 4)])
    held = {
        "seq": seq,
        "uid": "x",
        "start_ms": draw.choice([begun, begun, None]),
        "end_ms": ended,
        "begun": draw.choice([begun, begun, begun, None]),
        "ended": draw.choice([ended, ended, ended, None]),
        "y_seq": y_seq,
        "y_next": draw.choice([None, None, seq, seq - 1, seq + 100, 2**31]),
        "y_uid": draw.choice(["y", "y", "y", "y", "x"]),
        "y_start": draw.choice([start, start, start, None]),
        "y_end": draw.choice([end, end, None]),
    }
    if held["y_start"] is None and held["y_end"] is None:
        held["y_start"] = start
    return held


def admitted(held, name, op, max_open):
    until = LONG_MAX if held["y_next"] is None else held["y_next"]
    if not held["y_seq"] < held["seq"] <= until or held["uid"] == held["y_uid"]:
        return False
    reference = held["start_ms"] if name == START_TIME else held["end_ms"]

    def event(name, start, end):
        return MergedEvent(name, 1, 1, start, end, frozenset(), Notification({}), None, None)

    x = event("x", held["begun"], held["ended"])
    y = event("y", held["y_start"], held["y_end"])
    asked = AskedHistory(NaiveHistory(max_open=max_open), 0, x)
    return asked.admits(op, reference, y)


@pytest.mark.parametrize("max_open", [None, 60, LONG_MAX] if DEEP else [60])
def test_whom_an_operator_admits_shares_a_key_and_the_condition_says_whom(spark, max_open):
    draw = random.Random(f"pairs {max_open}")
    pairs = [pair(draw) for _ in range(20_000 if DEEP else 2000)]
    kinds = {"uid": pa.string(), "y_uid": pa.string()}
    table = pa.table(
        {k: pa.array([p[k] for p in pairs], kinds.get(k, pa.int64())) for k in pairs[0]}
    )
    asked = [(name, op) for op in OPERATORS for name in TIME_ATTRIBUTES]
    asked = [(name, op) for name, op in asked if name == END_TIME or not isinstance(op, Relation)]
    columns = []
    for number, (name, op) in enumerate(asked):
        # The classes of numbers depend on the newest one, which no X is above.
        met = meeting(name, op, max_open=max_open, last_seq=2**30 + number)
        x, y = f.transform(met.x.over, met.x.key), f.transform(met.y.over, met.y.key)
        columns.append(f.coalesce(met.holds, f.lit(False)).alias(f"h{number}"))
        columns.append(f.coalesce(f.arrays_overlap(x, y), f.lit(False)).alias(f"s{number}"))
    rows = spark.createDataFrame(table).select(*columns).collect()
    counted = dict.fromkeys(asked, 0)
    for held, row in zip(pairs, rows, strict=True):
        for number, (name, op) in enumerate(asked):
            wanted = admitted(held, name, op, max_open)
            assert row[f"h{number}"] == wanted, (held, name, op)
            assert row[f"s{number}"] or not wanted, (held, name, op)
            counted[name, op] += wanted
    assert all(counted.values()), "every operator admits some"


def test_a_version_is_the_event_as_merged_after_each_publication(spark):
    log = [one for one in made_history(4, 400) if one.part in HALVES]
    held = cells(NAMES, {})
    found = {}
    rows = half_versions(framed(spark, log).frame, held)
    batch = rows.toArrow()
    for entry, row in zip(read_entries(batch, NAMES), batch.to_pylist(), strict=True):
        found[entry.seq] = (entry.notification, row)
    known = {}
    for one in log:
        before = known.get(one.uid)
        event = known[one.uid] = merge(before, one)
        said, row = found[one.seq]
        assert said == event.notification
        assert (row["begun"], row["ended"]) == (event.start, event.end)
        assert (row["first_seq"], row["uid"]) == (event.first_seq, event.id)
        if before is not None:
            assert found[before.last_seq][1]["next"] == one.seq
        assert (row["next"] is None) == (one.seq == max(e.seq for e in log if e.uid == one.uid))
    assert any(row["first_seq"] < seq for seq, (_, row) in found.items())


def story(seed, length):
    """A history with times of some scale, and a limit for open events."""
    scale, first = SCALES[seed % len(SCALES)]

    def moved(notification):
        times = {n: notification[n] * scale + first for n in TIME_ATTRIBUTES if n in notification}
        return Notification({**notification.attributes, **times})

    told = [(moved(one), at * scale + first) for one, at in published(seed, length)]
    log, _ = lived(told, [])
    return log, scale, random.Random(seed).choice([None, 9 * scale])


def asking(draw, depth, scale):
    """Filters of so many levels, all of which can be joined."""

    def temporal():
        inner = asking(draw, depth - 1, scale)
        match draw.randrange(3):
            case 0:
                return Constraint(draw.choice(TIME_ATTRIBUTES), During(), inner)
            case 1:
                limit = draw.choice([1, 3 * scale, 10 * scale, 60 * scale])
                return Constraint(draw.choice(TIME_ATTRIBUTES), After(limit), inner)
            case _:
                kind = draw.choice(sorted(RELATIONS, key=lambda kind: kind.value))
                op = Relation(kind, draw.choice([0, 0, scale, 4 * scale]))
                return Constraint(END_TIME, op, inner)

    def one():
        held = [_flat(draw) for _ in range(draw.choice([0, 1, 1]))]
        if depth:
            held += [temporal() for _ in range(draw.choice([1, 1, 1, 2]))]
        return Filter(held)

    while True:
        made = Subscription(one() for _ in range(draw.choice([1, 1, 1, 2])))
        if sum(c.inner is not None for c in within(made)) <= MOST:
            return made


def within(asked):
    for one in asked:
        for constraint in one:
            yield constraint
            if constraint.inner is not None:
                yield from within(constraint.inner)


def collected(frames):
    """All rows of small plans: neither compiled nor adapted, which costs more than they do."""
    spark = frames[0].sparkSession
    quick = {"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false"}
    before = {name: spark.conf.get(name) for name in quick}
    try:
        for name, value in quick.items():
            spark.conf.set(name, value)
        return [tuple(row) for row in reduce(DataFrame.unionAll, frames).collect()]
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@pytest.mark.parametrize("seed", range(STORIES))
def test_joins_find_what_the_definition_finds_in_random_histories(spark, seed):
    log, scale, max_open = story(seed, 250)
    draw = random.Random(f"joined {seed}")
    scanned, replayed = ([asking(draw, depth, scale) for depth in (1, 2, 3)] for _ in range(2))
    history = framed(spark, log, {"a": 1} if seed % 2 else None)
    how = {"knowledge": KNOWLEDGE, "max_open": max_open, "how": "joins"}
    frames = [
        scan(history, one, **how).select(f.lit(k).alias("key"), f.col("last_seq").alias("seq"))
        for k, one in enumerate(scanned)
    ]
    told = replay(history, replayed, **how).select((f.col("key") + 100).alias("key"), "seq")
    rows = collected([*frames, told])
    wanted = set()
    naive = NaiveHistory(knowledge=KNOWLEDGE, max_open=max_open)
    for entry in log:
        world = World(KNOWLEDGE, naive.about(entry))
        for key, one in enumerate(replayed):
            if matches(one, entry.notification, world):
                wanted.add((key + 100, entry.seq))
        naive.append(entry)
    latest = {entry.uid: number for number, entry in enumerate(log)}
    for key, one in enumerate(scanned):
        wanted |= {(key, log[at].seq) for at in latest.values() if naive.decided(one, at)}
    assert len(rows) == len(set(rows)), "found twice"
    assert set(rows) == wanted
    assert len({key for key, _ in wanted}) >= 2, "some of them find something"


@pytest.mark.parametrize("halves", [True, False], ids=["in parts", "whole"])
def test_both_ways_say_the_same_of_an_event(spark, halves):
    log, _, _ = story(0, 120)
    log = [one for one in log if halves or one.part not in HALVES]
    history = replace(framed(spark, log), halves=halves)
    asked = parse_subscription("start during { a any } or KBN_END_TIME after(9s) { b any }")
    ways = [
        sorted(tuple(row) for row in scan(history, asked, how=how).collect())
        for how in ("ordered", "joins")
    ]
    assert ways[0] == ways[1]
    assert ways[0]


SHAPES = [
    "start during { a = 1 }",
    "end after(5s) { b > 2 }",
    "b > 1 and start after(1d) { b > 2 and end after(1min) { a superbag [1 2] } }",
    "start during { end after(5s) { a = 1 } or start during { b any } }",
    "start after(1s) { a = 1 } and start after(2s) { b = 1 } or end during { a any }",
    *(f"relation({kind.value}) {{ a = 1 }}" for kind in RELATIONS),
    "relation(overlaps ±2s) { start during { a = 1 } }",
]


def test_every_join_is_by_key_and_nothing_is_crossed(spark, capsys):
    history = framed(spark, list(made_history(1, 50)))
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    try:
        for number, text in enumerate(SHAPES):
            # As if the inner side were small, and as if it were large.
            small = "10m" if number % 2 else "-1"
            spark.conf.set("spark.sql.autoBroadcastJoinThreshold", small)
            asked = parse_subscription(text)
            assert joins.joinable(asked)
            found = scan(history, asked, how="joins").select("last_seq")
            told = replay(history, [asked], how="joins").select("seq")
            found.unionAll(told).explain("extended")
            plan = capsys.readouterr().out.split("== Physical Plan ==")
            assert len(plan) == 2
            for crossed in ("CartesianProduct", "NestedLoop", "Cross"):
                assert crossed not in "".join(plan), text
            made = [line for line in plan[1].splitlines() if "Join" in line]
            assert len(made) == 2 * sum(c.inner is not None for c in within(asked)), text
            for line in made:
                assert "HashJoin [" in line or "SortMergeJoin [" in line, line
                assert "LeftSemi" in line, line
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


NOT_JOINED = [
    "a filter(>, last 20) { b any }",
    "end after(5s) { a filter(=) { b any } }",
    "relation(before) { a = 1 }",
    "start during { relation(after) { a = 1 } }",
]


@pytest.mark.parametrize("text", NOT_JOINED)
def test_what_reaches_over_all_of_history_takes_the_ordered_pass(spark, text):
    asked = parse_subscription(text)
    history = framed(spark, list(made_history(1, 20)))
    assert not joins.joinable(asked)
    assert not joins.preferred(
        history, [parse_subscription("start during { a any }"), asked], "joins"
    )


def test_joins_are_chosen_where_history_is_long_and_cores_are_many(spark, monkeypatch):
    history = replace(framed(spark, list(made_history(1, 20))), last_seq=joins.ENTRIES)
    asked = parse_subscription("start during { a any }")
    assert not joins.preferred(history, [asked]), "two cores"
    assert joins.preferred(history, [asked], "joins")
    monkeypatch.setattr(joins, "CORES", 2)
    assert joins.preferred(history, [asked])
    assert not joins.preferred(history, [asked], "ordered")
    assert not joins.preferred(history, [asked, asked]), "two passes keep two cores busy"
    assert not joins.preferred(replace(history, last_seq=joins.ENTRIES - 1), [asked])
    assert not joins.preferred(history, [], "joins")
