"""ONT: ontologies come and go while publications do.

    load, in parts; remove ─▶ ChangeOntology ─▶ (a worker) ─▶ OntologyBuilt
       ─▶ made ready: the index in slices, inner filters over the log, the master's filters
       ─▶ CommitOntology ─▶ OntologyKept ─▶ swapped, between two publications ─▶ HLO, ACK

Everything that takes time happens beside what is in use. One change at a time; a
change that fails on its way leaves everything as it was, and says so by ERR.
"""

from __future__ import annotations

import binascii
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from kbn.broker.core import Core
from kbn.broker.instructions import ChangeOntology, CommitOntology, Fill
from kbn.broker.knowing import Ontology
from kbn.broker.links import Link, Mode
from kbn.broker.remembering import Remembering
from kbn.broker.settings import ANYBODY
from kbn.broker.stimuli import Filled, OntologyBuilt, OntologyKept, OntologyRefused
from kbn.broker.subscribing import Subscribing
from kbn.errors import RefusedError
from kbn.knowledge.hierarchy import NO_TERMS
from kbn.model import Notification
from kbn.model.filters import needs_history, needs_ontology
from kbn.model.values import Bag, Value
from kbn.temporal.backfill import Backfill
from senp import Packet

#: The most bytes of one file, as the library reads files.
MOST = 64 * 2**20
#: ``Fill`` and ``Filled`` of this number belong to the change under way.
OWN = 0


class Upward(Protocol):
    """The way to the master, as far as what is known concerns it."""

    @property
    def settled(self) -> bool:
        """Whether the master has everything that was asked of it."""
        ...

    def stop_speaking(self) -> Iterator[None]:
        """Ask for semantic constraints widened from now on; in slices."""
        ...

    def speak_again(self) -> None:
        """What is known here has changed."""
        ...


@dataclass(slots=True)
class _Upload:
    """A file whose parts are coming in, in order."""

    parts: int
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class _Job:
    """A change under way, and whom to answer."""

    change: ChangeOntology
    link: Link
    seq: int | None
    ontology: Ontology | None = None
    backfill: Backfill | None = None
    preparing: bool = False
    #: The log is being read, or the disk written.
    filling: bool = False
    failure: str = ""
    #: When it was begun.
    began: int = 0


class Learning:
    """The room of ONT. ``relearned`` is called once the world has changed."""

    def __init__(
        self,
        core: Core,
        subscribing: Subscribing,
        memory: Remembering | None,
        uplink: Upward | None,
        relearned: Callable[[], None],
    ) -> None:
        self._core = core
        self._subscribing = subscribing
        self._memory = memory
        self._uplink = uplink
        self._relearned = relearned
        self._uploads: dict[int, _Upload] = {}
        #: The change under way first, then those that wait for it.
        self._jobs: deque[_Job] = deque()
        self._next = 0

    # --- requests ------------------------------------------------------------------------

    def ont(self, link: Link, packet: Packet) -> None:
        """Handle one ONT; raises ``RefusedError``."""
        if link.mode is not Mode.SESSION or not isinstance(packet.payload, Notification):
            raise RefusedError("syntax", "ONT is a request of sessions, with an event{…}")
        said = packet.payload
        what = said.get("what")
        if what == "list":
            if not (link.principal.admin or link.peer.local):
                raise RefusedError("forbidden", f"{link.principal.name} may not look at that")
            self._list(link, packet.seq)
            return
        settings = self._core.settings
        open_to_all = settings.anonymous is ANYBODY and not settings.credentials_required
        if not (link.principal.admin or (open_to_all and link.peer.local)):
            raise RefusedError("forbidden", f"{link.principal.name} may not change ontologies")
        if what == "remove":
            self._enqueue(link, packet.seq, ChangeOntology(OWN, "remove", _text(said, "name")))
        elif what == "load":
            self._load(link, packet.seq, said)
        else:
            raise RefusedError("unsupported", "ONT knows what = load, remove or list")

    def _list(self, link: Link, seq: int | None) -> None:
        core, known = self._core, self._core.known
        for row in (_summary(known), *({**one._asdict()} for one in known.loaded)):
            answer = Packet(
                method="INF", id=core.settings.identity, seq=seq, payload=Notification(row)
            )
            core.answer(link, answer)
        core.acknowledge(link, seq)

    def _load(self, link: Link, seq: int | None, said: Notification) -> None:
        part, parts = said.get("part", 1), said.get("parts", 1)
        if type(part) is not int or type(parts) is not int or not 1 <= part <= parts:
            raise RefusedError("syntax", "ONT load counts its parts from 1")
        name, text = _text(said, "name"), _text(said, "data")
        if part == 1:
            self._uploads[link.number] = _Upload(parts)
        upload = self._uploads.get(link.number)
        if upload is None or upload.parts != parts or len(upload.pieces) != part - 1:
            self._uploads.pop(link.number, None)
            raise RefusedError("syntax", f"part {part} of {parts} does not follow what came")
        try:
            piece = binascii.a2b_base64(text, strict_mode=True)
        except binascii.Error as error:
            del self._uploads[link.number]
            raise RefusedError("syntax", f"data is no base64: {error}") from None
        upload.pieces.append(piece)
        upload.size += len(piece)
        if upload.size > MOST:
            del self._uploads[link.number]
            raise RefusedError("limit", f"an ontology has at most {MOST:,} bytes")
        if part < parts:
            self._core.acknowledge(link, seq)
            return
        del self._uploads[link.number]
        source, form = said.get("source", name), said.get("format", "")
        if not isinstance(source, str) or not isinstance(form, str):
            raise RefusedError("syntax", "source and format are strings")
        skos = said.get("skos") is True
        data = b"".join(upload.pieces)
        self._enqueue(link, seq, ChangeOntology(OWN, "load", name, source, form, data, skos))

    def left(self, link: Link) -> None:
        """A link is gone, and with it what it had begun to send. A change goes on."""
        self._uploads.pop(link.number, None)

    # --- one change after the other ------------------------------------------------------

    def _enqueue(self, link: Link, seq: int | None, change: ChangeOntology) -> None:
        self._next += 1
        self._jobs.append(_Job(replace(change, number=self._next), link, seq))
        if len(self._jobs) == 1:
            self._begin()

    def _begin(self) -> None:
        self._jobs[0].began = self._core.now
        self._core.instruct(self._jobs[0].change)

    def _job(self, number: int) -> _Job | None:
        job = self._jobs[0] if self._jobs else None
        return job if job is not None and job.change.number == number else None

    def built(self, stimulus: OntologyBuilt) -> None:
        """The new hierarchy is there: make everything ready for it."""
        job = self._job(stimulus.number)
        if job is None:
            return
        job.ontology = stimulus.ontology
        self._subscribing.postpone(True)
        job.preparing = True
        self._core.spread(self._prepare(job, stimulus.ontology))

    def _prepare(self, job: _Job, ontology: Ontology) -> Iterator[None]:
        knowledge = ontology.hierarchy or NO_TERMS
        core, memory = self._core, self._memory
        if memory is not None:
            asked = dict.fromkeys(
                unit.asked
                for unit in core.table.units.values()
                if not unit.options.history
                and needs_history(unit.asked)
                and needs_ontology(unit.asked)
            )
            job.backfill = memory.engine.relearn(asked, knowledge)
            if job.backfill is not None:
                job.filling = True
                core.instruct(Fill(OWN, job.backfill, patient=True))
        yield from self._subscribing.widen_brokers()
        if self._uplink is not None:
            yield from self._uplink.stop_speaking()
        yield from core.table.prepare(knowledge)
        job.preparing = False
        self.proceed()

    def filled(self, stimulus: Filled) -> None:
        """The inner filters were decided anew, or could not be."""
        job = self._jobs[0] if self._jobs else None
        if job is None or job.backfill is None or self._memory is None:
            return
        job.filling = False
        self._memory.relearned(stimulus.decisions)
        if stimulus.failure is not None:
            job.failure = stimulus.failure
        self.proceed()

    def proceed(self) -> None:
        """Write it down once nothing is left to be made ready."""
        job = self._jobs[0] if self._jobs else None
        if job is None or job.ontology is None or job.preparing or job.filling:
            return
        if self._uplink is not None and not self._uplink.settled:
            return
        if job.failure:
            self._fail(job, "overloaded", job.failure)
            return
        job.filling = True  # nothing else is waited for but the disk
        self._core.instruct(CommitOntology(job.change.number))

    def kept(self, stimulus: OntologyKept) -> None:
        """It is on disk: from the next publication on it is what is known."""
        job = self._job(stimulus.number)
        if job is None or job.ontology is None:
            return
        core, ontology = self._core, job.ontology
        before = core.known
        core.know(ontology)
        if self._memory is not None:
            self._memory.swap(job.backfill)
        if self._uplink is not None:
            self._uplink.speak_again()
        self._relearned()
        after = "" if self._memory is None else f", after number {self._memory.accepted}"
        core.log(
            "info",
            "ontology",
            f"{job.change.what} {job.change.name} in {core.now - job.began} ms:"
            f" {_named(before)}, now {_named(ontology)}{after}",
        )
        if job.link.number in core.links:
            identity = core.settings.identity
            row = Notification(_summary(ontology))
            core.answer(job.link, Packet(method="INF", id=identity, seq=job.seq, payload=row))
            core.acknowledge(job.link, job.seq)
        self._end()

    def refused(self, stimulus: OntologyRefused) -> None:
        """It could not be built, or not be written down."""
        job = self._job(stimulus.number)
        if job is not None:
            self._fail(job, stimulus.code, stimulus.reason)

    def _fail(self, job: _Job, code: str, reason: str) -> None:
        if job.backfill is not None and self._memory is not None:
            self._memory.engine.abandon(job.backfill)
            self._memory.relearned(())
        if job.ontology is not None and self._uplink is not None:
            self._uplink.speak_again()
        why = reason.split("\n", 1)[0]
        said = f"{job.change.what} {job.change.name} refused: {code}, {why}"
        self._core.log("warning", "ontology", said)
        if job.link.number in self._core.links:
            self._core.refuse(job.link, job.seq, code, reason)
        self._end()

    def _end(self) -> None:
        self._jobs.popleft()
        self._subscribing.postpone(False)
        if self._jobs:
            self._begin()


def _text(said: Notification, name: str) -> str:
    found = said.get(name)
    if not isinstance(found, str) or not found:
        raise RefusedError("syntax", f"ONT needs {name}, a string")
    return found


def _named(known: Ontology) -> str:
    """Which files are known under which hash, for people."""
    if known.hierarchy is None:
        return "nothing"
    return f"{' '.join(one.name for one in known.loaded)} ({known.hash[:12]})"


def _summary(known: Ontology) -> dict[str, Value]:
    said: dict[str, Value] = {
        "hash": known.hash,
        "terms": 0 if known.hierarchy is None else len(known.hierarchy.iris),
        "triples": known.triples,
        "loaded": Bag(one.name for one in known.loaded),
        "warnings": Bag(warning[:500] for warning in known.warnings[:20]),
    }
    if known.broken:
        said["broken"] = known.broken[:500]
    return said
