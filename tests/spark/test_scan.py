"""``scan`` against the definition: every operator, on every kind of store, and its plan."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from functools import reduce

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from datastore.delta.store import open_delta
from datastore.merge import merge, place
from datastore.spark.compile import compile_subscription, heads
from datastore.spark.project import cells, names_of, narrow, narrow_cells
from datastore.spark.rows import events
from datastore.spark.scan import by_start, scan
from datastore.spark.scan import merged as merged_halves
from datastore.spark.source import read_history
from datastore.sql.store import open_sqlite
from datastore.store import Batch
from datastore.testing.histories import NAMES, VALUES, entry
from datastore.testing.histories import history as made_history
from kbn.errors import NoOntologyError
from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import World
from kbn.model import Constraint, Filter, Subscription
from kbn.model.operators import BagKind, BagOp, Content
from kbn.model.publications import Part
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME
from kbn.model.values import Bag
from tests.spark.stories import framed, lived, published, subscriptions
from tests.temporal.rig import KNOWLEDGE

DEEP = os.environ.get("KBN_PROFILE") == "deep"
FILTERS, TOGETHER = (2000, 50) if DEEP else (100, 50)
STORIES = 60 if DEEP else 6


def pieces(frames, size):
    return [frames[at : at + size] for at in range(0, len(frames), size)]


def content(seed, count):
    """Random filters over the values that engines get wrong."""
    draw = random.Random(f"filters {seed}")

    def constraint():
        name = draw.choice([*NAMES[:3], *NAMES, PUB_ID, PUB_TYPE, START_TIME, END_TIME])
        kind = draw.random()
        if kind < 0.1:
            return Constraint(name, Content.ANY)
        if kind < 0.3:
            sub = draw.choice([None, None, *(op for op in Content if op is not Content.ANY)])
            value = draw.choice([*VALUES, Bag(["START"]), Bag(["END"]), Bag(["START", "END"])])
            return Constraint(name, BagOp(draw.choice(list(BagKind)), sub), value)
        op = draw.choice([op for op in Content if op is not Content.ANY])
        value = draw.choice([*VALUES, 900, 1000.5]) if draw.random() < 0.8 else "e1-1"
        return Constraint(name, op, value)

    def one():
        return Filter(constraint() for _ in range(draw.choice([0, 1, 1, 1, 2])))

    return [Subscription(one() for _ in range(draw.choice([1, 1, 2]))) for _ in range(count)]


def merged(log):
    told = {}
    for one in log:
        told.setdefault(one.uid, []).append(one)
    return [merge(entries) for entries in told.values()]


@pytest.mark.parametrize("first", range(0, FILTERS, TOGETHER))
def test_columns_hold_of_what_the_definition_matches_and_exact_ones_of_nothing_else(spark, first):
    log = list(made_history(first, 300))
    whole = {event.uid: event for event in merged(log)}
    asked = content(first, TOGETHER)
    names = names_of(asked)
    promoted = {"a": 1, "é": 2} if first else {}
    held = cells(names, promoted, frozenset(promoted))
    frame = framed(spark, log, promoted).frame
    halves = f.col("part").isin("START", "END")
    narrowed = {**narrow_cells(names), **heads()}
    parted = merged_halves(narrow(frame.where(halves), held), names)
    said = {}
    for rows, known in ((frame.where(~halves), {**held, **heads()}), (parted, narrowed)):
        made = [compile_subscription(one, known) for one in asked]
        columns = [
            (f.lit(True) if one.condition is None else one.condition).alias(f"c{number}")
            for number, one in enumerate(made)
        ]
        said |= {row.uid: tuple(row)[1:] for row in rows.select("uid", *columns).collect()}
    assert said.keys() == whole.keys()
    for uid, event in whole.items():
        for one, compiled, holds in zip(asked, made, said[uid], strict=True):
            right = matches(one, event.notification)
            if compiled.exact:
                assert bool(holds) == right, (one, event)
            assert holds or not right, (one, event)
    assert sum(one.exact for one in made) > TOGETHER // 2


def test_what_columns_cannot_decide_is_asked_of_the_matcher(spark):
    log = list(made_history(2, 300))
    asked = [one for one in content(2, 60) if not exact(one)][:6]
    history = framed(spark, log)
    frames = [
        scan(history, one).select(f.lit(number).alias("number"), "uid")
        for number, one in enumerate(asked)
    ]
    rows = [tuple(row) for row in reduce(DataFrame.unionAll, frames).collect()]
    assert len(rows) == len(set(rows))
    assert set(rows) == {
        (number, event.uid)
        for number, one in enumerate(asked)
        for event in merged(log)
        if matches(one, event.notification)
    }


def exact(one):
    return compile_subscription(one, {**cells(names_of((one,)), {}), **heads()}).exact


def test_temporal_filters_find_the_events_of_the_latest_decision(spark):
    frames, wanted = [], set()
    for story in range(STORIES):
        asked = subscriptions(story, 4)[1:]
        log, _ = lived(published(story), [])
        history = framed(spark, log)
        naive = NaiveHistory(log, KNOWLEDGE)
        latest = {entry.uid: number for number, entry in enumerate(log)}
        for key, one in enumerate(asked):
            found = scan(history, one, knowledge=KNOWLEDGE)
            frames.append(found.select(f.lit(story).alias("s"), f.lit(key).alias("k"), "uid"))
            wanted |= {(story, key, uid) for uid, at in latest.items() if naive.decided(one, at)}
    rows = [
        tuple(row)
        for some in pieces(frames, 12)
        for row in reduce(DataFrame.unionAll, some).collect()
    ]
    assert len(rows) == len(set(rows))
    assert set(rows) == wanted
    assert wanted


class Colours:
    """An ontology of two kinds of strings, which can list them."""

    def __init__(self):
        self.kinds = {"red": {"a", "ab"}, "blue": {"A", "abc"}}

    def holds(self, op, value, operand):
        return isinstance(value, str) and value in self.kinds.get(operand, ())

    def spellings(self, op, operand):
        return frozenset(self.kinds.get(operand, ()))


@pytest.mark.parametrize("listed", [True, False], ids=["as a set", "value by value"])
def test_a_semantic_operator_is_asked_of_the_ontology(spark, listed):
    log = list(made_history(5, 200))
    knowing = Colours()
    asked = parse_subscription('a is_a "red" or b is_a "blue"')
    history = framed(spark, log)
    found = scan(history, asked, knowledge=knowing, spelling=knowing if listed else None)
    world = World(knowledge=knowing)
    wanted = {e.uid for e in merged(log) if matches(asked, e.notification, world)}
    assert {row.uid for row in found.collect()} == wanted
    assert wanted
    with pytest.raises(NoOntologyError):
        scan(history, asked)


def test_events_come_back_merged_and_in_the_order_of_their_starts(spark, tmp_path):
    log = list(made_history(9, 200))
    with open_sqlite(tmp_path / "history.db") as store:
        store.append(Batch(log))
    history = read_history(spark, f"sqlite:///{tmp_path / 'history.db'}")
    asked = parse_subscription("a any or KBN_END_TIME any")
    told = list(events(history, scan(history, asked)))
    wanted = [e for e in merged(log) if matches(asked, e.notification)]
    wanted.sort(key=lambda e: (place(e.start, e.end), e.first_seq))
    assert told == wanted
    heads = [(r.uid, r.place_ms) for r in by_start(scan(history, asked)).collect()]
    assert heads == [(e.uid, place(e.start, e.end)) for e in wanted]


PLANS = [
    "a < 3",
    "a superbag [1 2]",
    "start during { a = 1 }",
    "end after(5s) { b > 2 and end after(1min) { a any } }",
    "a filter(>, last 20) { b any }",
    "end relation(overlaps) { a = 1 }",
]


@pytest.mark.parametrize("text", PLANS)
def test_nothing_is_ever_crossed(spark, capsys, text):
    history = framed(spark, list(made_history(1, 50)))
    by_start(scan(history, parse_subscription(text))).explain("extended")
    plan = capsys.readouterr().out
    assert "Physical Plan" in plan
    for crossed in ("CartesianProduct", "NestedLoop", "Cross"):
        assert crossed not in plan


def test_a_promoted_attribute_is_decided_without_reading_a_map(spark, capsys, tmp_path):
    url = f"delta:///{tmp_path}/history?index=a"
    log = list(made_history(1, 200))
    with open_delta(tmp_path / "history", names=["a"], background=False) as store:
        store.append(Batch(log))
        store.drain()
    history = read_history(spark, url)
    assert history.flat == {"a"}
    asked = parse_subscription("a < 3")
    found = scan(history, asked)
    wanted = {e.uid for e in merged(log) if matches(asked, e.notification)}
    assert {row.uid for row in found.collect()} == wanted
    history.frame.where(f.col("part") == "PLAIN").where(
        compile_subscription(asked, cells("a", {"a": 1}, frozenset("a"))).condition
    ).select("uid").explain("formatted")
    plan = capsys.readouterr().out
    read = next(line for line in plan.splitlines() if line.startswith("ReadSchema"))
    assert "a_1__l" in read
    assert "map<" not in read


def test_a_log_of_whole_events_only_is_not_merged(spark, tmp_path):
    log = [e for e in made_history(3, 200) if e.part in ("PLAIN", "INSTANT")]
    with open_delta(tmp_path / "history", background=False) as store:
        store.append(Batch(log))
        store.drain()
        assert not store.archive.has_halves()
        store.append(Batch([entry(log[-1].seq + 1, "late", Part.END, None, 5, 5, a=0)]))
        hot = read_history(spark, f"delta:///{tmp_path}/history")
        assert hot.halves, "what is not drained may be anything"
        store.drain()
        assert store.archive.has_halves()
    asked = parse_subscription("a < 3")
    history = read_history(spark, f"delta:///{tmp_path}/history")
    wanted = {e.uid for e in merged(log) if matches(asked, e.notification)} | {"late"}
    assert {row.uid for row in scan(history, asked).collect()} == wanted
    whole = replace(history, frame=history.frame.where("uid != 'late'"), halves=False)
    assert {row.uid for row in scan(whole, asked).collect()} == wanted - {"late"}
