"""The thread that archives: piece by piece, only what is old, ended between two pieces."""

from __future__ import annotations

from datastore.delta import archivist as module
from datastore.delta.archivist import Archivist
from datastore.delta.attached import attach
from datastore.sql.store import open_sqlite
from datastore.store import BacklogRow, Batch, StoredSession
from datastore.testing.histories import entry, history
from kbn.model.publications import Part


def opened(folder, entries=(), **options):
    store = open_sqlite(folder / "history.db", **options)
    if entries:
        store.append(Batch(entries))
    return attach(store, folder / "archive")


def made(store, older=0, now=2**40, said=None):
    held = [] if said is None else said
    return Archivist(store, older, 3600, lambda: now, lambda *told: held.append(told))


def test_a_round_moves_what_is_old_enough_and_no_more(tmp_path) -> None:
    entries = [entry(n, f"e{n}", Part.INSTANT, n, n, 1000 + n) for n in range(1, 101)]
    with opened(tmp_path, entries) as store:
        said = []
        assert made(store, older=10, now=1071, said=said).round() == 60
        assert said == [("info", "60 entries archived, up to number 60")]
        assert store.archived()[0] == store.table.trimmed == 60
        assert store.hot() == 40
        assert made(store, older=10, now=1071).round() == 0
        assert made(store, older=10, now=1072).round() == 1
        assert list(store.log()) == entries


def test_it_ends_between_two_pieces_and_the_next_goes_on(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "PIECE", 10)
    entries = list(history(7, 100))
    with opened(tmp_path, entries) as store:
        thread = made(store)
        drain = store.drain

        def drain_and_stop(*given):
            # As by ``stop`` while the first run is under way.
            thread._stopping.set()
            return drain(*given)

        monkeypatch.setattr(store, "drain", drain_and_stop)
        thread.start()
        thread.join()
        thread.stop()
        assert store.archiving().entries == 10
        assert list(store.log()) == entries
    with opened(tmp_path) as store:
        assert made(store).round() == 90
        assert store.info()["runs"] == 10
        assert list(store.log()) == entries
        assert [finding for finding in store.check() if finding.wrong] == []


def test_a_disk_that_is_nearly_full_is_left_to_the_log(tmp_path) -> None:
    opened(tmp_path, list(history(8, 30))).close()
    with opened(tmp_path, low_water=2**60) as store:
        said = []
        assert made(store, said=said).round() == 0
        assert [level for level, _ in said] == ["error"]
        assert "low-water mark" in store.archiving().failure
        assert store.archiving().failures == 1


def test_what_a_session_needs_leaves_when_it_is_confirmed(tmp_path) -> None:
    entries = [entry(n, f"e{n}", Part.INSTANT, n, n, n) for n in range(1, 21)]
    with opened(tmp_path) as store:
        store.save_session(StoredSession("s", ()))
        store.append(
            Batch(entries, backlog=[BacklogRow("s", 3, ("a",)), BacklogRow("s", 5, ("a",))])
        )
        assert made(store).round() == 20
        assert store.hot() == 2
        store.confirm("s", 4)
        made(store).round()
        assert store.hot() == 1
        assert [waiting.entry.seq for waiting in store.backlog("s")] == [5]
        assert list(store.log()) == entries
