"""What a broker with a history keeps of each publication, and in which order.

Every accepted publication gets the next arrival number, is decided upon by the
inner filters of the temporal memory, and goes into the batch that leaves with
the next ``Record``. The memory is ahead of the disk; when a write fails, what it
learned is taken back, newest first.
"""

from __future__ import annotations

from collections.abc import Iterable

from datastore.store import BacklogRow, Batch
from kbn.broker.core import Core
from kbn.broker.delivering import Publication
from kbn.broker.instructions import Record
from kbn.matching.world import World
from kbn.model.publications import Decision, LogEntry
from kbn.temporal.engine import Admitted, TemporalEngine


class Remembering:
    """The log's next entries and the temporal memory over it."""

    def __init__(self, core: Core, engine: TemporalEngine, last_seq: int) -> None:
        self._core = core
        self.engine = engine
        #: The newest arrival number given out, and the newest on disk.
        self.accepted = last_seq
        self.committed = last_seq
        #: Rises with every failed write; see ``Unrecorded``.
        self.epoch = 0
        self._entries: list[LogEntry] = []
        self._bodies: list[bytes | None] = []
        self._decisions: list[list[Decision]] = []
        self._spool: list[int] = []
        self._unspool: list[int] = []
        self._backlog: list[BacklogRow] = []
        self._confirms: dict[str, int] = {}

    def admit(self, publication: Publication) -> Admitted | None:
        """Classify and check; None for a duplicate. Raises ``RefusedError``, changes nothing."""
        return self.engine.admit(
            publication.notification, publication.uid, publication.at, self._core.now
        )

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

    def unspool(self, seq: int) -> None:
        """The master has it."""
        self._unspool.append(seq)

    def confirm(self, session: str, pos: int) -> None:
        """A durable session has everything up to ``pos``."""
        self._confirms[session] = max(pos, self._confirms.get(session, 0))

    def recorded(self, upto: int) -> None:
        self.committed = max(upto, self.committed)
        self.engine.committed(upto)

    def take_record(self) -> Record | None:
        """The batch to be written, if there is anything in it."""
        if not (self._entries or self._unspool or self._confirms):
            return None
        batch = Batch(
            entries=self._entries,
            bodies=self._bodies,
            decisions=[decision for made in self._decisions for decision in made],
            spool=self._spool,
            unspool=self._unspool,
            backlog=self._backlog,
            confirms=self._confirms,
        )
        self._entries, self._bodies, self._decisions = [], [], []
        self._spool, self._unspool, self._backlog = [], [], []
        self._confirms = {}
        return Record(batch, self.accepted, self.epoch)
