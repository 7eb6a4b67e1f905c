"""Durable sessions, their backlogs, and the spool towards the master."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import bindparam, delete, func, insert, select, union, update

from datastore.bodies import write_body
from datastore.sql import tables
from datastore.sql.link import Link
from datastore.sql.log import LogTable
from datastore.sql.text import escape, unescape
from datastore.store import BacklogRow, StoredSession, StoredSubscription, Waiting
from kbn.model.publications import LogEntry
from senp import decode_subscription, encode_subscription

_S = tables.sessions.c
_U = tables.session_subscriptions.c
_B = tables.backlog.c
_UNIT = tuple(column.name for column in tables.session_subscriptions.columns)


class SessionTables:
    """The tables ``sessions``, ``session_subscriptions``, ``backlog`` and ``spool``."""

    def __init__(self, link: Link, log: LogTable) -> None:
        self._link = link
        self._log = log
        prepare = link.prepare
        named = _B.session == bindparam("key")
        self._waiting = prepare(
            select(_B.seq, _B.receivers)
            .where(named, _B.seq > bindparam("after"))
            .order_by(_B.seq)
            .limit(bindparam("most")),
            "key",
            "after",
            "most",
        )
        self._sizes = prepare(
            select(_B.seq, tables.log.c.arrived, func.length(tables.log.c.body))
            .select_from(tables.backlog.outerjoin(tables.log, tables.log.c.seq == _B.seq))
            .where(named)
            .order_by(_B.seq),
            "key",
        )
        self._confirm = prepare(
            delete(tables.backlog).where(named, _B.seq <= bindparam("pos")), "key", "pos"
        )
        self._confirmed = prepare(
            update(tables.sessions)
            .where(_S.name == bindparam("key"), _S.confirmed < bindparam("pos"))
            .values(confirmed=bindparam("pos")),
            "key",
            "pos",
        )
        self._lost = prepare(
            update(tables.sessions)
            .where(_S.name == bindparam("key"))
            .values(lost=_S.lost + bindparam("more")),
            "key",
            "more",
        )
        self._drops = [
            prepare(delete(table).where(column == bindparam("key")), "key")
            for table, column in (
                (tables.sessions, _S.name),
                (tables.session_subscriptions, _U.session),
                (tables.backlog, _B.session),
            )
        ]
        self._find = prepare(
            select(_S.confirmed, _S.lost).where(_S.name == bindparam("key")), "key"
        )
        self._add = prepare(
            insert(tables.sessions).values(
                {name: bindparam(name) for name in ("name", "confirmed", "lost")}
            ),
            "name",
            "confirmed",
            "lost",
        )
        self._sessions = prepare(select(*tables.sessions.columns).order_by(_S.name), "_")
        self._units = prepare(
            select(*tables.session_subscriptions.columns).order_by(_U.session, _U.number), "_"
        )
        seq = tables.spool.c.seq
        self._unspool = prepare(delete(tables.spool).where(seq == bindparam("key")), "key")
        self._spooled = prepare(
            select(seq).where(seq > bindparam("after")).order_by(seq).limit(bindparam("most")),
            "after",
            "most",
        )

    # Inside a transaction

    def record(
        self,
        backlog: Sequence[BacklogRow],
        confirms: Mapping[str, int],
        spool: Iterable[int],
        unspool: Iterable[int],
    ) -> None:
        """The parts of a batch that are kept here."""
        link = self._link
        if backlog:
            rows = [
                (escape(session), seq, json.dumps(receivers))
                for session, seq, receivers in backlog
            ]
            link.insert(tables.backlog, ("session", "seq", "receivers"), rows)
        link.insert(tables.spool, ("seq",), [(seq,) for seq in spool])
        link.run_many(self._unspool, [(seq,) for seq in unspool])
        for session, pos in confirms.items():
            self.confirm(session, pos)

    def confirm(self, session: str, pos: int) -> None:
        self._link.run(self._confirm, escape(session), pos)
        self._link.run(self._confirmed, escape(session), pos)

    def trim(self, session: str, before: int | None, max_bytes: int | None) -> int:
        rows = self._link.rows(self._sizes, escape(session), write=True)
        away = self._log.at([seq for seq, arrived, _ in rows if arrived is None], write=True)
        rows = [
            (seq, away[seq].arrived, len(write_body(away[seq].notification)))
            if seq in away
            else (seq, arrived or 0, size or 0)
            for seq, arrived, size in rows
        ]
        total = sum(size for _, _, size in rows)
        lost, upto = 0, 0
        for seq, arrived, size in rows:
            old = before is not None and arrived < before
            if not old and (max_bytes is None or total <= max_bytes):
                break
            total -= size
            lost += 1
            upto = seq
        if lost:
            self._link.run(self._confirm, escape(session), upto)
            self._link.run(self._lost, escape(session), lost)
        return lost

    def losses_told(self, session: str, count: int) -> None:
        found = self._link.rows(self._find, escape(session), write=True)
        if found:
            self._link.run(self._lost, escape(session), -min(count, found[0][1]))

    def save(self, session: StoredSession) -> None:
        name = escape(session.name)
        found = self._link.rows(self._find, name, write=True)
        confirmed, lost = found[0] if found else (0, 0)
        for drop in self._drops[:2]:
            self._link.run(drop, name)
        self._link.run(self._add, name, max(confirmed, session.confirmed), max(lost, session.lost))
        rows = [
            (
                name,
                number,
                escape(unit.id),
                encode_subscription(unit.subscription).decode("ascii"),
                unit.history,
                unit.since,
            )
            for number, unit in enumerate(session.subscriptions)
        ]
        self._link.insert(tables.session_subscriptions, _UNIT, rows)

    def drop(self, name: str) -> None:
        for drop in self._drops:
            self._link.run(drop, escape(name))

    # Reading

    def all(self) -> list[StoredSession]:
        units: dict[str, list[StoredSubscription]] = {}
        for session, _, id_, text, history, since in self._link.rows(self._units):
            asked = decode_subscription(text.encode("ascii"))
            unit = StoredSubscription(unescape(id_), asked, bool(history), since)
            units.setdefault(session, []).append(unit)
        found = [
            StoredSession(unescape(name), tuple(units.get(name, ())), confirmed, lost)
            for name, confirmed, lost in self._link.rows(self._sessions)
        ]
        return sorted(found)

    def waiting(self, session: str, after: int, limit: int) -> list[Waiting]:
        rows = self._link.rows(self._waiting, escape(session), after, limit)
        held = self._log.at([seq for seq, _ in rows])
        return [Waiting(tuple(json.loads(told)), held[seq]) for seq, told in rows if seq in held]

    def spooled(self, after: int, limit: int) -> list[LogEntry]:
        seqs = [seq for (seq,) in self._link.rows(self._spooled, after, limit)]
        held = self._log.at(seqs)
        return [held[seq] for seq in seqs if seq in held]

    def needed(self) -> set[str]:
        """The events of which a backlog or the spool still needs an entry."""
        asked = union(select(tables.backlog.c.seq), select(tables.spool.c.seq))
        seqs = [seq for (seq,) in self._link.query(asked)]
        return {entry.uid for entry in self._log.at(seqs).values()}
