"""Telling the past, then the present, with no gap and no double.

When a subscriber asks for the past, the newest arrival number given out divides
the two: everything up to it is read from the log off the loop, everything behind
it is held until that was told. If too much is held, it is let go and the log is
read on from the dividing number. Three ask for the past: ``SUB since=``, a durable
session that comes back (or has room again), and a child broker's history.

A durable session has one reading at a time. What is owed to it lies in its
backlog, behind the number it was ``told``; the past that one of its units asked
for is read first and moves neither that number nor what the client can confirm.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from kbn.broker.core import Core
from kbn.broker.delivering import Delivering, Publication
from kbn.broker.instructions import Recall
from kbn.broker.links import Link, Mode, Owed, Target
from kbn.broker.remembering import Remembering, part_uid
from kbn.broker.stimuli import Peer, Recalled
from kbn.model.filters import Subscription
from kbn.model.publications import LogEntry
from kbn.routing.table import Hold, Subscriber, Unit
from senp import DEFAULT_TTL, Packet, encode_event


@dataclass(slots=True, eq=False)
class Job:
    """One reading of the past and whom it is for."""

    recall: Recall
    target: Target
    #: None for a session's backlog, which names its receivers row by row.
    subscriber: Subscriber[Target] | None = None
    #: What a durable session is owed, if this is it.
    owed: Owed | None = None
    #: The newest entry that was told.
    last: int = 0


class Recalling:
    """The jobs under way, by number."""

    def __init__(self, core: Core, memory: Remembering, delivering: Delivering) -> None:
        self._core = core
        self._memory = memory
        self._delivering = delivering
        self._jobs: dict[int, Job] = {}
        #: Jobs whose store could not be read; tried again when time has passed.
        self._failed: list[Job] = []
        #: Jobs of child brokers that wait for an earlier one: a publication must come as
        #: news before it comes as history, or it would be news to nobody.
        self._waiting: dict[Target, deque[Job]] = {}
        self._next = 1
        #: The past came from nowhere else but here: what deliveries say as its origin.
        self._origin = Link(0, Peer("log"), core.settings.anonymous, core.now)

    # --- who asks ----------------------------------------------------------------------

    def since(self, unit: Unit[Target], since: int, after: int = 0) -> None:
        """Tell a new unit of its past from an arrival time on, and behind a position.

        A position that was never given out is of another log, and says nothing here.
        """
        subscriber = unit.subscriber
        if subscriber.target.durable:
            owed = Owed(since, self._memory.accepted)
            subscriber.target.past[subscriber.id, unit.asked] = owed
            return
        recall = Recall(
            self._number(),
            self._memory.accepted,
            after=after if after <= self._memory.accepted else 0,
            since=since,
            asked=unit.asked,
            history=unit.options.history,
        )
        if subscriber.hold is None:
            subscriber.put_on_hold(self._new_hold())
        self._start(Job(recall, subscriber.target, subscriber))

    def go_on(self, target: Target) -> None:
        """Tell a durable session what it is owed, unless it cannot be told now."""
        there = target.link is not None and target.link.mode is not Mode.CLOSING
        if not there or target.suspended or target.saving or target.job:
            return
        target.spilling = True
        for (name, asked), owed in list(target.past.items()):
            subscriber = target.subscribers.get(name)
            if subscriber is None or all(unit.asked != asked for unit in subscriber.units):
                del target.past[name, asked]
            elif not owed.told:
                target.floor = max(target.floor, owed.upto)
                target.job = self._number()
                recall = Recall(target.job, owed.upto, since=owed.since, asked=asked)
                self._start(Job(recall, target, subscriber, owed))
                return
        target.job = self._number()
        target.hold = self._new_hold()
        recall = Recall(target.job, self._memory.accepted, target.told, session=target.name)
        self._start(Job(recall, target))

    def stop(self, target: Target) -> None:
        """Nobody is there to be told any more."""
        self._failed = [job for job in self._failed if job.target is not target]
        for job in list(self._jobs.values()):
            if job.target is target:
                self._drop(job)
        target.job = 0
        target.hold = None
        for owed in target.past.values():
            owed.told = False

    def _over(self, job: Job) -> None:
        """A job ended: the next of a child broker may begin."""
        del self._jobs[job.recall.number]
        waiting = self._waiting.get(job.target)
        if waiting is None or job not in waiting:
            return
        first = waiting[0] is job
        waiting.remove(job)
        if not waiting:
            del self._waiting[job.target]
        elif first:
            self._start(waiting[0])

    def _drop(self, job: Job) -> None:
        self._over(job)
        if job.subscriber is not None and not job.target.durable:
            job.subscriber.put_on_hold(None)

    def room(self, number: int) -> bool | None:
        """Whether a job may hand over more now; None when nobody wants it any more."""
        job = self._jobs.get(number)
        if job is None:
            return None
        if job.subscriber is not None and not job.subscriber.units:
            self._left(job)
            return None
        outbox = job.target.outbox
        return outbox.size - outbox.answers <= outbox.high_water // 4

    def _left(self, job: Job) -> None:
        """The subscriber of a job is gone; what is owed to others goes on."""
        self._drop(job)
        if job.target.durable:
            job.target.job = 0
            self.go_on(job.target)

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _start(self, job: Job) -> None:
        self._jobs[job.recall.number] = job
        if job.target.broker:
            before = self._waiting.setdefault(job.target, deque())
            if job not in before:
                before.append(job)
            if before[0] is not job:
                return
        # What is to be read must be handed over before.
        self._memory.flush()
        self._core.instruct(job.recall)

    # --- what comes ----------------------------------------------------------------------

    def recalled(self, stimulus: Recalled) -> None:
        """Deliver a piece of the past; after the last one what was held."""
        job = self._jobs.get(stimulus.number)
        if job is None:
            return
        if job.subscriber is not None and not job.subscriber.units:
            self._left(job)
            return
        for entry, names in stimulus.items:
            self._tell(job, entry, names)
            job.last = entry.seq
        if stimulus.failed:
            self._failed.append(job)
        elif stimulus.done:
            self._finish(job)

    def retry(self) -> None:
        """Time has passed: read on where the store could not be read."""
        failed, self._failed = self._failed, []
        for job in failed:
            recall = job.recall
            if self._jobs.get(recall.number) is job:
                job.recall = Recall(
                    recall.number,
                    recall.upto,
                    max(recall.after, job.last),
                    recall.since,
                    recall.asked,
                    recall.history,
                    recall.session,
                )
                self._start(job)

    def _tell(self, job: Job, entry: LogEntry, names: tuple[str, ...]) -> None:
        publication = past_publication(entry, self._origin, history=job.recall.history)
        target, subscriber = job.target, job.subscriber
        if subscriber is not None:
            receivers = [subscriber]
        else:
            known = target.subscribers
            named = [known[name] for name in names if name in known]
            receivers = [one for one in named if one.after < entry.seq]
        if not receivers:
            return
        # As if nothing were held for whom this is; the shell minds the pace.
        if target.durable:
            told, target.spilling = target.told, False
            self._delivering.deliver(publication, target, receivers)
            target.spilling = True
            if subscriber is not None:
                target.told = told
        else:
            assert subscriber is not None
            hold = subscriber.hold
            subscriber.put_on_hold(None)
            self._delivering.deliver(publication, target, receivers)
            subscriber.put_on_hold(hold)

    def _finish(self, job: Job) -> None:
        if job.target.durable:
            self._over(job)
            self._finish_session(job)
            return
        subscriber, target = job.subscriber, job.target
        assert subscriber is not None
        hold = subscriber.hold
        alone = not any(
            other.subscriber is subscriber and other is not job for other in self._jobs.values()
        )
        if hold is not None and hold.overflowed and alone:
            self._read_on(job, subscriber, hold)
            return
        self._over(job)
        if hold is None or not alone:
            return
        subscriber.put_on_hold(None)
        if job.recall.history and target.link is not None:
            marker = Packet(
                method="INF", id=self._core.settings.identity, to=subscriber.id, history=True
            )
            self._core.answer(target.link, marker)
        self._let_go(hold, target)

    def _finish_session(self, job: Job) -> None:
        target = job.target
        target.job = 0
        hold, target.hold = target.hold, None
        if job.owed is not None:
            job.owed.told = True
            self.go_on(target)
            return
        target.told = max(target.told, job.recall.upto)
        more = hold is None or hold.overflowed or any(not o.told for o in target.past.values())
        if target.saving or more:
            self.go_on(target)
        else:
            assert hold is not None
            target.spilling = False
            self._let_go(hold, target)

    def _let_go(self, hold: Hold, target: Target) -> None:
        """Deliver what was held to whoever is still there."""
        for publication, receivers in hold.items:
            left = [r for r in receivers if r.units]
            if left:
                self._delivering.deliver(publication, target, left)

    def reads_for(self, subscriber: Subscriber[Target]) -> bool:
        """Whether the past of this subscriber is being read."""
        return any(job.subscriber is subscriber for job in self._jobs.values())

    def _new_hold(self) -> Hold:
        """Holds everything accepted from now on, as long as an outbox has room for it."""
        return Hold(self._memory.accepted, self._core.settings.high_water // 2)

    def _read_on(self, job: Job, subscriber: Subscriber[Target], hold: Hold) -> None:
        """Too much came meanwhile, for whichever unit: the log has it."""
        recall = job.recall
        units = [unit for unit in subscriber.units if unit.options.history == recall.history]
        del self._jobs[recall.number]
        job.recall = Recall(
            self._number(),
            self._memory.accepted,
            after=hold.after,
            asked=Subscription([one for unit in units for one in unit.asked]),
            history=recall.history,
        )
        subscriber.put_on_hold(self._new_hold())
        self._start(job)

    def drained(self, target: Target) -> None:
        """A durable session read everything that was queued: go on with the store's part."""
        if target.durable:
            self.go_on(target)


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
