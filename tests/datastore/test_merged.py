"""The merged events as a Delta table: they are the log's, whoever ended when."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from itertools import count

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from datastore.delta import derive as deriving
from datastore.delta import drainer
from datastore.delta import store as module
from datastore.delta.archive import Archive
from datastore.delta.attached import attach, move
from datastore.delta.decode import from_columns
from datastore.delta.derive import Deriver
from datastore.delta.merged import MergedTable
from datastore.delta.schema import DAY
from datastore.delta.store import open_delta
from datastore.merge import merge, place
from datastore.sql.store import open_sqlite
from datastore.store import Batch, Retention, StoredEvent
from datastore.testing.histories import entry, history
from kbn.model.publications import Part
from kbn.model.values import Bag

DEEP = os.environ.get("KBN_PROFILE") == "deep"


def merged(log, upto=2**62):
    told = {}
    for one in log:
        if one.seq <= upto:
            told.setdefault(one.uid, []).append(one)
    return {uid: merge(entries) for uid, entries in told.items()}


def stored(path):
    """The events of a table as any program reads it, and the flat columns it was told of."""
    table = DeltaTable(str(path))
    promoted = json.loads(table.metadata().configuration["kbn.promoted"])
    rows = table.to_pyarrow_table()
    as_log = rows.rename_columns({"first_seq": "seq", "inserted": "arrived"})
    parts = ["END" if part == "BOTH" else part for part in as_log["part"].to_pylist()]
    as_log = as_log.set_column(as_log.column_names.index("part"), "part", [parts])
    said = from_columns(as_log, {name: int(number) for number, name in promoted.items()})
    found = {}
    for one, row in zip(said, rows.to_pylist(), strict=True):
        assert one.uid not in found, "an event is there twice"
        found[one.uid] = StoredEvent(
            one.uid, one.start, one.end, one.seq, row["last_seq"], one.arrived, row["updated"],
            one.notification,
        )  # fmt: skip
        assert row["place_ms"] == place(one.start, one.end)
        assert row["day"] == row["place_ms"] // DAY
        seen = one.notification.get("KBN_PUB_TYPE")
        told = None if seen is None else tuple(sorted(seen.members))
        assert row["part"] == {
            None: "PLAIN", ("START",): "START", ("END",): "END", ("END", "START"): "BOTH",
            ("END", "INSTANT", "START"): "INSTANT",
        }[told]  # fmt: skip
    return found


def test_the_table_has_the_columns_that_others_read(tmp_path):
    told = [
        entry(1, "x", Part.START, 5 * DAY - 1, None, 7, price=1.5, n=1),
        entry(2, "y", Part.PLAIN, -1, None, 8, bag=Bag([1])),
        entry(3, "x", Part.END, None, 5 * DAY, 9, n=2, word="w"),
    ]
    with open_delta(tmp_path / "d", background=False, names=["price"]) as store:
        store.append(Batch(told))
        store.drain()
        assert sum(store.derive()) == 3
        assert sum(store.derive()) == 0
    table = DeltaTable(str(tmp_path / "d" / "events"))
    assert table.metadata().partition_columns == ["day"]
    assert [field.name for field in table.schema().fields] == [
        "uid", "part", "at", "start_ms", "end_ms", "place_ms",
        *("first_seq", "last_seq", "inserted", "updated", "day"),
        *("a_1__l", "a_1__d", "a_1__s"),
        *("bools", "longs", "doubles", "strings", "nulls", "bags"),
    ]  # fmt: skip
    assert table.protocol().min_reader_version == 1
    rows = {row["uid"]: row for row in table.to_pyarrow_table().to_pylist()}
    x, y = rows["x"], rows["y"]
    assert (x["part"], x["day"], x["place_ms"]) == ("BOTH", 4, 5 * DAY - 1)
    assert (x["first_seq"], x["last_seq"], x["inserted"], x["updated"]) == (1, 3, 7, 9)
    assert (x["a_1__d"], dict(x["longs"])["n"], dict(x["strings"])["word"]) == (1.5, 2, "w")
    assert (y["part"], y["day"], y["start_ms"], y["end_ms"]) == ("PLAIN", -1, -1, -1)


@pytest.mark.parametrize("seed", range(40 if DEEP else 6))
def test_it_is_the_merge_of_the_log_up_to_where_it_says(tmp_path, seed, monkeypatch):
    draw = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(deriving, "OPEN_MOST", 3)
    log = list(history(seed, 300))
    with open_delta(tmp_path / "d", background=False, keep=0, names=["b"]) as store:
        for at in range(0, len(log), 75):
            store.append(Batch(log[at : at + 75]))
            while store.drain(draw.choice((20, 100))):
                if draw.random() < 0.3:
                    store.index([*store.projection.names(), draw.choice(("a", "é"))])
                if draw.random() < 0.2:
                    store.archive.compact()
                if draw.random() < 0.5:
                    assert all(store.derive(steps=2, size=draw.choice((7, 50))))
                    assert stored(tmp_path / "d" / "events") == merged(
                        log, store.info()["derived"]
                    )
                if store.merged() is not None and draw.random() < 0.2:
                    store.merged().optimize(by_start=draw.random() < 0.5)
            store.work()
            store.trim()
        sum(store.derive())
        assert store.underived() == 0
        assert [f for f in store.check() if f.wrong] == []
        flat = store.merged().flat_names()
    assert stored(tmp_path / "d" / "events") == merged(log)
    held = DeltaTable(str(tmp_path / "d" / "events")).to_pyarrow_table()
    for name in flat:
        for column in ("longs", "doubles", "strings"):
            assert all(name not in dict(row or ()) for row in held[column].to_pylist())


def test_two_that_derive_at_once_do_not_both_succeed(tmp_path):
    log = list(history(7, 200))
    archive = Archive(tmp_path / "log", read_only=False)
    archive.write(log, "s", 1)
    upto = log[-1].seq
    one, two = (MergedTable(tmp_path / "events", "s") for _ in range(2))
    other = Deriver(archive, two)
    other.step(lambda: (upto, frozenset()), size=50)

    turns = count()

    def meanwhile():
        # The first has looked at its table; now the other is faster, every second time.
        if next(turns) % 2 == 0:
            other.step(lambda: (upto, frozenset()), size=50)
        return upto, frozenset()

    slow = Deriver(archive, one)
    while slow.step(meanwhile, size=50):
        pass
    assert one.derived() == upto
    assert stored(tmp_path / "events") == merged(log)
    one.refresh()
    two.refresh()
    rows = deriving.rows_schema({}).empty_table()
    one.commit(rows, upto + 1)
    with pytest.raises(CommitFailedError):
        two.commit(rows, upto + 1)


def test_what_is_retained_meanwhile_does_not_come_back(tmp_path):
    log = [entry(n, f"e{n}", Part.PLAIN, n, None, n) for n in range(1, 21)]
    archive = Archive(tmp_path / "log", read_only=False)
    archive.write(log, "s", 1)
    held, other = (MergedTable(tmp_path / "events", "s") for _ in range(2))
    read, retained = archive.rows, []

    def stale(low, high):
        """The first time, as it was before both tables were deleted from."""
        found = read(low, high)
        if not retained:
            retained.append(True)
            archive.delete(range(1, 11))
            other.delete(range(1, 11))
        return found

    archive.rows = stale
    assert Deriver(archive, held).step(lambda: (20, frozenset())) == 20
    assert set(stored(tmp_path / "events")) == {f"e{n}" for n in range(11, 21)}


def test_retention_takes_events_from_both_tables(tmp_path):
    log = list(history(5, 300))
    with open_delta(tmp_path / "d", background=False, keep=0) as store:
        store.append(Batch(log[:250]))
        store.drain()
        sum(store.derive(steps=3, size=60))
        store.append(Batch(log[250:]))
        assert store.retain(Retention(count=40))
        left = {one.uid for one in store.log()}
        upto = store.info()["derived"]
        assert set(stored(tmp_path / "d" / "events")) == set(
            merged([e for e in log if e.uid in left], upto)
        )
        store.drain()
        sum(store.derive())
        assert [f for f in store.check() if f.wrong] == []
        assert stored(tmp_path / "d" / "events") == merged(e for e in log if e.uid in left)


def test_check_tells_of_events_that_are_not_the_logs(tmp_path):
    with open_delta(tmp_path / "d", background=False) as store:
        store.append(Batch(list(history(5, 100))))
        store.drain()
        sum(store.derive())
        assert [f for f in store.check() if f.wrong] == []
        store.merged()._table.delete("first_seq < 20")
        assert any(f.what == "merged events" for f in store.check() if f.wrong)


def test_a_store_with_an_archive_has_its_events_beside_it(tmp_path):
    log = list(history(4, 400))
    with open_sqlite(tmp_path / "history.db", names=["a"]) as store:
        store.append(Batch(log))
        archived = attach(store, tmp_path / "archive")
        assert move(archived, log[299].seq, run=70) == 300
        assert stored(tmp_path / "archive-events") == merged(log, log[299].seq)
        assert archived.info()["derived"] == log[299].seq
        move(archived, log[-1].seq, run=70)
    assert stored(tmp_path / "archive-events") == merged(log)


def test_the_thread_derives_behind_the_drain(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RUN_SIZE", 100)
    monkeypatch.setattr(drainer, "STEP", 150)
    log = list(history(2, 700))
    store = open_delta(tmp_path / "d", keep=50)
    for at in range(0, 700, 50):
        store.append(Batch(log[at : at + 50]))
    store.close()
    assert stored(tmp_path / "d" / "events") == merged(log)


def test_a_derivation_that_fails_is_told_and_tried_again(tmp_path):
    store = open_delta(tmp_path / "d")
    store.append(Batch([entry(1, "x")]))
    store._drainer.drain(at_least=1)
    derive = store.derive

    def broken(**_):
        raise OSError("the table is away")

    store.derive = broken
    store._drainer.derive(at_least=1)
    assert any("the table is away" in f.detail for f in store.check())
    store.derive = derive
    store._drainer.drain(at_least=1)
    store._drainer.derive(at_least=1)
    assert [f for f in store.check() if f.wrong] == []
    assert store.info()["derived"] == 1
    store.close()


def test_deriving_killed_at_random_points_goes_on(tmp_path):
    kills = 300 if DEEP else 20
    command = [sys.executable, "-m", "tests.datastore.deriving", tmp_path / "d", str(kills), "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout)
    assert codes.keys() == {"0", "9"}, (codes, done.stderr)
    assert codes["9"] > kills // 4, "few children were ended on their way"
    with open_delta(tmp_path / "d", read_only=True) as store:
        log = list(store.log())
        assert store.underived() == 0
        assert [f for f in store.check() if f.wrong] == []
    assert stored(tmp_path / "d" / "events") == merged(log)


def test_a_name_promoted_later_is_not_taken_for_flat_when_files_are_joined(tmp_path):
    log = [entry(n, f"e{n}", Part.PLAIN, n, None, n, a=n) for n in range(1, 21)]
    with open_delta(tmp_path / "d", background=False) as store:
        store.append(Batch(log[:10]))
        store.drain()
        store.index(["a"])
        store.append(Batch(log[10:]))
        store.drain()
        store.archive.compact()
        assert store.archive.flat_names() == frozenset()
        store.archive.delete(range(1, 11))
        assert store.archive.flat_names() == {"a"}


def test_older_versions_of_both_tables_are_read_as_they_were(tmp_path):
    told = [entry(1, "x", Part.START, 5, None, 7), entry(2, "x", Part.END, None, 9, 8)]
    versions = []
    with open_delta(tmp_path / "d", background=False) as store:
        for one in told:
            store.append(Batch([one]))
            store.drain()
            sum(store.derive())
            versions.append((store.archive.version(), store.merged().version()))
    for told_of, (log, events) in enumerate(versions, 1):
        assert DeltaTable(str(tmp_path / "d" / "log"), version=log).count() == told_of
        then = DeltaTable(str(tmp_path / "d" / "events"), version=events).to_pyarrow_table()
        assert then["part"].to_pylist() == [("START", "BOTH")[told_of - 1]]


def test_the_drain_joins_the_small_files_of_both_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_COMPACT_EVERY", 4)
    monkeypatch.setattr(module, "KEEP_HOURS", 0)
    log = [entry(n, f"e{n}", Part.PLAIN, n, None, n) for n in range(1, 41)]
    with open_delta(tmp_path / "d", background=False) as store:
        store.append(Batch(log))
        for _ in range(4):
            store.drain(10)
            sum(store.derive())
        assert store.merged().files() == 2, "three joined, and what was derived since"
        files = len(list((tmp_path / "d" / "events").rglob("*.parquet")))
        assert files == 2, "those they were made of are gone"
        assert [f for f in store.check() if f.wrong] == []
