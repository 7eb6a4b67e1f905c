"""Opening a store: URLs, names, locks, schema versions, a disk that is nearly full."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from datastore.diskspace import DiskSpace
from datastore.factory import Stores, open_store, read_settings
from datastore.query import Query
from datastore.sql import migrate, tables
from datastore.store import Batch
from datastore.testing.histories import entry
from kbn.errors import StoreError
from tests.datastore.conftest import make_store


@pytest.mark.parametrize(
    "url",
    [
        "mysql://x/y",
        "nothing",
        "sqlite://relative.db",
        "sqlite:///",
        "sqlite:relative.db",
        "sqlite:///x.db?colour=red",
        "sqlite:///x.db?low_water=much",
        "postgresql://nobody@/nowhere?host=/nonexistent",
    ],
)
def test_a_wrong_url_is_refused_with_the_url_in_the_message(url, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError) as caught:
        open_store(url)
    assert url.split("?")[0].split("@")[0] in str(caught.value)
    assert caught.value.code == "store_unavailable"


def test_a_password_is_not_in_the_message() -> None:
    with pytest.raises(StoreError) as caught:
        open_store("postgresql://me:secret@/nowhere?host=/nonexistent")
    assert "secret" not in str(caught.value)


def test_options_stand_behind_the_url() -> None:
    made = read_settings("sqlite:///x.db?index=price,symbol&low_water=5")
    assert (made.url, made.index, made.low_water) == ("sqlite:///x.db", ("price", "symbol"), 5)
    made = read_settings("postgresql:///db?host=/run&index=a")
    assert (made.url, made.index) == ("postgresql:///db?host=/run", ("a",))
    table = {"url": "sqlite:///x.db", "index": ["a"], "low_water": 7}
    assert read_settings(table).index == ("a",)
    for bad in ({"path": "x"}, {"url": "memory:", "index": "a"}, {"url": 5}):
        with pytest.raises(StoreError):
            read_settings(bad)


def test_named_stores_come_from_the_configuration(tmp_path) -> None:
    stores = Stores({"default": "memory:", "audit": {"url": f"sqlite:///{tmp_path}/audit.db"}})
    assert stores.names == ("default", "audit")
    with stores.open() as first, stores.open("audit") as second:
        assert first.capabilities.engine == "memory"
        assert second.capabilities.engine == "sqlite"
    with pytest.raises(StoreError, match="known: audit, default"):
        stores.open("other")


def test_none_keeps_nothing_but_the_count() -> None:
    with open_store("none") as store:
        store.append(Batch([entry(3, "x")], marks={"m": 1}))
        assert (store.last_seq(), store.count(), store.get_mark("m")) == (3, 0, 1)
        assert list(store.events(Query())) == []
        with pytest.raises(StoreError):
            store.append(Batch([entry(3, "y")]))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "delta"])
def test_a_second_broker_is_refused_and_a_reader_is_not(kind, request, tmp_path) -> None:
    if kind == "postgresql":
        url = request.getfixturevalue("postgres")()
    else:
        url = f"{kind}:///{tmp_path}/history"
    with open_store(url) as first:
        first.append(Batch([entry(1, "x")]))
        with pytest.raises(StoreError, match="another broker"):
            open_store(url)
        with open_store(url, read_only=True) as reader:
            assert reader.count() == 1
            with pytest.raises(StoreError, match="reading only"):
                reader.set_mark("m", 1)
    with open_store(url) as again:
        assert again.last_seq() == 1


def test_the_lock_of_a_killed_broker_is_free(tmp_path) -> None:
    code = (
        "import sys, os; from datastore.factory import open_store;"
        "store = open_store(sys.argv[1]); os.kill(os.getpid(), 9)"
    )
    url = f"sqlite:///{tmp_path}/h.db"
    assert subprocess.run([sys.executable, "-c", code, url], check=False).returncode == -9
    with open_store(url) as store:
        assert store.last_seq() == 0


def test_a_store_that_is_closed_says_so(tmp_path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/h.db")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.append(Batch([entry(1, "x")]))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_migrations_make_the_schema_of_the_tables(kind, request, tmp_path) -> None:
    with make_store(kind, request, tmp_path) as store:
        engine = create_engine(store.link.url, creator=lambda: store.link.reader)
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            found = compare_metadata(context, tables.metadata)
            assert migrate.current(connection) == migrate.HEAD
    assert found == []


def test_head_is_the_newest_migration() -> None:
    assert ScriptDirectory(str(migrate.MIGRATIONS)).get_current_head() == migrate.HEAD


def test_a_schema_from_the_future_or_the_past_is_refused(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/h.db"
    open_store(url).close()
    connection = sqlite3.connect(tmp_path / "h.db")
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    with pytest.raises(StoreError, match="use a newer kbn"):
        open_store(url)
    with pytest.raises(StoreError, match="kbn store migrate"):
        open_store(url, read_only=True)
    connection.close()


def test_appends_are_refused_below_the_low_water_mark(tmp_path) -> None:
    free = [1000]
    disk = DiskSpace(tmp_path, low_water=500, free=lambda _: free[0])
    with open_store(f"sqlite:///{tmp_path}/h.db") as store:
        store.link._disk = disk
        store.append(Batch([entry(1, "x")]))
        free[0] = 499
        assert disk.is_low()
        with pytest.raises(StoreError, match="low-water mark"):
            store.append(Batch([entry(2, "y")]))
        assert store.last_seq() == 1
        free[0] = 501
        store.append(Batch([entry(2, "y")]))
        assert store.last_seq() == 2


def test_a_low_water_mark_above_the_disk_refuses_at_once(tmp_path) -> None:
    with (
        open_store(f"sqlite:///{tmp_path}/h.db?low_water={2**60}") as store,
        pytest.raises(StoreError, match="make room"),
    ):
        store.append(Batch([entry(1, "x")]))


def test_a_file_that_is_no_database_is_refused(tmp_path) -> None:
    (tmp_path / "h.db").write_text("this is not a database, but long enough to be one" * 50)
    with pytest.raises(StoreError):
        open_store(f"sqlite:///{tmp_path}/h.db")
