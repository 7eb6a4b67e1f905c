"""What a broker with a history keeps of each publication, and in which order.

Every accepted publication gets the next arrival number, is decided upon by the
inner filters of the temporal memory, and goes into the batch that leaves with
the next ``Record``. The memory is ahead of the disk; when a write fails, what it
learned is taken back, newest first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from datastore.store import BacklogRow, Batch, KnownInner, StoredSession
from kbn.broker.core import Core
from kbn.broker.delivering import Publication
from kbn.broker.instructions import Forget, Record
from kbn.broker.knowing import Ontology
from kbn.matching.world import World
from kbn.model.filters import Subscription
from kbn.model.publications import Decision, LogEntry, Part
from kbn.temporal.backfill import Backfill
from kbn.temporal.engine import Admitted, Duplicate, TemporalEngine
from senp import MAX_ID, encode_subscription

#: An inner filter that is decided with every publication: complete, however long the log.
LIVE = 2**62
#: The store's mark of the ontology under which stored decisions were made.
ONTOLOGY = "ontology"


@dataclass(frozen=True, slots=True)
class Kept:
    """What earlier runs left behind, and the memory over it."""

    engine: TemporalEngine
    #: Ids of the newest publications, so that a publisher's second try is known.
    uids: frozenset[str] = frozenset()
    sessions: tuple[StoredSession, ...] = ()
    #: Publications the master has not acknowledged, oldest first.
    spooled: tuple[LogEntry, ...] = ()
    #: Subscriptions whose past was read again, and that are held until sessions are restored.
    reread: tuple[Subscription, ...] = ()


class Remembering:
    """The log's next entries and the temporal memory over it."""

    def __init__(self, core: Core, kept: Kept) -> None:
        self._core = core
        self.engine = kept.engine
        self.kept = kept
        #: The newest arrival number given out, and the newest on disk.
        self.accepted = kept.engine.seq
        self.committed = kept.engine.seq
        #: Rises with every failed write; see ``Unrecorded``.
        self.epoch = 0
        self._entries: list[LogEntry] = []
        self._bodies: list[bytes | None] = []
        self._decisions: list[list[Decision]] = []
        self._spool: list[int] = []
        self._unspool: list[int] = []
        self._backlog: list[BacklogRow] = []
        self._confirms: dict[str, int] = {}
        #: Decisions and names of filters that were filled from the log.
        self._learned: list[Decision] = []
        self._inners: list[KnownInner] = []
        self._adopted: list[tuple[int, Backfill]] = []
        #: What inner filters decide of the log under the knowledge to come.
        self._anew: tuple[Decision, ...] = ()
        self._marks: dict[str, int] = {}

    def admit(self, publication: Publication) -> Admitted | None:
        """Classify and check; None for a duplicate. Raises ``RefusedError``, changes nothing."""
        # Plain ones are known by the ids seen lately, not by a look-up each.
        admitted = self.engine.admit(
            publication.notification, publication.uid, publication.at, self._core.now, fresh=True
        )
        return None if isinstance(admitted, Duplicate) else admitted

    def world(self, admitted: Admitted) -> World:
        """What a publication arriving now is matched against."""
        return World(self._core.world.knowledge, self.engine.history(admitted))

    def accept(
        self,
        publication: Publication,
        admitted: Admitted,
        *,
        forward: bool,
        kept: Iterable[tuple[str, tuple[str, ...]]] = (),
    ) -> int:
        """Give it its number and put it into the batch; ``kept`` are durable receivers."""
        self.accepted += 1
        seq = self.accepted
        entry, decisions = self.engine.apply(seq, admitted)
        self._entries.append(entry)
        self._bodies.append(publication.body)
        self._decisions.append(decisions)
        if forward:
            self._spool.append(seq)
        for session, receivers in kept:
            self._backlog.append(BacklogRow(session, seq, receivers))
        return seq

    def take_back(self, seq: int) -> None:
        """The newest publication was refused after all, or could not be written."""
        self.engine.undo(seq)
        if self._entries and self._entries[-1].seq == seq:
            self._entries.pop()
            self._bodies.pop()
            self._decisions.pop()
            self._spool = [s for s in self._spool if s != seq]
            self._backlog = [row for row in self._backlog if row.seq != seq]

    def acquire(self, asked: Subscription) -> Backfill | None:
        """Have the inner filters of a subscription answered; see ``TemporalEngine.acquire``."""
        before = set(self.engine.memory.nodes)
        backfill = self.engine.acquire(asked)
        if backfill is None:
            nodes = self.engine.memory.nodes
            self._inners.extend(
                known_inner(name, nodes[name].inner) for name in nodes if name not in before
            )
        return backfill

    def adopt(self, backfill: Backfill, made: Iterable[Decision]) -> None:
        """A back-fill has read the log: its filters are live, its decisions go to disk."""
        rest = self.engine.adopt(backfill)
        self._learned.extend(made)
        self._learned.extend(rest)
        self._inners.extend(
            known_inner(inner.name, inner.subscription) for inner in backfill.missing
        )
        self._adopted.append((self.accepted, backfill))

    def relearned(self, made: Iterable[Decision]) -> None:
        """The log was decided anew; to be kept when the knowledge changes."""
        self._anew = tuple(made)

    def swap(self, backfill: Backfill | None) -> None:
        """What is known has changed: the decisions made under it replace the old ones."""
        earlier = self.take_record()
        if earlier is not None:
            self._core.instruct(earlier)
        known = self._core.known
        rest = self.engine.swap(self._core.world.knowledge, backfill)
        if backfill is not None:
            self._core.instruct(Forget(inners=tuple(inner.name for inner in backfill.missing)))
            live = [inner for inner in backfill.missing if inner.name in self.engine.memory.nodes]
            names = {inner.name for inner in live}
            self._learned.extend(made for made in (*self._anew, *rest) if made.inner in names)
            self._inners.extend(known_inner(inner.name, inner.subscription) for inner in live)
            self._adopted.append((self.accepted, backfill))
        self._anew = ()
        self._marks = {ONTOLOGY: mark_of(known)}

    def release(self, asked: Subscription) -> None:
        """One user less; inner filters that nobody asks are forgotten, on disk too."""
        before = set(self.engine.memory.nodes)
        self.engine.release(asked)
        gone = before - set(self.engine.memory.nodes)
        if gone:
            self._core.instruct(Forget(inners=tuple(sorted(gone))))

    def unspool(self, seq: int) -> None:
        """The master has it."""
        self._unspool.append(seq)

    def confirm(self, session: str, pos: int) -> None:
        """A durable session has everything up to ``pos``."""
        self._confirms[session] = max(pos, self._confirms.get(session, 0))

    def recorded(self, upto: int) -> None:
        self.committed = max(upto, self.committed)
        self.engine.committed(upto)
        while self._adopted and self._adopted[0][0] <= upto and not self._learned:
            self.engine.stored(self._adopted.pop(0)[1])

    def take_record(self) -> Record | None:
        """The batch to be written, if there is anything in it."""
        waiting = self._entries or self._unspool or self._confirms or self._inners
        if not waiting and not self._learned and not self._marks:
            return None
        batch = Batch(
            entries=self._entries,
            bodies=self._bodies,
            decisions=[
                *self._learned,
                *(decision for made in self._decisions for decision in made),
            ],
            inners=self._inners,
            spool=self._spool,
            unspool=self._unspool,
            backlog=self._backlog,
            confirms=self._confirms,
            marks=self._marks,
        )
        self._entries, self._bodies, self._decisions = [], [], []
        self._spool, self._unspool, self._backlog = [], [], []
        self._confirms, self._marks = {}, {}
        self._learned, self._inners = [], []
        return Record(batch, self.accepted, self.epoch)


def mark_of(known: Ontology) -> int:
    """The name of what is known as a number, for the store to remember."""
    return int.from_bytes(hashlib.sha256(repr(known.name).encode()).digest()[:7])


def known_inner(name: str, inner: Subscription) -> KnownInner:
    return KnownInner(name, encode_subscription(inner).decode("ascii"), LIVE)


def part_uid(event: str, part: Part) -> str:
    """What a publication is known by: the event's id, with the part it tells if there are several.

    The same at every broker, live and from the log, so that whoever hears it twice can tell.
    """
    if part is Part.PLAIN:
        return event
    uid = f"{event}#{part.value}"
    if len(uid.encode()) <= MAX_ID:
        return uid
    return f"{sha256(event.encode()).hexdigest()}#{part.value}"
