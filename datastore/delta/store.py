"""A store whose log drains into Delta Lake, exactly once, while it is being written.

A run moves the entries (lo, hi] in four steps: plan it in the journal; write it to
Delta with the transaction id (store id, run); verify count and checksum by seq; mark
it in the journal. A kill between any two is mended by the next run: the plan is still
there, and the transaction id says whether it was written. Afterwards entries of ended
events that left the hot tail are trimmed from the journal, whose ``publications`` rows
remain as the id index. Behind the drain, merged events are derived from the Delta log.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import ColumnElement, Select, delete, func, select, union

from datastore.classes import OPEN
from datastore.delta.archive import Archive
from datastore.delta.derive import STEP, follows
from datastore.delta.drainer import Drainer
from datastore.delta.figures import Figures
from datastore.delta.following import Following
from datastore.delta.ids import ArchivedIds
from datastore.delta.log import DELETING, TRIMMED, DeltaLog
from datastore.delta.merged import MergedTable
from datastore.diskspace import DEFAULT_LOW_WATER
from datastore.sql import tables
from datastore.sql.link import Link
from datastore.sql.log import LogTable
from datastore.sql.meta import MetaTable
from datastore.sql.sqlite import SqliteLink
from datastore.sql.store import SqlStore, prepare_schema
from datastore.store import (
    Archiving,
    Batch,
    Capabilities,
    Finding,
    Progress,
    Retention,
    Spare,
    no_progress,
    nobody,
)
from kbn.errors import StoreError
from kbn.model.publications import LogEntry
from kbn.model.settled import Settled

_L, _P = tables.log.c, tables.publications.c
DRAINED, RUN, PLAN = "drained", "drain_run", "drain_plan"
#: Entries of one run; a run is begun early when its oldest entry has waited so long (s).
RUN_SIZE = 50_000
PATIENCE = 60.0
#: Entries that stay in the journal behind the drain.
KEEP = 100_000
#: Numbers of one step of trimming: the writer waits for no longer than that.
_TRIM_STEP = 2000
#: How long files of the merged events that were replaced are kept, for older versions.
KEEP_HOURS = 168
#: Runs after which small files are joined.
_COMPACT_EVERY = 64


class DeltaStore(SqlStore):
    """Journal and archive behind the one interface."""

    def __init__(
        self,
        link: Link,
        archive: Archive,
        *,
        read_only: bool,
        names: Iterable[str] | None,
        keep: int,
    ) -> None:
        meta = MetaTable(link)
        self._ids = ArchivedIds(link)
        self._delta = DeltaLog(link, meta, archive, self._ids, fresh=read_only)
        super().__init__(link, read_only=read_only, names=names, table=self._delta)
        self.archive = archive
        self.capabilities = Capabilities("delta", durable=True, push_down=True, archive=True)
        self._keep = keep
        #: One drain, trim or retention at a time.
        self._moving = threading.RLock()
        self._drainer: Drainer | None = None
        #: What this process archived, for metrics.
        self.figures = Figures(upto=int(meta.get(DRAINED) or 0))
        self._following = Following(
            archive, self._store_id, lambda: self.archived()[:2], self._moving
        )
        #: Entries that were appended lately and not drained, in order; some may be missing.
        self._recent: deque[LogEntry] = deque()
        if not read_only:
            archive.promote(self.projection.names())
            self._finish_deleting()

    # Draining

    def undrained(self) -> int:
        """How many numbers lie between the drain and the newest entry."""
        return self.last_seq() - int(self.meta.get(DRAINED) or 0)

    def drain(self, limit: int = RUN_SIZE, upto: int = 2**62) -> int:
        """Move the next run, no further than ``upto``, or finish the one that was interrupted;
        how many entries."""
        with self._moving:
            plan = self._plan(limit, upto)
            if plan is None:
                return 0
            run, low, high = plan
            entries = self._taken(low, high)
            store_id = self._store_id()
            if self.archive.last_run(store_id) < run:
                self.archive.write(entries, store_id, run)
            expected = _summary(entries)
            if (found := self.archive.summary(low + 1, high)) != expected:
                raise StoreError(
                    f"run {run} has {found[0]} entries in Delta, {expected[0]} in the journal",
                    store=self.link.name,
                )
            self._ids.add(entries)
            with self.link.writing():
                self.meta.set(DRAINED, str(high))
                self.meta.set(RUN, str(run))
                self.meta.set(PLAN, "")
            self.figures.moved(len(entries), high)
            if run % _COMPACT_EVERY == 0:
                self.archive.compact()
                if (held := self.merged()) is not None:
                    held.compact()
                    # Halves rewrite files all day: what nobody can ask for must not pile up.
                    held.vacuum(KEEP_HOURS, dry_run=False)
            return len(entries)

    def _taken(self, low: int, high: int) -> list[LogEntry]:
        """The entries of a run: those just appended from memory, else from the journal.

        The journal has the last word, since memory is cleared when the drain falls behind.
        """
        taken: list[LogEntry] = []
        try:
            while self._recent[0].seq <= high:
                entry = self._recent.popleft()
                if entry.seq > low:
                    taken.append(entry)
        except IndexError:
            pass  # that was the last one
        asked = select(func.count(), func.sum(_L.seq)).where(_L.seq > low, _L.seq <= high)
        count, total = self.link.query(asked)[0]
        if _summary(taken) == (count, total or 0):
            return taken
        return self._delta.slice(low + 1, high, 2**62, write=False)

    def hot(self) -> int:
        """How many entries the journal holds."""
        return LogTable.count(self._delta)

    def hot_before(self, arrived: int) -> int:
        """The number before the first entry in SQL that arrived then or later."""
        found = LogTable.first_seq_since(self._delta, arrived)
        return self.last_seq() if found is None else found - 1

    def archiving(self) -> Archiving:
        told = self.figures
        return Archiving(
            told.entries, told.upto, told.failures, told.failure, self.archive.reads
        )  # fmt: skip

    def archived(self) -> tuple[int, frozenset[int], Archive]:
        """Up to which seq the archive is complete, which numbers in it count no more, and it."""
        return int(self.meta.get(DRAINED) or 0), self.meta.numbers(DELETING), self.archive

    # Deriving

    def merged(self) -> MergedTable | None:
        """The table of merged events, as of now; None: nothing was derived yet."""
        return self._following.table()

    def underived(self) -> int:
        """How many numbers lie between the merged events and the drain."""
        held = self.merged()
        return int(self.meta.get(DRAINED) or 0) - (0 if held is None else held.derived())

    def derive(self, *, steps: int = 2**62, size: int = STEP) -> Iterator[int]:
        """Bring the merged events up to the archive; after each step, how many numbers.

        Writes to that table only, so a store that is open for reading may do it, beside a
        broker that does.
        """
        return self._following.steps(steps, size)

    def standing(self) -> AbstractContextManager[MergedTable]:
        """The merged events, made if need be, while nothing is drained, derived or retained."""
        return self._following.standing()

    def _plan(self, limit: int, upto: int) -> tuple[int, int, int] | None:
        held = self.meta.get(PLAN)
        if held:
            run, low, high = json.loads(held)
            return run, low, high
        low = int(self.meta.get(DRAINED) or 0)
        waits = (_L.seq > low, _L.seq <= upto)
        some = select(_L.seq).where(*waits).order_by(_L.seq).limit(limit).subquery()
        count, high = self.link.query(select(func.count(), func.max(some.c.seq)))[0]
        if not count:
            return None
        run = int(self.meta.get(RUN) or 0) + 1
        with self.link.writing():
            self.meta.set(PLAN, json.dumps([run, low, high]))
        return run, low, high

    def untrimmed(self) -> int:
        """How many numbers ``trim`` has before it."""
        return self._trimmable() - self._delta.trimmed

    def _trimmable(self) -> int:
        return min(int(self.meta.get(DRAINED) or 0) - self._keep, self.projection.watermark())

    def trim(self, most: int = 2**62) -> int:
        """Drop what is archived, settled and no longer hot from the journal; how many entries.

        An event that is open, or that lacks its start, stays: more may be told of it. No
        more than ``most`` numbers are passed.
        """
        with self._moving:
            bound = min(self._trimmable(), self._delta.trimmed + most)
            if bound <= self._delta.trimmed:
                return 0
            kept_out = _L.uid.not_in(_needed())
            gone = 0
            low = self._delta.trimmed
            for upto in [*range(low + _TRIM_STEP, bound, _TRIM_STEP), bound]:
                ended = select(_P.uid).where(
                    _P["class"] < OPEN, _P.last_seq > low, _P.last_seq <= upto
                )
                # Only what the archive has: a START may follow its END, and come meanwhile.
                gone += self._trim(upto, (_L.uid.in_(ended), _L.seq <= upto, kept_out))
                low = upto
            return gone

    def sweep(self, after: int = 0, most: int = _TRIM_STEP) -> int | None:
        """Drop what was passed by ``trim`` because a backlog or the spool needed it, and is
        needed no more, among the next hot entries; where to go on, None at the end."""
        with self._moving:
            high = self._delta.trimmed
            waits = select(_L.seq).where(_L.seq > after, _L.seq <= high)
            some = [seq for (seq,) in self.link.query(waits.order_by(_L.seq).limit(most))]
            if not some:
                return None
            settled = select(_P.uid).where(
                _P.uid == _L.uid, _P["class"] < OPEN, _P.last_seq <= high
            )
            within = (_L.seq >= some[0], _L.seq <= some[-1])
            chosen = (*within, settled.exists(), _L.uid.not_in(_needed()))
            if self.link.query(select(_L.seq).where(*chosen).limit(1)):
                self._trim(high, chosen)
            return int(some[-1])

    def _trim(self, upto: int, chosen: tuple[ColumnElement[bool], ...]) -> int:
        # The archive has everything up to here already, so readers may turn to it now.
        self._delta.trimmed = upto
        with self.link.writing():
            asked = select(func.sum(func.length(_L.body))).where(*chosen)
            self._delta.add_archived_bytes(self.link.query(asked, write=True)[0][0] or 0)
            gone = self.link.run(self.link.prepare(delete(tables.log).where(*chosen), "_"))
            self.meta.set(TRIMMED, str(upto))
        return gone

    # What differs from a store in SQL alone

    def append(self, batch: Batch) -> None:
        super().append(batch)
        if self._drainer is not None and batch.entries:
            self._recent.extend(batch.entries)
            if len(self._recent) > 2 * RUN_SIZE:
                # The drain is behind: it reads the journal until it has caught up.
                self._recent.clear()
            self._drainer.appended(len(batch.entries))

    def settled_event(self, uid: str) -> Settled | None:
        return self._ids.find(uid) if self._delta.trimmed else None

    def retain(
        self, policy: Retention, progress: Progress = no_progress, spare: Spare = nobody
    ) -> int:
        with self._moving:
            if self.meta.get(PLAN):
                self.drain()
            gone = super().retain(policy, progress, spare)
            self._finish_deleting()
            return gone

    def index(self, names: Iterable[str], progress: Progress = no_progress) -> None:
        wanted = list(names)
        super().index(wanted, progress)
        self.archive.promote(wanted)

    def check(self, progress: Progress = no_progress) -> list[Finding]:
        found = super().check(progress)
        with self.link.snapshot():
            # As of one moment: a broker may be moving on.
            drained = int(self.meta.get(DRAINED) or 0)
            high = self._delta.trimmed
            asked = select(func.count(), func.sum(_L.seq)).where(_L.seq > high, _L.seq <= drained)
            count, total = self.link.query(asked)[0]
        self.archive.refresh()
        rows, seqs = self.archive.distinct()
        if rows != seqs:
            found.append(Finding("archive", f"{rows - seqs} entries are there twice"))
        if self.archive.summary(high + 1, drained) != (count, total or 0):
            found.append(Finding("archive", "what was drained differs from the journal"))
        held = self.merged()
        if held is not None and not follows(self.archive, held, self.meta.numbers(DELETING)):
            found.append(
                Finding("merged events", f"differ from the log: remove {held.path}, derive again")
            )
        if self._drainer is not None and self._drainer.failure is not None:
            found.append(Finding("archive", f"draining fails: {self._drainer.failure}"))
        return found

    def info(self) -> dict[str, object]:
        said = super().info()
        first, _ = self.archive.bounds("seq")
        oldest, newest = self.archive.bounds("arrived")
        return {
            **said,
            "engine": "delta",
            "first_seq": _either(min, said["first_seq"], first),
            "oldest_arrival": _either(min, said["oldest_arrival"], oldest),
            "newest_arrival": _either(max, said["newest_arrival"], newest),
            "drained": int(self.meta.get(DRAINED) or 0),
            "trimmed": self._delta.trimmed,
            "runs": int(self.meta.get(RUN) or 0),
            "archive_bytes": self.archive.bytes(),
            "archive_files": self.archive.files(),
            **self._following.info(),
        }

    def start(self) -> None:
        """Drain in a thread of its own from now on."""
        self._drainer = Drainer(self, RUN_SIZE, PATIENCE)
        self._drainer.start()

    def close(self) -> None:
        if self._drainer is not None:
            self._drainer.stop()
            self._drainer = None
        super().close()

    def _store_id(self) -> str:
        held = self.meta.get("store_id")
        assert held is not None, "a store that was opened for writing has an id"
        return held

    def _finish_deleting(self) -> None:
        gone = self.meta.numbers(DELETING)
        if gone:
            self.archive.delete(sorted(gone))
            held = self.merged()
            if held is not None:
                held.delete(sorted(gone))
            with self.link.writing():
                self.meta.set_numbers(DELETING, frozenset())


def _needed() -> Select[tuple[str]]:
    """The events of which a backlog or the spool still needs an entry."""
    seqs = union(select(tables.spool.c.seq), select(tables.backlog.c.seq))
    return select(_L.uid).where(_L.seq.in_(seqs))


def _either(choose: Callable[..., object], *figures: object) -> object:
    """The less or greater of figures of which some may be missing."""
    return choose((one for one in figures if one is not None), default=None)


def _summary(entries: Sequence[LogEntry]) -> tuple[int, int]:
    """How many, and the sum of their seqs: what ``Archive.summary`` says of the same."""
    return len(entries), sum(entry.seq for entry in entries)


def open_delta(
    path: Path,
    *,
    read_only: bool = False,
    names: Iterable[str] | None = None,
    low_water: int = DEFAULT_LOW_WATER,
    background: bool = True,
    keep: int = KEEP,
) -> DeltaStore:
    """A store in a folder: ``journal.db``, and ``log`` and ``events`` as Delta tables.

    ``background`` drains in a thread; otherwise ``drain`` and ``trim`` are the caller's.
    """
    link = SqliteLink(path / "journal.db", read_only=read_only, low_water=low_water)
    try:
        prepare_schema(link, read_only=read_only)
        names = None if names is None else list(names)
        archive = Archive(path / "log", read_only=read_only, names=names or ())
        store = DeltaStore(link, archive, read_only=read_only, names=names, keep=keep)
    except BaseException:
        link.close()
        raise
    if background and not read_only:
        store.start()
    return store
