"""The log's table: append, read in order, read by event.

Cost of an append: one row and two index entries per publication, 15 to 20 µs in
SQLite in groups of 50 and more. Reading by event is one search by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sqlalchemy import bindparam, delete, func, select

from datastore.bodies import read_body, write_body
from datastore.merge import merge
from datastore.sql import tables
from datastore.sql.link import Link, Row
from datastore.sql.text import escape, unescape
from datastore.store import StoredEvent
from kbn.model.notifications import Notification
from kbn.model.publications import LogEntry, Part

_LOG = tables.log.c
_ALL = tuple(column.name for column in tables.log.columns)
#: What an entry is read from.
COLUMNS = tuple(column for column in tables.log.columns if column.name != "clock")
#: How many ids one statement asks for.
AT_ONCE = 100
_EMPTY = Notification()
_PARTS = {part.value: part for part in Part}


class LogTable:
    """Entries to rows and back."""

    #: How many events are worth asking for together.
    page = AT_ONCE

    def __init__(self, link: Link) -> None:
        self._link = link
        every = select(*COLUMNS)
        self._clock: int | None = None
        self._by_uid = link.prepare(
            every.where(_LOG.uid == bindparam("uid")).order_by(_LOG.seq), "uid"
        )
        self._by_uids = link.prepare(
            every.where(_LOG.uid.in_([bindparam(f"u{n}") for n in range(AT_ONCE)])),
            *(f"u{n}" for n in range(AT_ONCE)),
        )
        light = [column for column in COLUMNS if column.name != "body"]
        self._light_by_uids = link.prepare(
            select(*light).where(_LOG.uid.in_([bindparam(f"u{n}") for n in range(AT_ONCE)])),
            *(f"u{n}" for n in range(AT_ONCE)),
        )
        self._uids = link.prepare(
            select(_LOG.seq, _LOG.uid)
            .where(_LOG.seq >= bindparam("low"))
            .order_by(_LOG.seq)
            .limit(bindparam("most")),
            "low",
            "most",
        )
        self._by_seqs = link.prepare(
            every.where(_LOG.seq.in_([bindparam(f"s{n}") for n in range(AT_ONCE)])),
            *(f"s{n}" for n in range(AT_ONCE)),
        )
        self._slice = link.prepare(
            every.where(_LOG.seq >= bindparam("low"), _LOG.seq <= bindparam("high"))
            .order_by(_LOG.seq)
            .limit(bindparam("most")),
            "low",
            "high",
            "most",
        )
        self._since = link.prepare(
            select(_LOG.seq)
            .where(_LOG.clock >= bindparam("ms"))
            .order_by(_LOG.clock, _LOG.seq)
            .limit(1),
            "ms",
        )
        self._arrived = link.prepare(
            select(_LOG.seq)
            .where(_LOG.seq >= bindparam("low"), _LOG.arrived >= bindparam("ms"))
            .order_by(_LOG.seq)
            .limit(1),
            "low",
            "ms",
        )
        self._latest = link.prepare(select(func.max(_LOG.clock)), "_")
        by_uid = _LOG.uid == bindparam("uid")
        self._delete = link.prepare(delete(tables.log).where(by_uid), "uid")
        self._bytes = link.prepare(select(func.sum(func.length(_LOG.body))).where(by_uid), "uid")
        self._newest = link.prepare(select(func.max(_LOG.seq)).where(_LOG.seq > 0), "none")
        self._count = link.prepare(select(func.count()).select_from(tables.log), "none")

    def insert(self, entries: Sequence[LogEntry], bodies: Sequence[bytes | None] | None) -> None:
        """Write the rows inside the current transaction."""
        if bodies is None:
            bodies = [None] * len(entries)
        rows = []
        clock = self._clock
        if clock is None:
            clock = self._link.rows(self._latest, write=True)[0][0] or -(2**62)
        for (seq, uid, part, at, arrived, start, end, said), body in zip(
            entries, bodies, strict=True
        ):
            text = write_body(said) if body is None else body.decode("ascii")
            clock = max(clock, arrived)
            rows.append((seq, escape(uid), part.value, at, arrived, start, end, clock, text))
        self._link.insert(tables.log, _ALL, rows)
        # Too late a clock, should the transaction fail, is still a rising one.
        self._clock = clock

    def newest(self) -> int:
        return self._link.rows(self._newest)[0][0] or 0

    def count(self) -> int:
        return int(self._link.rows(self._count)[0][0])

    def read(self, from_seq: int, to_seq: int, batch: int) -> Iterator[LogEntry]:
        """Entries in order; each batch is read in one go, so nobody is held up."""
        while from_seq <= to_seq:
            rows = self._link.rows(self._slice, from_seq, to_seq, batch)
            for row in rows:
                yield entry_of(row)
            if len(rows) < batch:
                return
            from_seq = rows[-1][0] + 1

    def slice(self, from_seq: int, to_seq: int, most: int, *, write: bool) -> list[LogEntry]:
        """At most so many entries; ``write`` reads inside the current transaction."""
        rows = self._link.rows(self._slice, from_seq, to_seq, most, write=write)
        return [entry_of(row) for row in rows]

    def at(self, seqs: Sequence[int], *, write: bool = False) -> dict[int, LogEntry]:
        """The entries with these numbers, those that are there."""
        found: dict[int, LogEntry] = {}
        for start in range(0, len(seqs), AT_ONCE):
            some = list(seqs[start : start + AT_ONCE])
            padded = some + some[-1:] * (AT_ONCE - len(some))
            for row in self._link.rows(self._by_seqs, *padded, write=write):
                found[row[0]] = entry_of(row)
        return found

    def first_seq_since(self, arrived: int) -> int | None:
        """By the rising clock, then past entries whose own arrival was earlier (a clock set
        back, or retention that took the entry which had moved it on)."""
        rows = self._link.rows(self._since, arrived)
        rows = rows and self._link.rows(self._arrived, rows[0][0], arrived)
        return int(rows[0][0]) if rows else None

    def delete(self, uids: Iterable[str]) -> None:
        """Remove all entries of these events, inside the current transaction."""
        self._link.run_many(self._delete, [(escape(uid),) for uid in uids])

    def total_bytes(self) -> int:
        """How long all bodies are."""
        return int(self._link.query(select(func.sum(func.length(_LOG.body))))[0][0] or 0)

    def bytes_of(self, uid: str) -> int:
        """How long the bodies of an event are."""
        return int(self._link.rows(self._bytes, escape(uid))[0][0] or 0)

    def get(self, uid: str) -> StoredEvent | None:
        found = self.entries(uid)
        return merge(found) if found else None

    def entries(self, uid: str) -> list[LogEntry]:
        """Everything the log says of one event, in order."""
        return sorted(map(entry_of, self._link.rows(self._by_uid, escape(uid))))

    def uids_from(self, low: int, most: int) -> list[tuple[int, str]]:
        """(seq, id) of the next entries, inside the current transaction."""
        rows = self._link.rows(self._uids, low, most, write=True)
        return [(seq, unescape(uid)) for seq, uid in rows]

    def entries_of(
        self, uids: Iterable[str], *, write: bool = False, bodies: bool = True
    ) -> dict[str, list[LogEntry]]:
        """All entries of each event that has any; without ``bodies`` they say nothing.

        Bodies are most of the cost, and the times of an event do not need them.
        """
        asked = self._by_uids if bodies else self._light_by_uids
        found: dict[str, list[LogEntry]] = {}
        left = iter(dict.fromkeys(uids))
        while some := [escape(uid) for uid in islice(left, AT_ONCE)]:
            padded = some + some[-1:] * (AT_ONCE - len(some))
            for row in self._link.rows(asked, *padded, write=write):
                entry = entry_of(row) if bodies else _light_entry(row)
                found.setdefault(entry.uid, []).append(entry)
        return found


def entry_of(row: Row) -> LogEntry:
    """A log row as the entry it was."""
    seq, uid, part, at, arrived, start, end, body = row
    return LogEntry(
        seq, unescape(uid), _PARTS[part], at, arrived, start, end, read_body(body)
    )  # fmt: skip


def _light_entry(row: Row) -> LogEntry:
    seq, uid, part, at, arrived, start, end = row
    return LogEntry(seq, unescape(uid), _PARTS[part], at, arrived, start, end, _EMPTY)
