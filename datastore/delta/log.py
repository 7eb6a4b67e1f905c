"""The log of a Delta store: the hot tail in the journal, the rest in the archive.

Law: reads as one log. Up to ``trimmed`` the archive is complete, above it the journal
is; below it the journal holds only what is open or still needed. An event whose first
entry left the journal is found through its row in ``publications``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import bindparam, func, select

from datastore.bodies import write_body
from datastore.delta.archive import Archive
from datastore.delta.ids import ArchivedIds
from datastore.sql import tables
from datastore.sql.link import Link
from datastore.sql.log import AT_ONCE, LogTable
from datastore.sql.meta import MetaTable
from datastore.sql.text import escape, unescape
from kbn.model.publications import LogEntry

TRIMMED, DELETING, ARCHIVED_BYTES = "trimmed", "deleting", "archived_bytes"
_P = tables.publications.c
_L = tables.log.c
#: How many numbers of the archive are read at once, as columns; a file has half as many.
_STEP = 100_000


class DeltaLog(LogTable):
    """A ``LogTable`` that asks the archive for what left the journal."""

    page = 5000

    def __init__(
        self, link: Link, meta: MetaTable, archive: Archive, ids: ArchivedIds, *, fresh: bool
    ) -> None:
        super().__init__(link)
        self._ids = ids
        self._spans = link.prepare(
            select(_P.uid, _P.first_seq, _P.last_seq).where(
                _P.first_seq <= bindparam("high"),
                _P.uid.in_([bindparam(f"u{n}") for n in range(AT_ONCE)]),
            ),
            "high",
            *(f"u{n}" for n in range(AT_ONCE)),
        )
        self._meta = meta
        self._archive = archive
        #: Another process writes: look again before each read.
        self._fresh = fresh
        self._trimmed = int(meta.get(TRIMMED) or 0)

    @property
    def trimmed(self) -> int:
        """Up to this seq the archive is asked."""
        if self._fresh:
            self._trimmed = int(self._meta.get(TRIMMED) or 0)
            self._archive.refresh()
        return self._trimmed

    @trimmed.setter
    def trimmed(self, seq: int) -> None:
        self._trimmed = seq

    def newest(self) -> int:
        return max(super().newest(), self.trimmed)

    def count(self) -> int:
        high = self.trimmed
        if not high:
            return super().count()
        asked = select(func.count()).select_from(tables.log).where(_L.seq > high)
        return int(self._link.query(asked)[0][0]) + self._archive.summary(0, high)[0]

    def total_bytes(self) -> int:
        return super().total_bytes() + int(self._meta.get(ARCHIVED_BYTES) or 0)

    def add_archived_bytes(self, more: int) -> None:
        """So much text left the journal for the archive, or went from there."""
        held = int(self._meta.get(ARCHIVED_BYTES, write=True) or 0)
        self._meta.set(ARCHIVED_BYTES, str(held + more))

    def bytes_of(self, uid: str) -> int:
        return _bytes_of(self.entries_of((uid,)))

    def read(self, from_seq: int, to_seq: int, batch: int) -> Iterator[LogEntry]:
        gone = self._meta.numbers(DELETING)
        while from_seq <= to_seq:
            high = self.trimmed
            if from_seq <= high:
                until = min(from_seq + _STEP - 1, to_seq, high)
                old = self._archive.read(from_seq, until)
                yield from (entry for entry in old if entry.seq not in gone)
                from_seq = until + 1
            else:
                hot = self.slice(from_seq, to_seq, batch, write=False)
                if self.trimmed != high:
                    continue  # trimmed meanwhile: some of these are in the archive now
                from_seq = hot[-1].seq + 1 if len(hot) == batch else to_seq + 1
                yield from hot

    def at(self, seqs: Sequence[int], *, write: bool = False) -> dict[int, LogEntry]:
        found = super().at(seqs, write=write)
        high = self.trimmed
        missing = [seq for seq in seqs if seq not in found and seq <= high]
        return found | self._archive.at(missing) if missing else found

    def first_seq_since(self, arrived: int) -> int | None:
        high = self.trimmed
        found = self._archive.first_since(arrived, high) if high else None
        return super().first_seq_since(arrived) if found is None else found

    def entries(self, uid: str) -> list[LogEntry]:
        return sorted(self.entries_of((uid,)).get(uid, ()))

    def entries_of(
        self, uids: Iterable[str], *, write: bool = False, bodies: bool = True
    ) -> dict[str, list[LogEntry]]:
        wanted = list(dict.fromkeys(uids))
        while True:
            high = self.trimmed
            found = super().entries_of(wanted, write=write, bodies=bodies)
            if self.trimmed == high:
                return self._completed(found, wanted, high, write=write) if high else found

    def _completed(
        self, found: dict[str, list[LogEntry]], wanted: list[str], high: int, *, write: bool
    ) -> dict[str, list[LogEntry]]:
        """With the entries of those events whose first one left the journal."""
        missing: dict[str, tuple[int, int]] = {}
        for at in range(0, len(wanted), AT_ONCE):
            some = [escape(uid) for uid in wanted[at : at + AT_ONCE]]
            padded = some + some[-1:] * (AT_ONCE - len(some))
            for escaped, first, last in self._link.rows(self._spans, high, *padded, write=write):
                uid = unescape(escaped)
                if all(entry.seq != first for entry in found.get(uid, ())):
                    missing[uid] = (first, min(last, high))
        if missing:
            low = min(first for first, _ in missing.values())
            upper = max(last for _, last in missing.values())
            for entry in self._archive.of_events(list(missing), low, upper):
                held = found.setdefault(entry.uid, [])
                if all(entry.seq != known.seq for known in held):
                    held.append(entry)
        return found

    def delete(self, uids: Iterable[str]) -> None:
        """From the journal now; from the archive once the transaction is through."""
        wanted = list(uids)
        held = self.entries_of(wanted, write=True)
        hot = super().entries_of(wanted, write=True)
        self.add_archived_bytes(_bytes_of(hot) - _bytes_of(held))
        super().delete(wanted)
        seqs = {entry.seq for entries in held.values() for entry in entries}
        self._ids.remove(seqs)
        self._meta.set_numbers(DELETING, self._meta.numbers(DELETING, write=True) | seqs)


def _bytes_of(entries: Mapping[str, Iterable[LogEntry]]) -> int:
    return sum(len(write_body(e.notification)) for held in entries.values() for e in held)
