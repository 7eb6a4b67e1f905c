"""SQLite: write-ahead log, ``synchronous=FULL``: a commit that returned is on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Table, bindparam, insert
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.engine import Dialect

from datastore.diskspace import DEFAULT_LOW_WATER, DiskSpace
from datastore.lockfile import LockFile
from datastore.sql.link import Link, Prepared, Row
from kbn.errors import StoreError

#: Pages of the write-ahead log between checkpoints: a few per second at full speed.
_CHECKPOINT_PAGES = 4000
_CACHE_KIB = 64 * 1024


class SqliteLink(Link):
    """A database file, its lock file beside it, and the disk they are on."""

    def __init__(
        self, path: Path, *, read_only: bool = False, low_water: int = DEFAULT_LOW_WATER
    ) -> None:
        super().__init__()
        self.path = path
        self.name = f"sqlite:///{path}"
        self.url = URL.create("sqlite")
        self.dialect: Dialect = sqlite_dialect(paramstyle="qmark")
        self.read_only = read_only
        self._inserts: dict[tuple[str, ...], Prepared] = {}
        self._lock: LockFile | None = None
        if read_only:
            if not path.exists():
                raise StoreError("there is no such file", store=self.name)
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = LockFile(path.with_name(path.name + ".lock"), self.name)
        except OSError as error:
            raise StoreError(f"cannot be opened: {error.strerror}", store=self.name) from error
        self._disk = DiskSpace(path.parent, low_water)

    @property
    def driver_errors(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error,)

    def failure(self, error: Exception) -> Exception:
        return StoreError(str(error), store=self.name)

    def before_writing(self) -> None:
        self._disk.require()

    def connect(self, *, write: bool) -> Any:
        if write and self.read_only:
            raise StoreError("this store was opened for reading only", store=self.name)
        mode = "rwc" if write else "ro"
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=30,
            cached_statements=256,
        )
        if write:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        connection.execute("PRAGMA temp_store=MEMORY")
        return connection

    def begin(self, connection: Any) -> None:
        connection.execute("BEGIN IMMEDIATE")

    def relax(self, connection: Any, on: bool) -> None:
        # NORMAL keeps the order of commits in the write-ahead log, but does not sync each.
        connection.execute("PRAGMA synchronous=NORMAL" if on else "PRAGMA synchronous=FULL")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        reader = self.reader
        reader.execute("BEGIN")
        try:
            yield
        finally:
            reader.execute("COMMIT")

    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        key = (table.name, *columns)
        prepared = self._inserts.get(key)
        if prepared is None:
            wanted = insert(table).values({name: bindparam(name) for name in columns})
            prepared = self._inserts[key] = self.prepare(wanted, *columns)
        self.run_many(prepared, rows)

    def explain(self, prepared: Prepared) -> tuple[str, ...]:
        asked = "EXPLAIN QUERY PLAN " + prepared.sql
        return tuple(row[3] for row in self.reader.execute(asked, prepared.values(())))

    def integrity(self) -> list[str]:
        said = [row[0] for row in self.reader.execute("PRAGMA quick_check")]
        return [] if said == ["ok"] else said

    def size(self) -> int:
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        super().close()
        if self._lock is not None:
            self._lock.release()
