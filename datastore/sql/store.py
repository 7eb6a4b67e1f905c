"""A store in SQL: the tables put together behind the interface.

One transaction per batch. The projection follows behind the log (``work``), and every
query first brings it up to date, or reads the rest from the log if it may not write.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path

from sqlalchemy import create_engine, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool, StaticPool

from datastore import portable
from datastore.diskspace import DEFAULT_LOW_WATER
from datastore.memory import check_seqs
from datastore.merge import merge
from datastore.query import Query
from datastore.sql import care, migrate, search
from datastore.sql.decisions import DecisionTable
from datastore.sql.link import Link
from datastore.sql.log import LogTable
from datastore.sql.meta import MarkTable, MetaTable
from datastore.sql.projection import Projection
from datastore.sql.sessions import SessionTables
from datastore.sql.sqlite import SqliteLink
from datastore.store import (
    Batch,
    Capabilities,
    Finding,
    KnownInner,
    Progress,
    Retention,
    Spare,
    Store,
    StoredEvent,
    StoredSession,
    Waiting,
    no_progress,
    nobody,
)
from kbn.errors import StoreError
from kbn.model.past import Box
from kbn.model.publications import Decision, LogEntry

_LAST = 2**62
_seq = attrgetter("seq")


class SqlStore(Store):
    """Log, projection, decisions and sessions in one database."""

    def __init__(
        self,
        link: Link,
        *,
        read_only: bool,
        names: Iterable[str] | None = None,
        table: LogTable | None = None,
    ) -> None:
        self.link = link
        self._read_only = read_only
        self.capabilities = Capabilities(link.dialect.name, durable=True, push_down=True)
        self.table = LogTable(link) if table is None else table
        self.meta = MetaTable(link)
        self.marks = MarkTable(link)
        self.settled = DecisionTable(link)
        self.waiting = SessionTables(link, self.table)
        self.projection = Projection(link, self.table, self.meta)
        self._last_seq = self._newest()
        if not read_only:
            if names is not None:
                self.projection.index(names, no_progress)
            if self.meta.get("store_id") is None:
                with link.writing():
                    self.meta.set("store_id", str(uuid.uuid4()))

    @property
    def read_only(self) -> bool:
        return self._read_only

    # Writing

    def append(self, batch: Batch) -> None:
        self.link.before_writing()
        entries = batch.entries
        try:
            with self.link.writing():
                check_seqs(self._last_seq, batch)
                if entries:
                    self.table.insert(entries, batch.bodies)
                if batch.decisions or batch.inners:
                    self.settled.record(batch.decisions, batch.inners)
                if batch.backlog or batch.confirms or batch.spool or batch.unspool:
                    self.waiting.record(batch.backlog, batch.confirms, batch.spool, batch.unspool)
                for name, value in batch.marks.items():
                    self.marks.set(name, value)
        except BaseException:
            self.settled.undo()
            raise
        if entries:
            self._last_seq = entries[-1].seq

    def retain(
        self, policy: Retention, progress: Progress = no_progress, spare: Spare = nobody
    ) -> int:
        self._catch_up()
        return care.retain(self, policy, progress, spare)

    # The log

    def last_seq(self) -> int:
        return self._newest() if self._read_only else self._last_seq

    def _newest(self) -> int:
        # After retention the newest entry may be gone, but its number is not given again.
        return max(self.table.newest(), int(self.meta.get("horizon_seq") or 0))

    def log(
        self, from_seq: int = 0, to_seq: int | None = None, *, batch: int = 1000
    ) -> Iterator[LogEntry]:
        return self.table.read(from_seq, _LAST if to_seq is None else to_seq, batch)

    def first_seq_since(self, arrived: int) -> int | None:
        return self.table.first_seq_since(arrived)

    def entries(self, uid: str) -> list[LogEntry]:
        return self.table.entries(uid)

    # Events

    def entries_of(self, uids: Iterable[str]) -> dict[str, list[LogEntry]]:
        found = self.table.entries_of(uids)
        return {uid: sorted(entries, key=_seq) for uid, entries in found.items()}

    def get(self, uid: str) -> StoredEvent | None:
        return self.table.get(uid)

    def get_many(self, uids: Iterable[str]) -> dict[str, StoredEvent]:
        found = self.table.entries_of(uids)
        return {uid: merge(entries) for uid, entries in found.items()}

    def count(self) -> int:
        self._catch_up()
        return search.count(self)

    def events(self, query: Query) -> Iterator[StoredEvent]:
        self._catch_up()
        return search.events(self, query)

    def explain(self, query: Query) -> search.Plan:
        """What the engine decides of a query, how, and what is left to Python."""
        self._catch_up()
        return search.plan(self, query)

    # Decisions

    def any_within(self, inner: str, box: Box, exclude: str | None) -> bool:
        return self.settled.any_within(inner, box, exclude, fresh=self._read_only)

    def decisions(self, inner: str, limit: int | None = None) -> list[Decision]:
        return self.settled.latest(inner, limit)

    def unfinished(self, inner: str) -> list[Decision]:
        return self.settled.unfinished(inner)

    def inners(self) -> dict[str, KnownInner]:
        return self.settled.known()

    def forget_inner(self, inner: str) -> None:
        self.settled.forget(inner)

    # Marks

    def get_mark(self, name: str) -> int | None:
        return self.marks.get(name)

    def set_mark(self, name: str, value: int) -> None:
        with self.link.writing():
            self.marks.set(name, value)

    # Durable sessions

    def save_session(self, session: StoredSession) -> None:
        with self.link.writing():
            self.waiting.save(session)

    def sessions(self) -> list[StoredSession]:
        return self.waiting.all()

    def drop_session(self, name: str) -> None:
        with self.link.writing():
            self.waiting.drop(name)

    def backlog(self, session: str, after: int = 0, limit: int = 1000) -> list[Waiting]:
        return self.waiting.waiting(session, after, limit)

    def confirm(self, session: str, pos: int) -> None:
        with self.link.writing():
            self.waiting.confirm(session, pos)

    def trim_backlog(
        self, session: str, *, before: int | None = None, max_bytes: int | None = None
    ) -> int:
        with self.link.writing():
            return self.waiting.trim(session, before, max_bytes)

    def losses_told(self, session: str, count: int) -> None:
        with self.link.writing():
            self.waiting.losses_told(session, count)

    def spooled(self, after: int = 0, limit: int = 1000) -> list[LogEntry]:
        return self.waiting.spooled(after, limit)

    # Care

    def index(self, names: Iterable[str], progress: Progress = no_progress) -> None:
        """Keep values of exactly these attributes where the engine can search them."""
        self.projection.index(names, progress)

    def work(self, limit: int = 10_000) -> bool:
        return not self._read_only and self.projection.advance(limit)

    def check(self, progress: Progress = no_progress) -> list[Finding]:
        self._catch_up()
        return care.check(self, progress)

    def info(self) -> dict[str, object]:
        return care.info(self)

    def export(self, path: Path, progress: Progress = no_progress) -> int:
        with self.link.snapshot():
            return portable.write(self, path, self.marks.all(), progress)

    def import_(self, path: Path, progress: Progress = no_progress) -> int:
        return portable.read(self, path, progress)

    def close(self) -> None:
        self.link.close()

    def _catch_up(self) -> None:
        if not self._read_only:
            self.projection.advance(_LAST)


def open_sqlite(
    path: Path,
    *,
    read_only: bool = False,
    names: Iterable[str] | None = None,
    low_water: int = DEFAULT_LOW_WATER,
) -> SqlStore:
    """A store in a file, made if it is not there; ``names`` are the attributes to index."""
    link = SqliteLink(path, read_only=read_only, low_water=low_water)
    return _opened(link, read_only, names)


def open_postgres(
    url: str, *, read_only: bool = False, names: Iterable[str] | None = None
) -> SqlStore:
    """A store in a PostgreSQL database that exists."""
    from datastore.sql.postgres import PostgresLink  # noqa: PLC0415 - an extra

    link = PostgresLink(make_url(url), read_only=read_only)
    return _opened(link, read_only, names)


def _opened(link: Link, read_only: bool, names: Iterable[str] | None) -> SqlStore:
    try:
        prepare_schema(link, read_only=read_only)
        return SqlStore(link, read_only=read_only, names=names)
    except BaseException:
        link.close()
        raise


def prepare_schema(link: Link, *, read_only: bool) -> None:
    """Check the schema, and bring it up to date if we may write."""
    try:
        _prepare_schema(link, read_only=read_only)
    except DBAPIError as error:
        raise StoreError(str(error.orig), store=link.name) from error


def _prepare_schema(link: Link, *, read_only: bool) -> None:
    if read_only:
        engine = create_engine(link.url, creator=lambda: link.reader, poolclass=StaticPool)
        with engine.connect() as connection:
            found = migrate.current(connection)
        if found != migrate.HEAD:
            raise StoreError(
                "its schema is not of this version: run `kbn store migrate`", store=link.name
            )
        return
    engine = create_engine(link.url, creator=lambda: link.connect(write=True), poolclass=NullPool)
    with engine.connect() as connection, connection.begin():
        link.begin(connection.connection.driver_connection)
        migrate.upgrade(connection, link.name)
