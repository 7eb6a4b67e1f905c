"""The reference store: plain dicts and lists, nothing clever, nothing kept on disk.

Every other store is tested against this one. Costs are those of scans, except for
``append`` and ``get``.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path

from datastore import portable
from datastore.bodies import write_body
from datastore.merge import merge, place
from datastore.ordering import answers, in_order
from datastore.query import Query, in_box
from datastore.store import (
    BacklogRow,
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


class MemoryStore(Store):
    """A history that ends with the process."""

    capabilities = Capabilities("memory", durable=False)

    def __init__(self) -> None:
        self._lock = threading.RLock()
        #: In the order of seq; ``_of_event`` holds the same entries by id.
        self._log: list[LogEntry] = []
        self._of_event: dict[str, list[LogEntry]] = {}
        self._last_seq = 0
        #: Standing decisions that hold, by inner filter and event.
        self._standing: dict[str, dict[str, Decision]] = {}
        self._inners: dict[str, KnownInner] = {}
        self._marks: dict[str, int] = {}
        self._sessions: dict[str, StoredSession] = {}
        self._backlog: dict[str, dict[int, BacklogRow]] = {}
        self._spool: set[int] = set()

    # Writing

    def append(self, batch: Batch) -> None:
        with self._lock:
            check_seqs(self._last_seq, batch)
            for entry in batch.entries:
                self._log.append(entry)
                self._of_event.setdefault(entry.uid, []).append(entry)
                self._last_seq = entry.seq
            for decision in batch.decisions:
                standing = self._standing.setdefault(decision.inner, {})
                if decision.holds:
                    standing[decision.event] = decision
                else:
                    standing.pop(decision.event, None)
            self._inners.update({known.inner: known for known in batch.inners})
            self._spool.update(batch.spool)
            self._spool.difference_update(batch.unspool)
            for row in batch.backlog:
                self._backlog.setdefault(row.session, {})[row.seq] = row
            for session, pos in batch.confirms.items():
                self.confirm(session, pos)
            self._marks.update(batch.marks)

    def retain(
        self, policy: Retention, progress: Progress = no_progress, spare: Spare = nobody
    ) -> int:
        chosen = self._beyond(policy)
        # Whoever answers may ask this store: not under the lock.
        stay = spare(chosen)
        with self._lock:
            gone = [uid for uid in chosen if uid not in stay]
            for uid in gone:
                self._delete(uid)
            self._log = [entry for entry in self._log if entry.uid in self._of_event]
        return len(gone)

    def _beyond(self, policy: Retention) -> list[str]:
        """The events that a policy lets go, in the order in which they go."""
        with self._lock:
            needed = self._spool.union(*(rows.keys() for rows in self._backlog.values()))
            merged = [merge(entries) for entries in self._of_event.values()]
            free = [
                event
                for event in sorted(merged, key=lambda e: e.last_seq)
                if not event.is_open
                and not any(entry.seq in needed for entry in self._of_event[event.uid])
            ]
            before = policy.before
            gone = [event for event in free if before is not None and event.updated < before]
            free = [event for event in free if event not in gone]
            if policy.count is not None:
                over = max(0, len(merged) - len(gone) - policy.count)
                gone, free = gone + free[:over], free[over:]
            size = sum(map(_bytes_of, self._of_event.values()))
            size -= sum(_bytes_of(self._of_event[event.uid]) for event in gone)
            while policy.size is not None and size > policy.size and free:
                size -= _bytes_of(self._of_event[free[0].uid])
                gone.append(free.pop(0))
            return [event.uid for event in gone]

    def _delete(self, uid: str) -> None:
        del self._of_event[uid]
        for standing in self._standing.values():
            standing.pop(uid, None)

    # The log

    def last_seq(self) -> int:
        return self._last_seq

    def log(
        self, from_seq: int = 0, to_seq: int | None = None, *, batch: int = 1000
    ) -> Iterator[LogEntry]:
        with self._lock:
            held = list(self._log)
        for entry in held[bisect_left(held, from_seq, key=lambda e: e.seq) :]:
            if to_seq is not None and entry.seq > to_seq:
                return
            yield entry

    def first_seq_since(self, arrived: int) -> int | None:
        with self._lock:
            return next((entry.seq for entry in self._log if entry.arrived >= arrived), None)

    # Events

    def entries_of(self, uids: Iterable[str]) -> dict[str, list[LogEntry]]:
        with self._lock:
            return {uid: list(self._of_event[uid]) for uid in uids if uid in self._of_event}

    def get_many(self, uids: Iterable[str]) -> dict[str, StoredEvent]:
        with self._lock:
            return {uid: merge(self._of_event[uid]) for uid in uids if uid in self._of_event}

    def count(self) -> int:
        return len(self._of_event)

    def events(self, query: Query) -> Iterator[StoredEvent]:
        with self._lock:
            merged = [merge(entries) for entries in self._of_event.values()]
        return in_order(query, (event for event in merged if answers(query, event)))

    # Decisions

    def any_within(self, inner: str, box: Box, exclude: str | None) -> bool:
        with self._lock:
            return any(
                decision.event != exclude and in_box(box, decision.start, decision.end)
                for decision in self._standing.get(inner, {}).values()
            )

    def decisions(self, inner: str, limit: int | None = None) -> list[Decision]:
        with self._lock:
            held = list(self._standing.get(inner, {}).values())
        held.sort(key=lambda d: (place(d.start, d.end), d.seq), reverse=True)
        return held[:limit]

    def inners(self) -> dict[str, KnownInner]:
        return dict(self._inners)

    def forget_inner(self, inner: str) -> None:
        with self._lock:
            self._inners.pop(inner, None)
            self._standing.pop(inner, None)

    # Marks

    def get_mark(self, name: str) -> int | None:
        return self._marks.get(name)

    def set_mark(self, name: str, value: int) -> None:
        self._marks[name] = value

    # Durable sessions

    def save_session(self, session: StoredSession) -> None:
        with self._lock:
            old = self._sessions.get(session.name, session)
            self._sessions[session.name] = session._replace(
                confirmed=max(old.confirmed, session.confirmed), lost=max(old.lost, session.lost)
            )

    def sessions(self) -> list[StoredSession]:
        with self._lock:
            return [self._sessions[name] for name in sorted(self._sessions)]

    def drop_session(self, name: str) -> None:
        with self._lock:
            self._sessions.pop(name, None)
            self._backlog.pop(name, None)

    def backlog(self, session: str, after: int = 0, limit: int = 1000) -> list[Waiting]:
        with self._lock:
            rows = self._backlog.get(session, {})
            wanted = sorted(seq for seq in rows if seq > after)[:limit]
            return [Waiting(rows[seq].receivers, self._entry(seq)) for seq in wanted]

    def confirm(self, session: str, pos: int) -> None:
        with self._lock:
            held = self._sessions.get(session)
            if held is not None:
                self._sessions[session] = held._replace(confirmed=max(held.confirmed, pos))
            rows = self._backlog.get(session, {})
            for seq in [seq for seq in rows if seq <= pos]:
                del rows[seq]

    def trim_backlog(
        self, session: str, *, before: int | None = None, max_bytes: int | None = None
    ) -> int:
        with self._lock:
            rows = self._backlog.get(session, {})
            held = sorted(rows)
            sizes = {seq: len(write_body(self._entry(seq).notification)) for seq in held}
            total = sum(sizes.values())
            lost = 0
            for seq in held:
                old = before is not None and self._entry(seq).arrived < before
                if not old and (max_bytes is None or total <= max_bytes):
                    break
                total -= sizes[seq]
                del rows[seq]
                lost += 1
            known = self._sessions.get(session)
            if known is not None:
                self._sessions[session] = known._replace(lost=known.lost + lost)
            return lost

    def losses_told(self, session: str, count: int) -> None:
        with self._lock:
            known = self._sessions.get(session)
            if known is not None:
                self._sessions[session] = known._replace(lost=max(0, known.lost - count))

    # Spool

    def spooled(self, after: int = 0, limit: int = 1000) -> list[LogEntry]:
        with self._lock:
            return [
                self._entry(seq) for seq in sorted(s for s in self._spool if s > after)[:limit]
            ]

    # Care

    def check(self, progress: Progress = no_progress) -> list[Finding]:
        return []

    def info(self) -> dict[str, object]:
        return {
            "engine": "memory",
            "events": self.count(),
            "entries": len(self._log),
            "last_seq": self._last_seq,
            "inners": len(self._inners),
            "sessions": len(self._sessions),
            "spooled": len(self._spool),
            "marks": dict(self._marks),
        }

    def export(self, path: Path, progress: Progress = no_progress) -> int:
        with self._lock:
            return portable.write(self, path, self._marks, progress)

    def import_(self, path: Path, progress: Progress = no_progress) -> int:
        return portable.read(self, path, progress)

    def close(self) -> None:
        pass

    def _entry(self, seq: int) -> LogEntry:
        at = bisect_left(self._log, seq, key=lambda e: e.seq)
        if at == len(self._log) or self._log[at].seq != seq:
            raise StoreError(f"the log has no entry {seq}", store="memory:")
        return self._log[at]


def check_seqs(last: int, batch: Batch) -> None:
    """Raise ``StoreError`` unless every entry's seq is above all before it."""
    for entry in batch.entries:
        if entry.seq <= last:
            raise StoreError(f"seq {entry.seq} does not follow {last}: the log only grows")
        last = entry.seq


def _bytes_of(entries: list[LogEntry]) -> int:
    return sum(len(write_body(entry.notification)) for entry in entries)
