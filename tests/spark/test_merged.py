"""The merged events in Spark: written by either side, and scanned as far as they are derived."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import reduce

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from datastore.delta.store import open_delta
from datastore.merge import place
from datastore.spark.derive import derive
from datastore.spark.rows import events
from datastore.spark.scan import FOUND, by_start, scan
from datastore.spark.source import read_history
from datastore.store import Batch, Retention
from datastore.testing.histories import entry
from datastore.testing.histories import history as made_history
from kbn.errors import StoreError
from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.model.publications import Part
from tests.datastore.test_merged import merged, stored
from tests.spark.test_cli import run
from tests.spark.test_scan import content

DEEP = os.environ.get("KBN_PROFILE") == "deep"


def half_derived(folder, log, derived, drained, promoted=("a",)):
    """A Delta store of which so many entries are in the merged events and in the log."""
    with open_delta(folder, names=promoted, background=False, keep=0) as store:
        store.append(Batch(log))
        while store.archived()[0] < log[drained - 1].seq:
            store.drain(60, log[drained - 1].seq)
        while store.info()["derived"] < log[derived - 1].seq:
            sum(
                store.derive(steps=1, size=min(40, log[derived - 1].seq - store.info()["derived"]))
            )
    return f"delta:///{folder}"


@pytest.mark.parametrize("derived", [300, 170, 40] if DEEP else [300, 170])
def test_a_scan_of_a_half_derived_table_is_the_definition(spark, tmp_path, derived):
    log = list(made_history(derived, 300))
    url = half_derived(tmp_path / "d", log, derived, 250 if derived < 300 else 300)
    history = read_history(spark, url)
    assert history.merged.derived == log[derived - 1].seq
    asked = content(derived, 200 if DEEP else 5)
    whole = merged(log)
    frames = [
        scan(history, one).select(f.lit(n).alias("n"), *FOUND) for n, one in enumerate(asked)
    ]
    found = {}
    for at in range(0, len(frames), 8):
        for row in reduce(DataFrame.unionAll, frames[at : at + 8]).collect():
            assert (row.n, row.uid) not in found
            found[row.n, row.uid] = tuple(row)[2:]
    wanted = {
        (n, uid): (
            e.start, e.end, place(e.start, e.end), e.first_seq, e.last_seq, e.inserted, e.updated
        )
        for n, one in enumerate(asked)
        for uid, e in whole.items()
        if matches(one, e.notification)
    }  # fmt: skip
    assert found == wanted
    assert any(e.first_seq <= log[derived - 1].seq < e.last_seq for e in whole.values()) == (
        derived < 300
    )


def test_what_is_derived_is_read_without_the_log_and_nothing_is_crossed(spark, capsys, tmp_path):
    log = list(made_history(1, 300))
    history = read_history(spark, half_derived(tmp_path / "d", log, 300, 300))
    asked = parse_subscription("a < 3")
    scan(history, asked).explain("formatted")
    plan = capsys.readouterr().out
    (read,) = [line for line in plan.splitlines() if line.startswith("ReadSchema")]
    assert "a_1__l" in read
    assert "map<" not in read
    assert "Join" not in plan
    log += [entry(log[-1].seq + 1, "late", Part.PLAIN, 5, None, 5, a=0)]
    half = read_history(spark, half_derived(tmp_path / "e", log, 150, 200))
    by_start(scan(half, asked)).explain("extended")
    plan = capsys.readouterr().out
    for crossed in ("CartesianProduct", "NestedLoop", "Cross"):
        assert crossed not in plan


def test_spark_and_the_broker_go_on_where_the_other_ended(spark, tmp_path):
    log = list(made_history(6, 400))
    table = tmp_path / "d" / "events"
    with open_delta(tmp_path / "d", background=False, keep=0, names=["b"]) as store:
        derived = []
        for at in range(0, 400, 100):
            store.append(Batch(log[at : at + 100]))
            store.drain()
            if at == 200:
                store.index(["a", "b"])
            if len(derived) in (1, 2):
                derived.append(sum(store.derive(size=80)))
            else:
                derived.append(derive(spark, store))
            assert stored(table) == merged(log[: at + 100]), "as deltalake reads it"
            found = spark.read.format("delta").load(str(table)).select("uid", "last_seq")
            assert {(r.uid, r.last_seq) for r in found.collect()} == {
                (e.uid, e.last_seq) for e in merged(log[: at + 100]).values()
            }, "as Spark reads it"
        assert sum(derived) == log[-1].seq
        assert derive(spark, store) == 0
        assert store.retain(Retention(count=50))
        assert [finding for finding in store.check() if finding.wrong] == []
        store.merged().optimize(by_start=True)
        assert store.merged().vacuum(0, dry_run=False)
        writers = {c.get("engineInfo", "").split("/")[0] for c in store.merged()._table.history()}
    left = {(r.uid, r.first_seq) for r in spark.read.format("delta").load(str(table)).collect()}
    assert left == {(e.uid, e.first_seq) for e in stored(table).values()}
    assert any(one.startswith("Apache-Spark") for one in writers)
    assert any(one.startswith("delta-rs") for one in writers)
    with open_delta(tmp_path / "d", read_only=True) as store, pytest.raises(StoreError):
        derive(spark, store)


def test_events_that_go_while_a_scan_is_planned_are_not_found(spark, tmp_path):
    log = list(made_history(8, 200))
    url = half_derived(tmp_path / "d", log, 200, 200)
    with open_delta(tmp_path / "d", background=False, keep=0) as store:
        finish = store._finish_deleting
        store._finish_deleting = lambda: None
        assert store.retain(Retention(count=60))
        history = read_history(spark, url)
        assert history.merged is not None
        found = {row.uid for row in scan(history, parse_subscription("")).collect()}
        assert found == {one.uid for one in store.log()}
        finish()
        history = read_history(spark, url)
        assert {row.uid for row in scan(history, parse_subscription("")).collect()} == found


def test_the_verb_builds_the_table_and_catches_up_with_or_without_spark(spark, tmp_path):
    log = list(made_history(3, 200))
    half_derived(tmp_path / "d", log, 50, 200)
    where = ("--store", f"delta:///{tmp_path / 'd'}", "--json")
    plan = json.loads(run(tmp_path, "store", "derive", "--dry-run", *where)[1])
    assert (plan["after"], plan["upto"]) == (log[49].seq, log[-1].seq)
    code, said = run(tmp_path, "store", "derive", *where)
    assert (code, json.loads(said)["derived"]) == (0, log[-1].seq - log[49].seq)
    assert stored(tmp_path / "d" / "events") == merged(log)
    half_derived(tmp_path / "e", log, 50, 200)
    where = ("--store", f"delta:///{tmp_path / 'e'}", "--spark", "local[*]")
    assert "Physical Plan" in run(tmp_path, "store", "derive", "--dry-run", *where)[1]
    code, said = run(tmp_path, "store", "derive", *where)
    assert code == 0
    assert f"up to number {log[-1].seq}" in said
    assert stored(tmp_path / "e" / "events") == merged(log)
    optimized = json.loads(run(tmp_path, "store", "optimize", *where[:2], "--json")[1])
    assert optimized["events"]["files_after"] <= optimized["events"]["files_before"]
    gone = json.loads(run(tmp_path, "store", "vacuum", "--hours", "0", *where[:2], "--json")[1])
    assert gone["events"]
    assert run(tmp_path, "store", "derive", "--store", f"sqlite:///{tmp_path / 'x.db'}")[0] == 2


def test_the_events_of_a_scan_are_told_whole(spark, tmp_path):
    log = list(made_history(9, 200))
    history = read_history(spark, half_derived(tmp_path / "d", log, 120, 160))
    asked = parse_subscription("a any or KBN_END_TIME any")
    wanted = [e for e in merged(log).values() if matches(asked, e.notification)]
    wanted.sort(key=lambda e: (place(e.start, e.end), e.first_seq))
    assert list(events(history, scan(history, asked))) == wanted
    assert {row.uid for row in scan(replace(history, merged=None), asked).collect()} == {
        e.uid for e in wanted
    }
