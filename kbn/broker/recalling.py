"""Telling the past, then the present, with no gap and no double.

When a subscriber asks for the past, the newest arrival number given out divides
the two: everything up to it is read from the log off the loop, everything behind
it is held until that was told. If too much is held, it is let go and the log is
read on from the dividing number. Three ask for the past: ``SUB since=``, a durable
session that comes back (or has room again), and a child broker's history.
"""

from __future__ import annotations

from dataclasses import dataclass

from kbn.broker.core import Core
from kbn.broker.delivering import Delivering, Publication
from kbn.broker.instructions import Recall
from kbn.broker.links import Link, Mode, Target
from kbn.broker.remembering import Remembering, part_uid
from kbn.broker.stimuli import Peer, Recalled
from kbn.model.publications import LogEntry
from kbn.routing.table import Hold, Subscriber, Unit
from senp import DEFAULT_TTL, Packet, encode_event


@dataclass(slots=True)
class Job:
    """One reading of the past and whom it is for."""

    recall: Recall
    target: Target
    #: None for a session's backlog, which names its receivers row by row.
    subscriber: Subscriber[Target] | None = None


class Recalling:
    """The jobs under way, by number."""

    def __init__(self, core: Core, memory: Remembering, delivering: Delivering) -> None:
        self._core = core
        self._memory = memory
        self._delivering = delivering
        self._jobs: dict[int, Job] = {}
        self._next = 1
        #: The past came from nowhere else but here: what deliveries say as its origin.
        self._origin = Link(0, Peer("log"), core.settings.anonymous, core.now)

    # --- who asks ----------------------------------------------------------------------

    def since(self, unit: Unit[Target], since: int) -> None:
        """Tell a new unit of its past from an arrival time on."""
        subscriber = unit.subscriber
        recall = Recall(
            self._number(),
            self._memory.accepted,
            since=since,
            asked=unit.asked,
            history=unit.options.history,
        )
        subscriber.put_on_hold(self.new_hold())
        self._start(Job(recall, subscriber.target, subscriber))

    def resume(self, target: Target, after: int) -> None:
        """Tell a durable session what it has not confirmed."""
        target.spilling = True
        target.hold = self.new_hold()
        recall = Recall(self._number(), self._memory.accepted, after, session=target.name)
        self._start(Job(recall, target))

    def stop(self, target: Target) -> None:
        """Nobody is there to be told any more."""
        for number, job in list(self._jobs.items()):
            if job.target is target:
                del self._jobs[number]
                if job.subscriber is not None:
                    job.subscriber.put_on_hold(None)
        target.hold = None

    def wanted(self, number: int) -> int | None:
        """The link a job tells, for the shell to mind its pace; None when it is off."""
        job = self._jobs.get(number)
        if job is None or job.target.link is None:
            return None
        return job.target.link.number

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _start(self, job: Job) -> None:
        self._jobs[job.recall.number] = job
        self._core.instruct(job.recall)

    # --- what comes ----------------------------------------------------------------------

    def recalled(self, stimulus: Recalled) -> None:
        """Deliver a piece of the past; after the last one what was held."""
        job = self._jobs.get(stimulus.number)
        if job is None:
            return
        for entry, names in stimulus.items:
            self._tell(job, entry, names)
        if stimulus.done:
            self._finish(job)

    def _tell(self, job: Job, entry: LogEntry, names: tuple[str, ...]) -> None:
        publication = past_publication(entry, self._origin, history=job.recall.history)
        if job.subscriber is not None:
            receivers = [job.subscriber]
        else:
            known = job.target.subscribers
            receivers = [known[name] for name in names if name in known]
        if not receivers:
            return
        # As if nothing were held for whom this is; the shell minds the pace.
        target, subscriber = job.target, job.subscriber
        if subscriber is None:
            target.spilling = False
            self._delivering.deliver(publication, target, receivers)
            target.spilling = True
        else:
            hold = subscriber.hold
            subscriber.put_on_hold(None)
            self._delivering.deliver(publication, target, receivers)
            subscriber.put_on_hold(hold)

    def _finish(self, job: Job) -> None:
        del self._jobs[job.recall.number]
        subscriber, target = job.subscriber, job.target
        hold = target.hold if subscriber is None else subscriber.hold
        if hold is None:
            return
        if hold.overflowed:
            self._read_on(job, hold)
            return
        if subscriber is None:
            target.hold = None
            target.spilling = False
        else:
            subscriber.put_on_hold(None)
            if job.recall.history and target.link is not None:
                marker = Packet(
                    method="INF",
                    id=self._core.settings.identity,
                    to=subscriber.id,
                    history=True,
                )
                self._core.answer(target.link, marker)
        self.let_go(hold, target)

    def let_go(self, hold: Hold, target: Target) -> None:
        """Deliver what was held to whoever is still there."""
        for publication, receivers in hold.items:
            left = [r for r in receivers if r.units]
            if left:
                self._delivering.deliver(publication, target, left)

    def reads_for(self, subscriber: Subscriber[Target]) -> bool:
        """Whether the past of this subscriber is being read."""
        return any(job.subscriber is subscriber for job in self._jobs.values())

    def new_hold(self) -> Hold:
        """Holds everything accepted from now on."""
        return Hold(self._memory.accepted, self._core.settings.high_water)

    def _read_on(self, job: Job, hold: Hold) -> None:
        """Too much came meanwhile: the log has it."""
        if job.subscriber is None:
            self.resume(job.target, job.recall.upto)
            return
        recall = job.recall
        fresh = Recall(
            self._number(),
            self._memory.accepted,
            after=hold.after,
            since=recall.since,
            asked=recall.asked,
            history=recall.history,
        )
        job.subscriber.put_on_hold(self.new_hold())
        self._start(Job(fresh, job.target, job.subscriber))

    def drained(self, target: Target) -> None:
        """A durable session read everything that was queued: go on with the store's part."""
        there = target.link is not None and target.link.mode is not Mode.CLOSING
        if there and target.spilling and target.hold is None and not target.suspended:
            self.resume(target, target.told)


def past_publication(entry: LogEntry, origin: Link, *, history: bool = False) -> Publication:
    """A log entry as a publication on its way out, the same as it was when it came."""
    return Publication(
        entry.notification,
        encode_event(entry.notification),
        DEFAULT_TTL - 1,
        part_uid(entry.uid, entry.part),
        entry.at,
        None,
        origin,
        from_master=False,
        history=history,
        seq=entry.seq,
    )
