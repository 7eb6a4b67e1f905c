"""Questions about events: what the engine can decide by its indexes, the rest by naive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from datastore.merge import merge
from datastore.ordering import answers, in_order
from datastore.query import Query
from datastore.sql import tables
from datastore.sql.link import Link
from datastore.store import StoredEvent
from kbn.model.publications import LogEntry

if TYPE_CHECKING:
    from datastore.sql.store import SqlStore


class Plan(NamedTuple):
    """How a query will be answered."""

    pushed: tuple[str, ...]
    residual: bool


def merged(entries: Iterable[LogEntry]) -> StoredEvent:
    return merge(entries)


def count(store: SqlStore) -> int:
    rows = store._link.query(select(func.count()).select_from(tables.publications))
    return int(rows[0][0])


def plan(store: SqlStore, link: Link, query: Query) -> Plan:
    return Plan((), True)


def events(store: SqlStore, link: Link, query: Query) -> Iterator[StoredEvent]:
    found = (event for events in store.projection.chunks() for event in events)
    return in_order(query, (event for event in found if answers(query, event)))
