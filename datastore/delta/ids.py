"""The hot store's memory of what it archived: part and fingerprint of each publication.

Law: ``find`` says of a settled event what its entries would say, without the archive.
So a duplicate of an archived publication, or a contradiction, is known by two index
searches, and the loop of a broker reads no Delta. Cost: about 25 bytes an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, delete, or_, select

from datastore.classes import OPEN
from datastore.sql import tables
from datastore.sql.link import Link
from datastore.sql.text import escape
from kbn.model.publications import LogEntry, Part
from kbn.model.settled import Settled, fingerprint

_A, _P = tables.archived_ids.c, tables.publications.c
_COLUMNS = tuple(column.name for column in tables.archived_ids.columns)
#: Rows of one transaction: the writer waits for no longer than that.
_CHUNK = 500


class ArchivedIds:
    """The table ``archived_ids``."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._clear = link.prepare(
            delete(tables.archived_ids).where(
                _A.seq >= bindparam("low"), _A.seq <= bindparam("high")
            ),
            "low",
            "high",
        )
        self._remove = link.prepare(
            delete(tables.archived_ids).where(_A.seq == bindparam("key")), "key"
        )
        self._find = link.prepare(
            select(_P.first_seq, _P.last_seq, _A.part, _A.print)
            .join(tables.archived_ids, or_(_A.seq == _P.first_seq, _A.seq == _P.last_seq))
            .where(_P.uid == bindparam("uid"), _P["class"] < OPEN),
            "uid",
        )

    def add(self, entries: Sequence[LogEntry]) -> None:
        """Remember entries, in the order of seq, that are in the archive; may be said again."""
        for at in range(0, len(entries), _CHUNK):
            some = entries[at : at + _CHUNK]
            rows = [(e.seq, e.part.value, fingerprint(e.notification)) for e in some]
            # Not synced: what makes use of it, the end of the run, is committed later.
            with self._link.deriving():
                self._link.run(self._clear, some[0].seq, some[-1].seq)
                self._link.insert(tables.archived_ids, _COLUMNS, rows)

    def remove(self, seqs: Iterable[int]) -> None:
        """Forget, inside the current transaction."""
        self._link.run_many(self._remove, [(seq,) for seq in seqs])

    def find(self, uid: str) -> Settled | None:
        """A settled event all of whose publications are known here."""
        rows = self._link.rows(self._find, escape(uid))
        if not rows or len(rows) < (1 if rows[0][0] == rows[0][1] else 2):
            return None
        return Settled(uid, {Part(part): held for _, _, part, held in rows})
