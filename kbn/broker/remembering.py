"""What a broker with a history keeps of each publication, and in which order.

Every accepted publication gets the next arrival number, is decided upon by the
inner filters of the temporal memory, and goes into the batch that leaves with
the next ``Record``. The memory is ahead of the disk; when a write fails, what it
learned is taken back, newest first; what a failed batch carried beside its
entries (confirmations, what went to the master, decisions about entries that are
on disk) is written again with a later one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from datastore.store import SWAP, BacklogRow, Batch, KnownInner, StoredSession
from kbn.broker.core import Core
from kbn.broker.delivering import Publication
from kbn.broker.instructions import Forget, Record
from kbn.broker.knowing import Ontology
from kbn.broker.statistics import TimedHistory
from kbn.matching.world import History, World
from kbn.model.filters import Subscription
from kbn.model.publications import Decision, LogEntry, Part
from kbn.temporal.backfill import Backfill
from kbn.temporal.engine import Admitted, Duplicate, TemporalEngine
from senp import MAX_ID, encode_subscription

#: The mark that says when the master was last heard.
HEARD = "master_heard"
#: Milliseconds after which the ids seen lately may have forgotten a publication.
LATE = 5_000
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
    #: When the master was last heard, in milliseconds.
    heard: int | None = None
    #: Subscriptions of these sessions that ask the history: acquired until the sessions
    #: are restored, so that nothing of what they need is missing.
    acquired: tuple[Subscription, ...] = ()


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
        #: Back-fills whose decisions are not handed over, and by number of their Record.
        self._adopted: list[Backfill] = []
        self._settling: deque[tuple[int, Backfill]] = deque()
        #: What was handed over and not answered, oldest first.
        self._sent: deque[Record] = deque()
        self._number = 0
        #: Whether the master is connected: what it says is coming in.
        self.hears = False
        #: After a failure only new publications or the passing of time try again.
        self._resting = False
        #: What inner filters decide of the log under the knowledge to come.
        self._anew: tuple[Decision, ...] = ()
        self._marks: dict[str, int] = {}

    def admit(self, publication: Publication) -> Admitted | None:
        """Classify and check; None for a duplicate. Raises ``RefusedError``, changes nothing."""
        # Plain ones are known by the ids seen lately, not by a look-up each; unless they
        # come from afar in time: a master's past, or what waited in a child's spool.
        late = publication.history or publication.at < self._core.now - LATE
        admitted = self.engine.admit(
            publication.notification,
            publication.uid,
            publication.at,
            self._core.now,
            fresh=not late,
        )
        return None if isinstance(admitted, Duplicate) else admitted

    def world(self, admitted: Admitted) -> World:
        """What a publication arriving now is matched against."""
        history: History = self.engine.history(admitted)
        statistics = self._core.statistics
        if statistics.stopwatch is not None:
            history = TimedHistory(history, statistics, statistics.stopwatch)
        return World(self._core.world.knowledge, history)

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
        self._adopted.append(backfill)

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
            self._adopted.append(backfill)
        self._anew = ()
        self._marks |= {ONTOLOGY: mark_of(known), f"{SWAP}{self.accepted}": self._core.now}

    def release(self, asked: Subscription) -> None:
        """One user less; inner filters that nobody asks are forgotten, on disk too."""
        before = set(self.engine.memory.nodes)
        self.engine.release(asked)
        self._forget(before)

    def prune(self) -> None:
        """Forget inner filters of an earlier run that nobody asked for again."""
        before = set(self.engine.memory.nodes)
        self.engine.prune()
        self._forget(before)

    def _forget(self, before: set[str]) -> None:
        gone = before - set(self.engine.memory.nodes)
        if gone:
            self._inners = [known for known in self._inners if known.inner not in gone]
            self._learned = [made for made in self._learned if made.inner not in gone]
            self.flush()
            self._core.instruct(Forget(inners=tuple(sorted(gone))))

    def forget_session(self, name: str) -> None:
        """A durable session said goodbye for good."""
        self._confirms.pop(name, None)
        self.flush()
        self._core.instruct(Forget(sessions=(name,)))

    def flush(self) -> None:
        """Hand over what there is before something else is asked of the store."""
        record = self.take_record()
        if record is not None:
            self._core.instruct(record)

    def unspool(self, seq: int) -> None:
        """The master has it."""
        self._unspool.append(seq)

    def confirm(self, session: str, pos: int) -> None:
        """A durable session has everything up to ``pos``."""
        self._confirms[session] = max(pos, self._confirms.get(session, 0))

    def recorded(self, upto: int, number: int) -> None:
        """Records up to a number are on disk."""
        self.committed = max(upto, self.committed)
        self.engine.committed(upto)
        while self._sent and self._sent[0].number <= number:
            self._sent.popleft()
        while self._settling and self._settling[0][0] <= number:
            self.engine.stored(self._settling.popleft()[1])

    def unrecorded(self) -> None:
        """The store refused all that was handed over, and its entries were taken back."""
        self.epoch += 1
        self._resting = True
        failed, self._sent = self._sent, deque()
        batches = [record.batch for record in failed]
        durable, nodes = self.engine.durable, self.engine.memory.nodes
        # Decisions about entries that were taken back never were; those about entries
        # on disk come from back-fills and still hold. Forgotten filters stay forgotten.
        made = [decision for batch in batches for decision in batch.decisions] + self._learned
        self._learned = [d for d in made if d.seq <= durable and d.inner in nodes]
        known = [inner for batch in batches for inner in batch.inners] + self._inners
        self._inners = [inner for inner in known if inner.inner in nodes]
        self._unspool[:0] = [seq for batch in batches for seq in batch.unspool]
        for batch in batches:
            for name, value in batch.marks.items():
                if name != HEARD:
                    self._marks.setdefault(name, value)
            for session, pos in batch.confirms.items():
                if session in self._core.durables:
                    self.confirm(session, pos)
        self._adopted[:0] = [backfill for _, backfill in self._settling]
        self._settling.clear()

    def rested(self) -> None:
        """Time has passed: what a failed batch carried may be tried again."""
        self._resting = False

    def take_record(self) -> Record | None:
        """The batch to be written, if there is anything in it."""
        waiting = self._unspool or self._confirms or self._inners or self._learned or self._marks
        if not self._entries and (self._resting or not waiting):
            return None
        self._resting = False
        self._number += 1
        self._settling.extend((self._number, backfill) for backfill in self._adopted)
        self._adopted = []
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
            marks={**self._marks, HEARD: self._core.now} if self.hears else self._marks,
        )
        self._entries, self._bodies, self._decisions = [], [], []
        self._spool, self._unspool, self._backlog = [], [], []
        self._confirms, self._marks = {}, {}
        self._learned, self._inners = [], []
        record = Record(batch, self.accepted, self.epoch, self._number)
        self._sent.append(record)
        return record


def mark_of(known: Ontology) -> int:
    """The name of what is known as a number, for the store to remember."""
    return int.from_bytes(sha256(repr(known.name).encode()).digest()[:7])


def known_inner(name: str, inner: Subscription) -> KnownInner:
    """What is written down of an inner filter that every publication is decided by."""
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
