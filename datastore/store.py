"""The history, seen from the broker: one interface, what it promises, its records.

The truth is an append-only log of accepted publications. Everything else a store
keeps (merged events, decisions, backlogs) is derived from it or travels with it in
the same transaction. Laws, held by one suite for every engine (``datastore.testing``):

- ``append`` returns when the whole batch is on disk, or raises and nothing of it is;
- ``seq`` is given by the caller and only ever rises;
- every answer equals that of ``datastore.memory``, the reference.

One thread appends; any thread may read meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from datastore.query import Query, Window
from kbn.model.filters import Subscription
from kbn.model.notifications import Notification
from kbn.model.past import Box
from kbn.model.publications import Decision, LogEntry
from kbn.model.settled import Settled

#: The name of a mark that says when a broker exchanged what it knows; the newest number given
#: before is appended.
SWAP = "ontology_swap:"


class StoredEvent(NamedTuple):
    """An event as merged from everything the log says of it."""

    uid: str
    start: int | None
    end: int | None
    #: The seq of its first and of its last publication, and when those arrived.
    first_seq: int
    last_seq: int
    inserted: int
    updated: int
    notification: Notification

    @property
    def is_open(self) -> bool:
        return self.end is None


class BacklogRow(NamedTuple):
    """A delivery that a durable session has not confirmed: which entry, to which ids."""

    session: str
    seq: int
    receivers: tuple[str, ...]


class Waiting(NamedTuple):
    """One row of a backlog with the publication it delivers; ``entry.seq`` is its ``pos``."""

    receivers: tuple[str, ...]
    entry: LogEntry


class KnownInner(NamedTuple):
    """An inner filter whose decisions are complete up to the entry ``upto``."""

    inner: str
    #: Its subscription in the wire's spelling, so that a restart can go on with it.
    text: str
    upto: int


class StoredSubscription(NamedTuple):
    """One unit of a durable session, under the subscriber id it delivers to."""

    id: str
    subscription: Subscription
    history: bool = False
    since: int | None = None


class StoredSession(NamedTuple):
    """A durable session; ``confirmed`` is the last ``pos`` its client acknowledged."""

    name: str
    subscriptions: tuple[StoredSubscription, ...]
    confirmed: int = 0
    #: How many deliveries the bounds of the backlog dropped that it was not told of.
    lost: int = 0


@dataclass(slots=True)
class Batch:
    """What one transaction records, all or nothing.

    ``bodies`` are the canonical ``event{…}`` bytes of the entries, if the caller has
    them (None where it has not); a store that keeps text then need not encode again.
    """

    entries: Sequence[LogEntry] = ()
    bodies: Sequence[bytes | None] | None = None
    decisions: Sequence[Decision] = ()
    inners: Sequence[KnownInner] = ()
    #: Entries that must still go to the master; and those that went.
    spool: Sequence[int] = ()
    unspool: Sequence[int] = ()
    backlog: Sequence[BacklogRow] = ()
    confirms: Mapping[str, int] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retention:
    """What may go, whole events only: first those whose last publication arrived ``before``
    a time, then the oldest until ``count`` events are left, then until ``size`` bytes of log.

    Open events stay, and so do those that a backlog or the spool still needs.
    """

    before: int | None = None
    count: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do beyond the common promises."""

    engine: str
    #: Whether what was appended outlives the process.
    durable: bool
    #: Whether constraints on indexed names are decided by the engine.
    push_down: bool = False
    #: Whether it drains into an archive that other programs read.
    archive: bool = False


class Archiving(NamedTuple):
    """What a store that archives has done since it was opened."""

    entries: int
    #: Up to this number the archive is complete.
    upto: int
    #: Runs that failed, and why the last one did, if no other went well since.
    failures: int
    failure: str | None
    #: How often entries were asked of the archive.
    reads: int


@dataclass(frozen=True, slots=True)
class Finding:
    """Something ``check`` found. ``wrong`` tells a fault from a remark."""

    what: str
    detail: str
    wrong: bool = True


_OPEN = Window(only_open=True)
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """Nobody watches."""


Spare = Callable[[Sequence[str]], Set[str]]


def nobody(events: Sequence[str]) -> Set[str]:
    """All of them may go."""
    return frozenset()


class Store(ABC):
    """The interface every history store fulfils. Raises ``StoreError`` for the engine's faults."""

    capabilities: Capabilities

    # Writing

    @abstractmethod
    def append(self, batch: Batch) -> None:
        """Record a batch; durable when this returns."""

    @abstractmethod
    def retain(
        self, policy: Retention, progress: Progress = no_progress, spare: Spare = nobody
    ) -> int:
        """Delete whole events by the policy; how many went.

        Before some are deleted ``spare`` is asked which of them must stay.
        """

    # The log

    @abstractmethod
    def last_seq(self) -> int:
        """The seq of the newest entry ever appended; 0 before the first."""

    @abstractmethod
    def log(
        self, from_seq: int = 0, to_seq: int | None = None, *, batch: int = 1000
    ) -> Iterator[LogEntry]:
        """Entries with ``from_seq ≤ seq ≤ to_seq`` in order, read ``batch`` at a time."""

    @abstractmethod
    def first_seq_since(self, arrived: int) -> int | None:
        """The smallest seq of an entry that arrived then or later."""

    # Events

    @abstractmethod
    def entries_of(self, uids: Iterable[str]) -> dict[str, list[LogEntry]]:
        """All entries of those of the events that are known, each list in the order of seq."""

    def entries(self, uid: str) -> list[LogEntry]:
        """Everything the log says of one event, in order."""
        return self.entries_of((uid,)).get(uid, [])

    def settled_event(self, uid: str) -> Settled | None:
        """What is kept at hand of a settled event whose entries may be far away, if anything;
        an indexed look-up. None says nothing."""
        return None

    @abstractmethod
    def get_many(self, uids: Iterable[str]) -> dict[str, StoredEvent]:
        """Those of the events that are known, by id."""

    def get(self, uid: str) -> StoredEvent | None:
        """The merged event, or None."""
        return self.get_many((uid,)).get(uid)

    @abstractmethod
    def count(self) -> int:
        """How many events are stored."""

    @abstractmethod
    def events(self, query: Query) -> Iterator[StoredEvent]:
        """The merged events that answer the query, in its order."""

    def has_match(self, query: Query) -> bool:
        """Whether any event answers the query."""
        return next(self.events(query), None) is not None

    def open_events(self) -> Iterator[StoredEvent]:
        """Events that have not ended, by (start, first seq)."""
        return self.events(Query(window=_OPEN))

    # Decisions (these fulfil ``kbn.model.past.Past``)

    @abstractmethod
    def any_within(self, inner: str, box: Box, exclude: str | None) -> bool:
        """Whether an event with a standing, true decision of ``inner`` lies in the box."""

    @abstractmethod
    def decisions(self, inner: str, limit: int | None = None) -> list[Decision]:
        """The standing, true decisions, latest start first (the end's where there is none)."""

    def unfinished(self, inner: str) -> list[Decision]:
        """Those of the standing, true decisions whose event lacks its start or its end."""
        held = self.decisions(inner)
        return [decision for decision in held if decision.start is None or decision.end is None]

    @abstractmethod
    def inners(self) -> dict[str, KnownInner]:
        """The inner filters whose decisions are kept."""

    @abstractmethod
    def forget_inner(self, inner: str) -> None:
        """Drop an inner filter and its decisions."""

    # Marks: small numbers the broker remembers

    @abstractmethod
    def get_mark(self, name: str) -> int | None: ...

    @abstractmethod
    def set_mark(self, name: str, value: int) -> None: ...

    # Durable sessions

    @abstractmethod
    def save_session(self, session: StoredSession) -> None:
        """Write or replace a session's subscriptions; its backlog and marks stay."""

    @abstractmethod
    def sessions(self) -> list[StoredSession]: ...

    @abstractmethod
    def drop_session(self, name: str) -> None:
        """Forget the session and its backlog."""

    @abstractmethod
    def backlog(self, session: str, after: int = 0, limit: int = 1000) -> list[Waiting]:
        """Unconfirmed deliveries with a seq above ``after``, in order."""

    @abstractmethod
    def confirm(self, session: str, pos: int) -> None:
        """The client has everything up to ``pos``; the greatest one counts."""

    @abstractmethod
    def trim_backlog(
        self, session: str, *, before: int | None = None, max_bytes: int | None = None
    ) -> int:
        """Drop what arrived before a time, then the oldest beyond a size; how many were lost."""

    @abstractmethod
    def losses_told(self, session: str, count: int) -> None:
        """The client was told of so many losses: ``lost`` counts the rest."""

    # Spool towards the master

    @abstractmethod
    def spooled(self, after: int = 0, limit: int = 1000) -> list[LogEntry]:
        """Entries that have not gone to the master, in order."""

    def unspool(self, seqs: Sequence[int]) -> None:
        """These have gone."""
        self.append(Batch(unspool=seqs))

    # Care

    def work(self, limit: int = 10_000) -> bool:
        """Do some of what may be put off (projection, draining); whether more is left.

        Meant for idle moments of the writer; answers are exact without it.
        """
        return False

    def archiving(self) -> Archiving | None:
        """How far the archive is, for a store that has one; asks nobody."""
        return None

    @abstractmethod
    def check(self, progress: Progress = no_progress) -> list[Finding]:
        """Compare what was derived with the log; an empty list is a clean bill."""

    @abstractmethod
    def info(self) -> dict[str, object]:
        """Figures for people: engine, counts, sizes, marks."""

    @abstractmethod
    def export(self, path: Path, progress: Progress = no_progress) -> int:
        """Write everything to a file, also while the broker runs; how many entries."""

    @abstractmethod
    def import_(self, path: Path, progress: Progress = no_progress) -> int:
        """Read an export into this store, which must be empty; how many entries."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files, connections and the lock. May be called twice."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
