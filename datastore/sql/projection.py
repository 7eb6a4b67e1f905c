"""The projection of the log: one row per event, attribute rows for the names asked for.

Law: up to the watermark it is what ``merge`` makes of the log; ``check`` compares the
two. It is written behind the log, in idle time and before queries, because attribute
rows with their indexes would cost most of the ingest. A reader that may not write
takes what lies above the watermark from the log itself (``tail``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sqlalchemy import bindparam, delete, insert, select
from sqlalchemy.sql import ClauseElement

from datastore.classes import duration_class
from datastore.merge import merge, place
from datastore.sql import tables
from datastore.sql.link import Link, Row
from datastore.sql.log import AT_ONCE, LogTable
from datastore.sql.meta import MetaTable
from datastore.sql.text import escape, unescape
from datastore.store import Progress, StoredEvent
from kbn.model.values import Bag, Scalar, Value, is_finite
from senp import encode_value

_P = tables.publications.c
_A = tables.publication_attributes.c
EVENT_COLUMNS = tuple(column.name for column in tables.publications.columns)
ATTRIBUTE_COLUMNS = tuple(column.name for column in tables.publication_attributes.columns)
WATERMARK = "projected"
#: Entries of one transaction: the writer waits for no longer than that.
_CHUNK = 500


class Projection:
    """The tables ``publications``, ``publication_attributes`` and ``indexed_names``."""

    def __init__(self, link: Link, log: LogTable, meta: MetaTable) -> None:
        self._link = link
        self._log = log
        self._meta = meta
        prepare = link.prepare
        self._remove_event = prepare(
            delete(tables.publications).where(_P.first_seq == bindparam("event")), "event"
        )
        self._remove_attributes = prepare(
            delete(tables.publication_attributes).where(_A.event == bindparam("event")), "event"
        )
        self._chunk = prepare(
            select(_P.first_seq, _P.uid)
            .where(_P.first_seq > bindparam("after"))
            .order_by(_P.first_seq)
            .limit(bindparam("most")),
            "after",
            "most",
        )
        self._ids = prepare(
            select(_P.first_seq, _P.uid).where(
                _P.first_seq.in_([bindparam(f"f{n}") for n in range(AT_ONCE)])
            ),
            *(f"f{n}" for n in range(AT_ONCE)),
        )
        self._names = prepare(select(tables.indexed_names.c.name), "_")

    def names(self) -> frozenset[str]:
        """The attribute names whose values have rows."""
        return frozenset(unescape(name) for (name,) in self._link.rows(self._names))

    def watermark(self) -> int:
        """The seq up to which the projection tells the whole story."""
        return int(self._meta.get(WATERMARK) or 0)

    def find(self, uids: Iterable[str]) -> Iterator[int]:
        """The numbers of those events that are projected."""
        left = iter(uids)
        while some := [escape(uid) for uid in islice(left, AT_ONCE)]:
            found = self._link.query(select(_P.first_seq).where(_P.uid.in_(some)))
            yield from (first for (first,) in found)

    def ids(self, firsts: Sequence[int]) -> Iterator[tuple[int, str]]:
        """(number, id) of those of the events that are still there."""
        for at in range(0, len(firsts), AT_ONCE):
            some = list(firsts[at : at + AT_ONCE])
            padded = some + some[-1:] * (AT_ONCE - len(some))
            for first, uid in self._link.rows(self._ids, *padded):
                yield first, unescape(uid)

    def tail(self) -> set[str]:
        """The events of which something lies above the watermark."""
        low = self.watermark() + 1
        return {entry.uid for entry in self._log.read(low, 2**62, 10_000)}

    def advance(self, limit: int) -> bool:
        """Project at most about ``limit`` further entries; whether more are left."""
        if self._log.newest() <= self.watermark():
            return False
        while limit > 0:
            with self._link.deriving():
                low = int(self._meta.get(WATERMARK, write=True) or 0) + 1
                entries = self._log.uids_from(low, _CHUNK)
                if not entries:
                    return False
                names = self.names()
                found = self._log.entries_of(
                    (uid for _, uid in entries), write=True, bodies=bool(names)
                )
                high = entries[-1][0]
                events = [
                    merge(known)
                    for held in found.values()
                    if (known := [entry for entry in held if entry.seq <= high])
                ]
                replaced = [event for event in events if event.first_seq < low]
                self._write(events, replaced, names)
                self._meta.set(WATERMARK, str(high))
            limit -= len(entries)
        return self._log.newest() > self.watermark()

    def _write(
        self,
        events: Sequence[StoredEvent],
        replaced: Sequence[StoredEvent],
        names: frozenset[str],
    ) -> None:
        self.remove([event.first_seq for event in replaced])
        self._link.insert(tables.publications, EVENT_COLUMNS, [event_row(e) for e in events])
        if names:
            rows = [row for event in events for row in attribute_rows(event, names)]
            self._link.insert(tables.publication_attributes, ATTRIBUTE_COLUMNS, rows)

    def remove(self, firsts: Iterable[int]) -> None:
        """Take events out, inside the current transaction."""
        gone = [(first,) for first in firsts]
        self._link.run_many(self._remove_event, gone)
        self._link.run_many(self._remove_attributes, gone)

    def index(self, names: Iterable[str], progress: Progress) -> None:
        """From now on keep rows for exactly these names; new ones are filled in first."""
        wanted, held = frozenset(names), self.names()
        new, gone = wanted - held, held - wanted
        if not new and not gone:
            return
        name = tables.indexed_names.c.name
        with self._link.writing():
            for each in gone:
                self._run(delete(tables.indexed_names).where(name == escape(each)))
        for each in gone | new:
            # Rows of a new name are leftovers of a run that was interrupted.
            with self._link.writing():
                self._run(delete(tables.publication_attributes).where(_A.name == escape(each)))
        with self._link.writing():
            if new:
                total, done = self._log.newest(), 0
                for events in self.chunks(write=True):
                    rows = [row for event in events for row in attribute_rows(event, new)]
                    self._link.insert(tables.publication_attributes, ATTRIBUTE_COLUMNS, rows)
                    done += len(events)
                    progress(done, total)
            for each in sorted(new):
                self._run(insert(tables.indexed_names).values(name=escape(each)))

    def chunks(self, *, write: bool = False) -> Iterator[list[StoredEvent]]:
        """Every projected event, merged afresh from the log, in the order of first seq."""
        after, high = 0, self.watermark()
        while rows := self._link.rows(self._chunk, after, _CHUNK, write=write):
            after = rows[-1][0]
            held = self._log.entries_of((unescape(uid) for _, uid in rows), write=write)
            yield [
                merge(entry for entry in entries if entry.seq <= high) for entries in held.values()
            ]

    def _run(self, statement: ClauseElement) -> None:
        self._link.run(self._link.prepare(statement, "_"))


def event_row(event: StoredEvent) -> Row:
    """A row of ``publications``."""
    return (
        event.first_seq,
        event.last_seq,
        escape(event.uid),
        event.start,
        event.end,
        place(event.start, event.end),
        duration_class(event.start, event.end),
        event.inserted,
        event.updated,
    )


def attribute_rows(event: StoredEvent, names: Iterable[str]) -> Iterator[Row]:
    """The rows of ``publication_attributes`` for those of the names the event has."""
    said = event.notification.attributes
    for name in names:
        if name in said:
            head = (event.first_seq, escape(name))
            value = said[name]
            yield (*head, -1, *_typed(value), _spelled(value))
            if isinstance(value, Bag):
                for number, member in enumerate(value.members):
                    yield (*head, number, *_typed(member), _spelled(member))


def _typed(value: Value) -> tuple[str, int | None, float | None, str | None]:
    """Kind and the typed columns; see the table for what they mean."""
    if value is None:
        return ("n", None, None, None)
    if isinstance(value, bool):
        return ("t" if value else "f", None, None, None)
    if isinstance(value, int):
        return ("l", value, None, None)
    if isinstance(value, float):
        return ("d", None, None if math.isnan(value) else value, None)
    if isinstance(value, str):
        return ("s", None, None, escape(value))
    return ("b", None, None, None)


def _spelled(value: Value | Scalar) -> str:
    return encode_value(value).decode("ascii") if is_finite(value) else repr(value)
