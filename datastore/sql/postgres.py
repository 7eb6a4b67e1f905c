"""PostgreSQL through psycopg 3: rows go in by COPY, one advisory lock keeps others out.

The lock belongs to the writing connection, so it ends with the process, also by
``kill -9``, and cannot be held by a broker that lost its connection.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Table, bindparam, func, insert, select
from sqlalchemy.dialects.postgresql.psycopg import dialect as psycopg_dialect
from sqlalchemy.engine import URL, Dialect

from datastore.sql.link import Link, Prepared, Row
from kbn.errors import StoreBusyError, StoreError, UnsupportedError

try:
    import psycopg
    from psycopg import sql as composing
except ImportError as missing:  # pragma: no cover - depends on the installation
    raise UnsupportedError(
        "PostgreSQL needs an extra that is not installed: pip install 'kbn[postgres]'"
    ) from missing

#: "kbn" and a version, as a number: the advisory lock of a database's one broker.
_LOCK = 0x6B626E01
#: Seconds to wait for the lock of a broker that may have died.
_PATIENCE = 3.0
#: Fewer rows than this are inserted by statements: COPY has its own round trips.
_COPY_FROM = 8


class PostgresLink(Link):
    """Connections to one database."""

    def __init__(self, url: URL, *, read_only: bool = False) -> None:
        super().__init__()
        self.url = url.set(drivername="postgresql+psycopg")
        self.name = url.set(drivername="postgresql").render_as_string(hide_password=True)
        self.dialect: Dialect = psycopg_dialect(paramstyle="format")  # type: ignore[no-untyped-call]
        self.read_only = read_only
        self._inserts: dict[tuple[str, ...], Prepared] = {}
        self._copies: dict[tuple[str, ...], composing.Composed] = {}

    @property
    def driver_errors(self) -> tuple[type[Exception], ...]:
        return (psycopg.Error,)

    def failure(self, error: Exception) -> Exception:
        return StoreError(str(error).strip() or type(error).__name__, store=self.name)

    def connect(self, *, write: bool) -> Any:
        if write and self.read_only:
            raise StoreError("this store was opened for reading only", store=self.name)
        args, kwargs = self.dialect.create_connect_args(self.url)
        try:
            connection = psycopg.connect(*args, **kwargs, autocommit=not write)
        except psycopg.Error as error:
            raise StoreError(f"cannot be reached: {error}", store=self.name) from error
        # A commit that returned must be on disk, whatever the server's default is.
        connection.execute("SET synchronous_commit = on")
        if write:
            self._lock(connection)
        else:
            connection.execute("SET default_transaction_read_only = on")
        return connection

    def _lock(self, connection: Any) -> None:
        asked = self.prepare(select(func.pg_try_advisory_lock(bindparam("key"))), "key")
        deadline = time.monotonic() + _PATIENCE
        while True:
            got = connection.execute(asked.sql, [_LOCK]).fetchone()[0]
            connection.commit()
            if got:
                return
            if time.monotonic() >= deadline:
                break
            # The server needs a moment to notice that a broker was killed.
            time.sleep(0.05)
        connection.close()
        raise StoreBusyError(
            "another broker has this store open: end it, or choose another store",
            store=self.name,
        )

    def before_writing(self) -> None:
        """Its disk is the server's to watch; a full one is an error of the statement."""

    def begin(self, connection: Any) -> None:
        """psycopg begins with the first statement."""

    def relax(self, connection: Any, on: bool) -> None:
        connection.execute("SET synchronous_commit = off" if on else "SET synchronous_commit = on")
        connection.commit()

    def _lose_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
        super()._lose_writer()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        reader = self.reader
        with reader.transaction():
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield

    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        if not rows:
            return
        key = (table.name, *columns)
        if len(rows) < _COPY_FROM:
            prepared = self._inserts.get(key)
            if prepared is None:
                wanted = insert(table).values({name: bindparam(name) for name in columns})
                prepared = self._inserts[key] = self.prepare(wanted, *columns)
            self.run_many(prepared, rows)
            return
        copied = self._copies.get(key)
        if copied is None:
            copied = self._copies[key] = composing.SQL("COPY {} ({}) FROM STDIN").format(
                composing.Identifier(table.name),
                composing.SQL(", ").join(map(composing.Identifier, columns)),
            )
        with self._writer.cursor().copy(copied) as copy:
            for row in rows:
                copy.write_row(row)

    def explain(self, prepared: Prepared) -> tuple[str, ...]:
        asked = "EXPLAIN " + prepared.sql
        return tuple(row[0] for row in self.reader.execute(asked, prepared.values(())))

    def integrity(self) -> list[str]:
        return []  # the server checks its pages as it reads them

    def size(self) -> int:
        asked = self.prepare(select(func.pg_database_size(func.current_database())))
        return int(self.rows(asked)[0][0])
