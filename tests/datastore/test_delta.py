"""What only the Delta store does: the table others read, and the drain in the background."""

from __future__ import annotations

from datetime import UTC, datetime

from deltalake import DeltaTable

from datastore.delta import store as module
from datastore.delta.decode import from_columns
from datastore.delta.schema import DAY, to_columns
from datastore.delta.store import open_delta
from datastore.store import Batch, Retention
from datastore.testing.histories import entry, history
from kbn.model.events import merge_all
from kbn.model.publications import Part
from kbn.model.settled import Settled, fingerprint
from kbn.model.values import Bag


def test_entries_survive_the_way_into_columns_whatever_is_promoted() -> None:
    entries = list(history(1, 300))
    for promoted in ({}, {"a": 1, "é": 7}):
        table = to_columns(entries, promoted)
        assert list(from_columns(table, promoted)) == entries
        middle = table.slice(17, 200)
        assert list(from_columns(middle, promoted)) == entries[17:217]


def test_the_table_has_the_columns_that_others_read(tmp_path) -> None:
    arrived = int(datetime(2026, 11, 18, 23, 59, tzinfo=UTC).timestamp() * 1000)
    one = entry(
        1, "x", Part.INSTANT, 5, 5, arrived, price=1.5, n=2, word="w", flag=True, none=None
    )
    two = entry(2, "y", Part.PLAIN, 6, None, arrived + DAY, bag=Bag([1, "a", None, False, 0.5]))
    with open_delta(tmp_path / "d", background=False, names=["price"]) as store:
        store.append(Batch([one, two]))
        assert store.drain() == 2
        assert store.drain() == 0
    table = DeltaTable(str(tmp_path / "d" / "log"))
    assert table.metadata().partition_columns == ["day"]
    assert [field.name for field in table.schema().fields] == [
        "seq", "at", "arrived", "day", "uid", "part", "start_ms", "end_ms",
        *("a_1__l", "a_1__d", "a_1__s"),
        *("bools", "longs", "doubles", "strings", "nulls", "bags"),
    ]  # fmt: skip
    first, second = sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["seq"])
    assert (first["uid"], first["part"], first["start_ms"]) == ("x", "INSTANT", 5)
    assert first["day"] == arrived // DAY
    assert second["day"] == first["day"] + 1
    assert first["a_1__d"] == 1.5
    assert dict(first["longs"])["n"] == 2
    assert dict(first["strings"])["word"] == "w"
    assert dict(first["bools"]) == {"flag": True}
    assert first["nulls"] == ["none"]
    assert [m["l"] for m in dict(second["bags"])["bag"]] == [1, None, None, None, None]


def test_a_name_promoted_later_gets_columns_and_old_files_stay(tmp_path) -> None:
    entries = list(history(3, 100))
    with open_delta(tmp_path / "d", background=False, keep=0) as store:
        store.append(Batch(entries[:50]))
        store.drain()
        store.index(["a"])
        store.append(Batch(entries[50:]))
        store.drain()
        store.work()
        store.trim()
        assert "a_1__l" in {field.name for field in store.archive._table.schema().fields}
        assert list(store.log()) == entries


def test_the_background_drain_empties_the_journal_behind_the_writer(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "RUN_SIZE", 100)
    entries = list(history(2, 700))
    store = open_delta(tmp_path / "d", keep=50)
    for at in range(0, 700, 50):
        store.append(Batch(entries[at : at + 50]))
    store.close()
    with open_delta(tmp_path / "d", read_only=True) as reader:
        said = reader.info()
        assert said["drained"] == entries[-1].seq
        assert said["runs"] <= 8, "runs are of their size, but for the last"
        assert list(reader.log()) == entries
        assert [f for f in reader.check() if f.wrong] == []
        assert reader.archive.distinct() == (700, 700)


def test_a_drain_that_fails_is_told_and_tried_again(tmp_path) -> None:
    store = open_delta(tmp_path / "d")
    store.append(Batch([entry(1, "x")]))
    write = store.archive.write

    def broken(*_: object) -> None:
        raise OSError("the archive is away")

    store.archive.write = broken
    store._drainer.drain(at_least=1)
    assert any("the archive is away" in f.detail for f in store.check())
    store.archive.write = write
    store._drainer.drain(at_least=1)
    assert [f for f in store.check() if f.wrong] == []
    assert store.info()["drained"] == 1
    store.close()


def test_a_start_that_follows_its_end_is_not_trimmed_before_it_is_drained(tmp_path) -> None:
    told = [
        entry(1, "e", Part.END, None, 900, 5),
        entry(2, "x", Part.PLAIN, 1000),
        entry(3, "e", Part.START, 500, None, 6),
    ]
    with open_delta(tmp_path / "d", background=False, keep=0) as store:
        store.append(Batch(told[:2]))
        store.drain()
        while store.work():
            pass
        store.append(Batch(told[2:]))
        assert store.trim()
        assert list(store.log()) == told


def test_archived_events_are_known_again_without_the_archive(tmp_path, monkeypatch) -> None:
    entries = list(history(5, 300))
    with open_delta(tmp_path / "d", background=False, keep=0) as store:
        store.append(Batch(entries))
        while store.drain(70):
            pass
        while store.work():
            pass
        assert store.trim()
        before = store.archive.reads
        found = {e.uid: store.settled_event(e.uid) for e in entries}
        assert store.archive.reads == before
        for uid, known in found.items():
            told = [e for e in entries if e.uid == uid]
            event = merge_all(told)
            if event.final:
                assert known == Settled(uid, {e.part: fingerprint(e.notification) for e in told})
            else:
                assert known is None
                assert {e.seq for e in store.table.slice(0, 2**62, 1000, write=False)} >= {
                    e.seq for e in told
                }, "what may be told more of stays hot"
        assert {known is None for known in found.values()} == {True, False}
        store.retain(Retention(count=0))
        assert {store.settled_event(uid) for uid in found} == {None}
