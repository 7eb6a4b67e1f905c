"""The way of a publication: admit, match, record, forward, deliver, acknowledge.

    PUB ─ admit ─ match ─▶ Record ─▶ (the store) ─▶ Recorded ─▶ forward, deliver, acknowledge

Without a store the middle is skipped. Each publication ends in exactly one of
refused, duplicate, expired, unmatched and matched. Whoever is told was matched
when the publication was accepted: the history it was matched against is
everything accepted before it, whether committed yet or not. Only the subscriber
whose id equals the packet's is skipped, and a link whose peer is a broker hears
nothing it said.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import NamedTuple, Protocol

from kbn.broker.core import Core
from kbn.broker.delivering import Delivering, Publication, Receivers
from kbn.broker.links import Link, Mode, Target
from kbn.broker.remembering import Remembering, part_uid
from kbn.errors import KbnError, RefusedError
from kbn.matching.naive import matches
from kbn.matching.world import World
from kbn.model.notifications import Notification
from kbn.model.publications import Part
from kbn.model.time import PUB_ID, PUB_TYPE
from kbn.model.values import Bag
from kbn.routing.table import Subscriber
from kbn.temporal.engine import Admitted
from senp import MAX_ID, Packet, encode_event

#: What one name of KBN_PUB_TYPE from a Siena client stands for: it cannot write bags.
_LEGACY_TYPES = {
    "START": Bag(["START"]),
    "END": Bag(["END"]),
    "INSTANT": Bag(["START", "END", "INSTANT"]),
}


class Fate(Enum):
    """Why an admissible publication goes no further."""

    DUPLICATE = "duplicate"
    EXPIRED = "expired"


class Staged(NamedTuple):
    """A publication that was matched, and whom it matched."""

    publication: Publication
    receivers: Receivers
    #: Child brokers that remember its event, and what they must be told first.
    followers: tuple[Follower, ...] = ()


class Follower(NamedTuple):
    """A target that keeps the history of an event for its own subscribers."""

    target: Target
    receivers: list[Subscriber[Target]]
    #: The event's other publication, which did not concern it until now.
    earlier: Notification | None
    part: Part = Part.START


class Upward(Protocol):
    """The master link, as far as a publication is concerned."""

    identity: str | None

    def publish(self, publication: Publication) -> None: ...


class Publishing:
    """Takes PUB packets; ``uplink`` is None at the root, ``memory`` without a store."""

    def __init__(
        self,
        core: Core,
        delivering: Delivering,
        uplink: Upward | None,
        memory: Remembering | None = None,
    ) -> None:
        self._core = core
        self._uplink = uplink
        self._memory = memory
        self._delivering = delivering
        self._seen: set[str] = set() if memory is None else set(memory.kept.uids)
        self._seen_before: set[str] = set()
        #: Accepted and not yet on disk, oldest first.
        self._pending: deque[Staged] = deque()
        self.pending_bytes = 0
        #: (the newest publication it must wait for, whom to answer, its request).
        self._answers: deque[tuple[int, Link, int]] = deque()
        #: Acknowledgements withheld while a blocking subscriber is full.
        self._withheld: list[tuple[Link, int]] = []

    # --- the way in --------------------------------------------------------------------

    def publish(self, link: Link, packet: Packet, body: bytes | None) -> None:
        """Handle one PUB, single or batch; raises ``KbnError`` when it is refused."""
        accounts = self._core.accounts
        events = packet.payload
        if isinstance(events, Notification):
            events = (events,)
        elif isinstance(events, tuple):
            body = None
        else:
            accounts.received += 1
            accounts.refused += 1
            raise RefusedError("syntax", "PUB needs event{…} or events{…}")
        accounts.received += len(events)
        staged: list[Staged] = []
        expired = 0
        try:
            for number, event in enumerate(events):
                admitted = self._admit(link, packet, event, body, number)
                step = self._stage(admitted) if isinstance(admitted, Publication) else admitted
                if isinstance(step, Staged):
                    staged.append(step)
                else:
                    expired += step is Fate.EXPIRED
        except KbnError:
            # All or none: what was admitted before the bad one leaves no trace.
            accounts.refused += len(events)
            self._take_back(staged)
            raise
        accounts.expired += expired
        accounts.duplicate += len(events) - len(staged) - expired
        if self._memory is None:
            for step in staged:
                self._settle(step)
        else:
            for step in staged:
                self._pending.append(step)
                self.pending_bytes += len(step.publication.body)
            accounts.pending += len(staged)
        self._acknowledge(link, packet.seq)

    def _admit(
        self, link: Link, packet: Packet, event: Notification, body: bytes | None, number: int
    ) -> Publication | Fate:
        """Check one event against rights, sizes, ids seen and its time to live."""
        core = self._core
        principal = link.principal
        if not principal.may_publish or (
            principal.publish is not None and not matches(principal.publish, event, core.world)
        ):
            raise RefusedError("forbidden", f"{principal.name} may not publish this event")
        uplink = self._uplink
        from_master = link.master or (
            uplink is not None and packet.id is not None and packet.id == uplink.identity
        )
        if link.mode is Mode.LEGACY:
            event, body = _from_legacy(event, body)
        if body is None:
            body = encode_event(event)
        if len(body) > core.settings.max_publication:
            raise RefusedError(
                "too_large",
                f"a publication has at most {core.settings.max_publication} bytes of event,"
                f" this one {len(body)}: it is too long at byte {core.settings.max_publication}",
            )
        uid = packet.uid
        if uid is None:
            uid = core.settings.new_id()
        else:
            if number:
                uid = f"{uid}.{number}"
            if not 0 < len(uid) <= MAX_ID:
                raise RefusedError("limit", f"a uid has 1 to {MAX_ID} characters")
            if uid in self._seen or uid in self._seen_before:
                return Fate.DUPLICATE
        ttl = packet.ttl - 1
        if ttl <= 0:
            return Fate.EXPIRED
        moment = core.now if packet.at is None else packet.at
        history = packet.history and from_master
        return Publication(event, body, ttl, uid, moment, packet.id, link, from_master, history)

    def _stage(self, publication: Publication) -> Staged | Fate:
        """Match against what was accepted before, unless the history knows it already."""
        core, memory = self._core, self._memory
        if memory is None:
            staged = Staged(publication, self._match(publication, core.world))
        else:
            remembered = memory.admit(publication)
            if remembered is None:
                return Fate.DUPLICATE
            receivers = self._match(publication, memory.world(remembered))
            followers = self._followers(publication, remembered)
            kept = [
                (target.name, tuple(r.id for r in told))
                for target, told in receivers.items()
                if target.durable
            ]
            up = self._goes_up(publication)
            seq = memory.accept(publication, remembered, forward=up, kept=kept)
            uid = part_uid(remembered.entry.uid, remembered.entry.part)
            staged = Staged(publication._replace(seq=seq, uid=uid), receivers, followers)
        if staged.publication.uid == publication.uid:
            # Parts of events are known by the history, for ever; the others for a while.
            self._seen.add(publication.uid)
        if len(self._seen) > core.settings.seen:
            self._seen_before, self._seen = self._seen, set()
        return staged

    def _match(self, publication: Publication, world: World) -> Receivers:
        """Whom it matches, by target; each subscriber once, however many of its units did."""
        found: Receivers = {}
        if publication.history:
            return found
        core = self._core
        sender, origin = publication.sender, publication.origin
        back = origin.target if origin.target is not None and origin.target.broker else None
        told: set[str] | None = set() if core.table.crowded else None
        for unit in core.table.match(publication.notification, world):
            subscriber = unit.subscriber
            if subscriber.id == sender:
                continue
            target = subscriber.target
            if target is back:
                continue
            if told is not None:
                if subscriber.id in told:
                    continue
                told.add(subscriber.id)
            receivers = found.get(target)
            if receivers is None:
                found[target] = [subscriber]
            else:
                receivers.append(subscriber)
        return found

    def _followers(self, publication: Publication, admitted: Admitted) -> tuple[Follower, ...]:
        """Who remembers the event: whoever its merged form matches, or matched before."""
        table, known = self._core.table, admitted.known
        if not table.histories:
            return ()
        now = table.match_history(admitted.event.notification, self._core.world)
        before = set(
            () if known is None else table.match_history(known.notification, self._core.world)
        )
        found: dict[Target, Follower] = {}
        for unit in {*now, *before}:
            subscriber = unit.subscriber
            target = subscriber.target
            follower = found.get(target)
            if follower is None:
                earlier = None
                if known is not None:
                    earlier = known.closed if known.opened is None else known.opened
                part = Part.START if known is None or known.opened is not None else Part.END
                follower = found[target] = Follower(target, [], earlier, part)
            if subscriber not in follower.receivers:
                follower.receivers.append(subscriber)
            if unit in before and follower.earlier is not None:
                found[target] = follower._replace(earlier=None)
        return tuple(found.values())

    def _goes_up(self, publication: Publication) -> bool:
        return self._uplink is not None and not publication.from_master

    def _take_back(self, staged: list[Staged]) -> None:
        for step in reversed(staged):
            self._seen.discard(step.publication.uid)
            if self._memory is not None:
                self._memory.take_back(step.publication.seq)

    # --- on disk, or not -----------------------------------------------------------------

    def recorded(self, upto: int) -> None:
        """Everything accepted up to ``upto`` is on disk: tell the world, in order."""
        assert self._memory is not None
        self._memory.recorded(upto)
        pending = self._pending
        while pending and pending[0].publication.seq <= upto:
            step = pending.popleft()
            self._core.accounts.pending -= 1
            self.pending_bytes -= len(step.publication.body)
            for target, receivers in list(step.receivers.items()):
                # Who left meanwhile is not told, nor counted.
                left = [r for r in receivers if r.units]
                if len(left) != len(receivers):
                    step.receivers[target] = left
                if not left:
                    del step.receivers[target]
            self._settle(step)
        self._answer(upto)

    def unrecorded(self, code: str, reason: str) -> None:
        """The store refused everything that is pending: it never happened."""
        assert self._memory is not None
        failed = list(self._pending)
        self._pending.clear()
        self.pending_bytes = 0
        accounts = self._core.accounts
        accounts.pending -= len(failed)
        accounts.refused += len(failed)
        self._take_back(failed)
        answers, self._answers = self._answers, deque()
        for _, link, seq in answers:
            if link.number in self._core.links:
                self._core.refuse(link, seq, code, reason)

    def _settle(self, step: Staged) -> None:
        """Forward and deliver: the order in which a link hears is the order of acceptance."""
        publication, receivers, _ = step
        if self._uplink is not None and not publication.from_master:
            self._uplink.publish(publication)
        accounts = self._core.accounts
        if not receivers and not step.followers:
            accounts.unmatched += 1
            return
        accounts.matched += 1
        deliver = self._delivering.deliver
        for follower in step.followers:
            self._remember_there(publication, follower, receivers)
        for target, told in receivers.items():
            deliver(publication, target, told)

    def _remember_there(
        self, publication: Publication, follower: Follower, receivers: Receivers
    ) -> None:
        """Tell a child broker of an event it remembers; once, also if it is told anyway."""
        target, mine, earlier, part = follower
        mine = [receiver for receiver in mine if receiver.units]
        if not mine:
            return
        if earlier is not None:
            before = publication._replace(
                notification=earlier,
                body=encode_event(earlier),
                uid=part_uid(str(earlier[PUB_ID]), part),
                history=True,
            )
            self._delivering.deliver(before, target, mine)
        if target is publication.origin.target:
            return  # it told us; only the other part, from elsewhere, is news to it
        if target in receivers:
            receivers[target].extend(mine)
        else:
            self._delivering.deliver(publication._replace(history=True), target, mine)

    # --- acknowledgements ------------------------------------------------------------------

    def _acknowledge(self, link: Link, seq: int | None) -> None:
        if seq is None:
            return
        if self._pending:
            # Also for a duplicate: its first copy may be among what is pending.
            self._answers.append((self._pending[-1].publication.seq, link, seq))
        else:
            self._say(link, seq)

    def _answer(self, upto: int) -> None:
        answers = self._answers
        while answers and answers[0][0] <= upto:
            _, link, seq = answers.popleft()
            if link.number in self._core.links:
                self._say(link, seq)

    def _say(self, link: Link, seq: int) -> None:
        if self._delivering.blocking and link.target is not None and not link.target.broker:
            self._withheld.append((link, seq))
        else:
            self._core.acknowledge(link, seq)

    def drained(self, target: Target) -> None:
        """A full target has room again, or is gone: blocked publishers get their answers."""
        blocking = self._delivering.blocking
        blocking.discard(target)
        if not blocking and self._withheld:
            withheld, self._withheld = self._withheld, []
            for link, seq in withheld:
                if link.number in self._core.links:
                    self._core.acknowledge(link, seq)

    @property
    def blocking(self) -> bool:
        """Whether some target holds publishers back."""
        return bool(self._delivering.blocking)


def _from_legacy(event: Notification, body: bytes | None) -> tuple[Notification, bytes | None]:
    """Siena has no bags: a string in KBN_PUB_TYPE stands for the bag of that name."""
    kind = event.get(PUB_TYPE)
    if isinstance(kind, str) and kind in _LEGACY_TYPES:
        return event.merged({PUB_TYPE: _LEGACY_TYPES[kind]}), None
    return event, body
