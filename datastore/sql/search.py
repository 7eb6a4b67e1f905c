"""Questions about events: what the engine can decide by its indexes, the rest by naive.

Law: the answer is that of one moment. The candidates' numbers are read at once, with
the seq of that moment; their entries are read page by page and cut at it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from datastore.merge import merge
from datastore.ordering import DESCENDING, answers, sort_key
from datastore.query import Query
from datastore.sql import tables
from datastore.sql.compile import Compiled, compile_query
from datastore.store import StoredEvent
from kbn.language import print_constraint
from kbn.model.filters import Constraint
from kbn.model.values import is_finite

if TYPE_CHECKING:
    from datastore.sql.store import SqlStore


class Plan(NamedTuple):
    """How a query will be answered: for people, and for the tests that hold it to searches."""

    #: Constraints the engine decides, and those left to naive.
    pushed: tuple[str, ...]
    left: tuple[str, ...]
    #: Whether the engine's answer is asked again by naive.
    residual: bool
    #: What the engine says it will do.
    steps: tuple[str, ...]


def count(store: SqlStore) -> int:
    """Events in the projection, and those that only the tail knows."""
    with store.link.snapshot():
        rows = store.link.query(select(func.count()).select_from(tables.publications))
        tail = store.projection.tail()
        known = set(store.projection.find(tail))
    return int(rows[0][0]) + len(tail) - len(known)


def _compiled(store: SqlStore, query: Query) -> Compiled:
    since, from_seq = query.window.arrived_from, None
    if since is not None:
        first = store.table.first_seq_since(since)
        from_seq = 2**62 if first is None else first
    return compile_query(query, store.projection.names(), store.link.dialect.name, from_seq)


def plan(store: SqlStore, query: Query) -> Plan:
    made = _compiled(store, query)
    steps = store.link.explain(store.link.prepare(made.statement))
    return Plan(_shown(made.pushed), _shown(made.left), not made.exact, steps)


def _shown(constraints: Iterable[Constraint]) -> tuple[str, ...]:
    return tuple(print_constraint(c) if is_finite(c.value) else repr(c) for c in constraints)


def events(store: SqlStore, query: Query) -> Iterator[StoredEvent]:
    """The answer, in order."""
    with store.link.snapshot():
        high = max(store.projection.watermark(), store.table.newest())
        tail = store.projection.tail()
        exact, found = _candidates(store, query, cut=not tail)
        known = set(store.projection.find(tail))
    behind = [
        event
        for entries in store.table.entries_of(tail).values()
        if answers(query, event := merge(e for e in entries if e.seq <= high))
    ]
    back = query.order in DESCENDING
    behind.sort(key=lambda event: sort_key(query.order, event), reverse=back)
    found = [first for first in found if first not in known] if known else found
    settled = (
        event for event in _merged(store, found, high) if exact or answers(query, event)
    )  # fmt: skip
    either = heapq.merge(
        settled, behind, key=lambda event: sort_key(query.order, event), reverse=back
    )
    return islice(either if behind else settled, query.limit)


def _candidates(store: SqlStore, query: Query, *, cut: bool) -> tuple[bool, list[int]]:
    if not cut:
        # The tail may push others out, so the engine must not stop early.
        query = Query(
            query.asked, query.window, query.order, None, query.knowledge, query.spelling
        )
    made = _compiled(store, query)
    return made.exact, [first for (first,) in store.link.query(made.statement)]


def _merged(store: SqlStore, firsts: Iterable[int], high: int) -> Iterator[StoredEvent]:
    """The events with these numbers, in this order; one that went meanwhile is left out."""
    left = iter(firsts)
    while some := list(islice(left, store.table.page)):
        uids = dict(store.projection.ids(some))
        held = store.table.entries_of(uids.values())
        for first in some:
            entries = [e for e in held.get(uids.get(first, ""), ()) if e.seq <= high]
            if entries:
                yield merge(entries)
