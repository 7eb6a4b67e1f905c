"""Connections: one that writes, guarded by a lock, and one per thread that reads.

Statements are SQLAlchemy expressions, compiled once per dialect (``Prepared``); the
driver runs them, because at tens of thousands of rows a second the cost of an
execution by SQLAlchemy is larger than that of the engine. The two drivers share
enough of the DB-API that the same code serves both; ``dialects`` holds the rest.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import URL, Table
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement

from kbn.errors import StoreError

#: A row, or the values of one: whatever the driver takes and gives.
Row = tuple[Any, ...]


class Prepared:
    """A statement compiled for one dialect; values are given in the order of ``names``.

    ``is_straight`` says that this is the order of the text, too.
    """

    __slots__ = ("_order", "fixed", "is_straight", "sql")

    def __init__(self, statement: ClauseElement, dialect: Dialect, names: Sequence[str]) -> None:
        # Lists are written out only where their values are known already.
        kwargs = {} if names else {"render_postcompile": True}
        compiled: Any = statement.compile(dialect=dialect, compile_kwargs=kwargs)
        self.sql: str = str(compiled)
        self.fixed: dict[str, Any] = dict(compiled.params)
        positions = {name: at for at, name in enumerate(names)}
        self._order: list[tuple[int, Any]] = [
            (positions[name], None) if name in positions else (-1, self.fixed[name])
            for name in compiled.positiontup or ()
        ]
        self.is_straight = [at for at, _ in self._order] == list(range(len(self._order)))

    def values(self, given: Sequence[Any]) -> list[Any]:
        """The parameters in the order of the text."""
        return [given[at] if at >= 0 else held for at, held in self._order]


class Link(ABC):
    """The connections of one store to one database."""

    #: Without the password, for messages.
    name: str
    #: Tells SQLAlchemy the dialect, where it makes the statements itself (migrations).
    url: URL
    dialect: Dialect

    def __init__(self) -> None:
        self._writing = threading.RLock()
        self._local = threading.local()
        self._readers: list[Any] = []
        self._writer: Any = None
        self._depth = 0
        self._closed = False

    # What the dialects differ in

    @abstractmethod
    def connect(self, *, write: bool) -> Any:
        """A driver connection; the reading one in autocommit."""

    @abstractmethod
    def begin(self, connection: Any) -> None:
        """Begin a transaction that writes."""

    @abstractmethod
    def relax(self, connection: Any, on: bool) -> None:
        """Whether commits return before they are on disk, between transactions."""

    @abstractmethod
    def snapshot(self) -> Any:
        """A context in which this thread's reads all see one state."""

    @abstractmethod
    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert many rows inside the transaction, the fastest way the engine has."""

    @abstractmethod
    def explain(self, prepared: Prepared) -> tuple[str, ...]:
        """The engine's own plan for a query."""

    @abstractmethod
    def integrity(self) -> list[str]:
        """What the engine finds wrong with its own files."""

    @abstractmethod
    def size(self) -> int:
        """Bytes on disk."""

    @abstractmethod
    def failure(self, error: Exception) -> Exception:
        """What to raise for an error of the driver: usually a ``StoreError``."""

    @property
    @abstractmethod
    def driver_errors(self) -> tuple[type[Exception], ...]: ...

    @abstractmethod
    def before_writing(self) -> None:
        """Raises when nothing may be written now."""

    # Common

    def prepare(self, statement: ClauseElement, *names: str) -> Prepared:
        return Prepared(statement, self.dialect, names)

    @contextmanager
    def deriving(self) -> Iterator[Any]:
        """A transaction that only writes what follows from the log.

        It need not be on disk when it ends: a power cut may take it back, whole, and it is
        derived again. So the writer of the log does not wait for another sync.
        """
        with self._writing:
            if self._depth:
                yield self._writer  # part of a transaction that must be on disk
                return
            if self._writer is None:
                with self.writing():
                    pass  # now there is a connection
            self.relax(self._writer, True)
            try:
                with self.writing() as writer:
                    yield writer
            finally:
                if self._writer is not None:
                    self.relax(self._writer, False)

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A transaction, committed at the end; nested ones join it."""
        with self._writing:
            if self._closed:
                raise StoreError("the store is closed", store=self.name)
            if self._depth:
                yield self._writer
                return
            self._depth = 1
            try:
                if self._writer is None:
                    self._writer = self.connect(write=True)
                self.begin(self._writer)
                yield self._writer
                self._writer.commit()
            except BaseException as error:
                self._undo()
                if isinstance(error, self.driver_errors):
                    raise self.failure(error) from error
                raise
            finally:
                self._depth = 0

    def _undo(self) -> None:
        if self._writer is not None:
            try:
                self._writer.rollback()
            except self.driver_errors:
                self._lose_writer()

    def _lose_writer(self) -> None:
        """The writing connection is broken: the next transaction makes a new one."""
        self._writer = None

    @property
    def reader(self) -> Any:
        """This thread's connection for reading."""
        held = getattr(self._local, "connection", None)
        if held is None:
            if self._closed:
                raise StoreError("the store is closed", store=self.name)
            try:
                held = self.connect(write=False)
            except self.driver_errors as error:
                raise self.failure(error) from error
            self._local.connection = held
            with self._writing:
                self._readers.append(held)
        return held

    def rows(self, prepared: Prepared, *given: Any, write: bool = False) -> list[Row]:
        """All rows of a query; ``write`` asks inside the current transaction."""
        connection = self._writer if write else self.reader
        try:
            found: list[Row] = connection.execute(prepared.sql, prepared.values(given)).fetchall()
        except self.driver_errors as error:
            if not write:
                self._lose_reader()
            raise self.failure(error) from error
        return found

    def _lose_reader(self) -> None:
        """This thread's reading connection may be broken: the next question makes a new one."""
        held, self._local.connection = self._local.connection, None
        with self._writing:
            if held in self._readers:
                self._readers.remove(held)
        with suppress(*self.driver_errors):
            held.close()

    def run(self, prepared: Prepared, *given: Any) -> int:
        """Execute inside the current transaction; how many rows it touched."""
        return int(self._writer.execute(prepared.sql, prepared.values(given)).rowcount)

    def run_many(self, prepared: Prepared, rows: Sequence[Row]) -> None:
        """Execute once per row inside the current transaction."""
        if not rows:
            return
        given = rows if prepared.is_straight else [prepared.values(row) for row in rows]
        self._writer.cursor().executemany(prepared.sql, given)

    def query(self, statement: ClauseElement, *, write: bool = False) -> list[Row]:
        """All rows of a statement that is built for the occasion."""
        return self.rows(self.prepare(statement), write=write)

    def close(self) -> None:
        with self._writing:
            self._closed = True
            for connection in [*self._readers, self._writer]:
                if connection is not None:
                    try:
                        connection.close()
                    except self.driver_errors:
                        continue  # it is gone already
            self._readers.clear()
            self._writer = None
