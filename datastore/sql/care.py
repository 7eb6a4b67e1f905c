"""Retention, checking, figures: what an operator asks of a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from datastore.classes import OPEN, duration_class
from datastore.merge import merge, place
from datastore.sql import tables
from datastore.sql.projection import attribute_rows, event_row
from datastore.sql.text import unescape
from datastore.store import Finding, Progress, Retention, Spare

if TYPE_CHECKING:
    from datastore.sql.store import SqlStore

_P = tables.publications
_A = tables.publication_attributes
_L = tables.log
_D = tables.decisions
_CHUNK = 1000
#: More findings than this of one sort say nothing new.
_MOST = 20


def retain(store: SqlStore, policy: Retention, progress: Progress, spare: Spare) -> int:
    """Delete by the policy, in steps; an interrupted run has deleted whole events only."""
    total = int(store.link.query(select(func.count()).select_from(_P))[0][0])
    gone = 0

    def drop(chosen: Iterator[tuple[int, str, int, int]]) -> None:
        nonlocal gone
        while some := list(islice(chosen, _CHUNK)):
            stay = spare([uid for _, uid, _, _ in some])
            some = [row for row in some if row[1] not in stay]
            if some:
                _delete(store, some)
            gone += len(some)
            progress(gone, total)

    if policy.before is not None:
        before = policy.before
        drop(row for row in _ended(store) if row[3] < before)
    if policy.count is not None:
        drop(islice(_ended(store), max(0, total - gone - policy.count)))
    if policy.size is not None:
        drop(_until(store, store.table.total_bytes() - policy.size))
    return gone


def _ended(store: SqlStore) -> Iterator[tuple[int, str, int, int]]:
    """(number, id, last seq, last arrival) of what may go, oldest first."""
    needed = store.waiting.needed()
    after = -1
    while True:
        rows = store.link.query(
            select(_P.c.first_seq, _P.c.uid, _P.c.last_seq, _P.c.updated)
            .where(_P.c["class"] != OPEN, _P.c.last_seq > after)
            .order_by(_P.c.last_seq)
            .limit(_CHUNK)
        )
        if not rows:
            return
        after = rows[-1][2]
        for first, uid, last, updated in rows:
            if unescape(uid) not in needed:
                yield first, unescape(uid), last, updated


def _until(store: SqlStore, over: int) -> Iterator[tuple[int, str, int, int]]:
    for row in _ended(store):
        if over <= 0:
            return
        over -= store.table.bytes_of(row[1])
        yield row


def _delete(store: SqlStore, chosen: list[tuple[int, str, int, int]]) -> None:
    uids = [uid for _, uid, _, _ in chosen]
    with store.link.writing():
        # The log first: part of it may be found only through the projection.
        store.table.delete(uids)
        store.settled.remove(uids)
        store.projection.remove(first for first, _, _, _ in chosen)
        for name, newest in (
            ("horizon_seq", max(last for _, _, last, _ in chosen)),
            ("horizon_arrived", max(updated for _, _, _, updated in chosen)),
        ):
            held = int(store.meta.get(name, write=True) or newest)
            store.meta.set(name, str(max(held, newest)))


def check(store: SqlStore, progress: Progress) -> list[Finding]:
    """Everything derived against the log it is derived from, as of one moment."""
    with store.link.snapshot():
        return _check(store, progress)


def _check(store: SqlStore, progress: Progress) -> list[Finding]:
    found = [Finding("engine", said) for said in store.link.integrity()]
    found += _check_projection(store, progress)
    found += _check_decisions(store)
    for table, what in ((tables.backlog, "backlog"), (tables.spool, "spool")):
        seqs = {seq for (seq,) in store.link.query(select(table.c.seq).distinct())}
        if lost := len(seqs) - len(store.table.at(sorted(seqs))):
            found.append(Finding(what, f"{lost} rows have no entry in the log"))
    return found + _gaps(store)


def _check_projection(store: SqlStore, progress: Progress) -> list[Finding]:
    found: list[Finding] = []
    names = sorted(store.projection.names())
    high = store.projection.watermark()
    total, done, after = store.last_seq(), 0, -1
    while True:
        rows = store.link.query(
            select(_P).where(_P.c.first_seq > after).order_by(_P.c.first_seq).limit(_CHUNK)
        )
        if not rows:
            break
        low, after = after, rows[-1][0]
        kept = Counter(
            store.link.query(select(_A).where(_A.c.event > low, _A.c.event <= after))
        )  # fmt: skip
        held = store.table.entries_of(unescape(row[2]) for row in rows)
        derived: Counter[Any] = Counter()
        for row in rows:
            entries = [e for e in held.get(unescape(row[2]), ()) if e.seq <= high]
            if not entries:
                found.append(Finding("publications", f"event {row[2]} is not in the log"))
                continue
            event = merge(entries)
            derived.update(attribute_rows(event, names))
            if event_row(event) != tuple(row):
                found.append(Finding("publications", f"event {row[2]} differs from the log"))
        if kept != derived:
            found.append(
                Finding("publication_attributes", f"rows of events {low} to {after} differ")
            )
        done += len(rows)
        progress(done, total)
    missing = store.link.query(
        select(func.count()).select_from(_L.outerjoin(_P, _P.c.uid == _L.c.uid))
        .where(_P.c.uid.is_(None), _L.c.seq <= high)
    )[0][0]  # fmt: skip
    if missing:
        found.append(Finding("publications", f"{missing} entries of the log have no event"))
    return found[:_MOST]


def _check_decisions(store: SqlStore) -> list[Finding]:
    found: list[Finding] = []
    known = {number for (number,) in store.link.query(select(tables.inners.c.id))}
    after: tuple[int, str] = (-1, "")
    while True:
        inner, event = after
        rows = store.link.query(
            select(_D)
            .where(
                (_D.c.inner_id > inner)
                | ((_D.c.inner_id == inner) & (_D.c.event > event))
            )
            .order_by(_D.c.inner_id, _D.c.event)
            .limit(_CHUNK)
        )  # fmt: skip
        if not rows:
            return found[:_MOST]
        after = (rows[-1][0], rows[-1][1])
        held = store.table.entries_of(unescape(row[1]) for row in rows)
        for number, uid, seq, start, end, kind, where in rows:
            said = f"decision of inner filter {number} about {uid}"
            if number not in known:
                found.append(Finding("decisions", f"{said}: no such inner filter"))
            if not any(entry.seq == seq for entry in held.get(unescape(uid), ())):
                found.append(Finding("decisions", f"{said}: the event has no entry {seq}"))
            if kind != duration_class(start, end) or where != place(start, end):
                found.append(Finding("decisions", f"{said}: class or place is wrong"))


def _gaps(store: SqlStore) -> list[Finding]:
    """Numbers that are missing: taken by retention, or given and never stored."""
    first, last = store.link.query(select(func.min(_L.c.seq), func.max(_L.c.seq)))[0]
    if first is None:
        return []
    missing = last - first + 1 - store.table.count()
    if not missing or store.meta.get("horizon_seq") is not None:
        return []
    return [Finding("log", f"{missing} numbers between {first} and {last} are missing", False)]


def info(store: SqlStore) -> dict[str, object]:
    """Figures that cost no scan of bodies."""
    query = store.link.query
    first, last = query(select(func.min(_L.c.seq), func.max(_L.c.seq)))[0]
    oldest, newest = query(select(func.min(_L.c.clock), func.max(_L.c.clock)))[0]
    horizon = store.meta.get("horizon_arrived")
    return {
        "engine": store.link.dialect.name,
        "store": store.link.name,
        "store_id": store.meta.get("store_id"),
        "entries": store.table.count(),
        "events": store.count(),
        "open": int(
            query(select(func.count()).select_from(_P).where(_P.c["class"] == OPEN))[0][0]
        ),
        "first_seq": first,
        "last_seq": max(last or 0, store.last_seq()),
        "oldest_arrival": oldest,
        "newest_arrival": newest,
        "horizon": None if horizon is None else int(horizon),
        "projected": store.projection.watermark(),
        "indexed_names": sorted(store.projection.names()),
        "inners": len(store.inners()),
        "decisions": int(query(select(func.count()).select_from(_D))[0][0]),
        "sessions": len(store.sessions()),
        "backlog": int(query(select(func.count()).select_from(tables.backlog))[0][0]),
        "spooled": int(query(select(func.count()).select_from(tables.spool))[0][0]),
        "bytes": store.link.size(),
        "marks": store.marks.all(),
    }
