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
from typing import NamedTuple

from kbn.broker.answering import Answering, Upward
from kbn.broker.core import Core
from kbn.broker.delivering import Delivering, Publication, Receivers
from kbn.broker.following import Follower, Following
from kbn.broker.links import Link, Mode
from kbn.broker.remembering import Remembering, part_uid
from kbn.errors import KbnError, RefusedError
from kbn.matching.naive import matches
from kbn.matching.world import World
from kbn.model.notifications import Notification
from kbn.model.time import PUB_TYPE
from kbn.model.values import Bag
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
    #: What the stopwatch said when it came.
    began: int = 0


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
        self._following = Following(core, delivering)
        #: Who waits for the disk, or for a subscriber to read.
        self.answering = Answering(core, delivering, uplink)

    # --- the way in --------------------------------------------------------------------

    def publish(self, link: Link, packet: Packet, body: bytes | None) -> None:
        """Handle one PUB, single or batch; raises ``KbnError`` when it is refused."""
        accounts = self._core.accounts
        payload = packet.payload
        if isinstance(payload, Notification):
            accounts.received += 1
            try:
                step = self._take_in(link, packet, payload, body, 0)
            except KbnError:
                accounts.refused += 1
                raise
            self._conclude(step)
        elif isinstance(payload, tuple):
            accounts.received += len(payload)
            for step in self._all_or_none(link, packet, payload):
                self._conclude(step)
        else:
            accounts.received += 1
            accounts.refused += 1
            raise RefusedError("syntax", "PUB needs event{…} or events{…}")
        self.answering.acknowledge(link, packet.seq, self._newest_pending)

    def _all_or_none(
        self, link: Link, packet: Packet, events: tuple[Notification, ...]
    ) -> list[Staged | Fate]:
        """Take in a batch; what was staged before a bad one leaves no trace."""
        steps: list[Staged | Fate] = []
        try:
            for number, event in enumerate(events):
                steps.append(self._take_in(link, packet, event, None, number))
        except KbnError:
            self._core.accounts.refused += len(events)
            self._take_back([step for step in steps if isinstance(step, Staged)])
            raise
        return steps

    def _take_in(
        self, link: Link, packet: Packet, event: Notification, body: bytes | None, number: int
    ) -> Staged | Fate:
        admitted = self._admit(link, packet, event, body, number)
        return self._stage(admitted) if isinstance(admitted, Publication) else admitted

    def _conclude(self, step: Staged | Fate) -> None:
        """It goes on, waits for the disk, or ends here; each has its counter."""
        accounts = self._core.accounts
        if step is Fate.DUPLICATE:
            accounts.duplicate += 1
        elif step is Fate.EXPIRED:
            accounts.expired += 1
        elif isinstance(step, Staged):
            if self._memory is None:
                self._settle(step)
            else:
                self._pending.append(step)
                self.pending_bytes += len(step.publication.body)
                accounts.pending += 1

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
            stopwatch = core.statistics.stopwatch
            began = 0 if stopwatch is None else stopwatch()
            remembered = memory.admit(publication)
            if remembered is None:
                return Fate.DUPLICATE
            receivers = self._match(publication, memory.world(remembered))
            followers = self._following.followers(remembered)
            kept = [
                (target.name, tuple(r.id for r in told))
                for target, told in receivers.items()
                if target.durable
            ]
            up = self._goes_up(publication)
            seq = memory.accept(publication, remembered, forward=up, kept=kept)
            uid = part_uid(remembered.entry.uid, remembered.entry.part)
            known = publication._replace(seq=seq, uid=uid)
            staged = Staged(known, receivers, followers, began)
            if stopwatch is not None:
                core.statistics.accepted.observe(stopwatch() - began)
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

    def _goes_up(self, publication: Publication) -> bool:
        return self._uplink is not None and not publication.from_master

    def _take_back(self, staged: list[Staged]) -> None:
        for step in reversed(staged):
            self._seen.discard(step.publication.uid)
            self._seen_before.discard(step.publication.uid)
            if self._memory is not None:
                self._memory.take_back(step.publication.seq)

    # --- on disk, or not -----------------------------------------------------------------

    def recorded(self, upto: int, number: int) -> None:
        """Everything accepted up to ``upto`` is on disk: tell the world, in order."""
        assert self._memory is not None
        self._memory.recorded(upto, number)
        statistics = self._core.statistics
        now = 0 if statistics.stopwatch is None else statistics.stopwatch()
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
            if step.began:
                statistics.total.observe(now - step.began)
                statistics.deliveries.observe(sum(map(len, step.receivers.values())))
            self._settle(step)
        self.answering.recorded(upto)

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
        self._memory.unrecorded()
        self.answering.unrecorded(code, reason)

    def _settle(self, step: Staged) -> None:
        """Forward and deliver: the order in which a link hears is the order of acceptance."""
        publication, receivers = step.publication, step.receivers
        if self._uplink is not None and not publication.from_master:
            self._uplink.publish(publication)
        accounts = self._core.accounts
        if not receivers and not step.followers:
            accounts.unmatched += 1
            return
        accounts.matched += 1
        deliver = self._delivering.deliver
        for follower in step.followers:
            self._following.tell(publication, follower, receivers)
        for target, told in receivers.items():
            deliver(publication, target, told)

    @property
    def pending(self) -> list[int]:
        """The arrival numbers that are accepted and not on disk."""
        return [step.publication.seq for step in self._pending]

    @property
    def _newest_pending(self) -> int:
        return self._pending[-1].publication.seq if self._pending else 0

    def heard(self, pos: int) -> None:
        """The master told something at a position."""
        self.answering.heard(pos, self._newest_pending)


def _from_legacy(event: Notification, body: bytes | None) -> tuple[Notification, bytes | None]:
    """Siena has no bags: a string in KBN_PUB_TYPE stands for the bag of that name."""
    kind = event.get(PUB_TYPE)
    if isinstance(kind, str) and kind in _LEGACY_TYPES:
        return event.merged({PUB_TYPE: _LEGACY_TYPES[kind]}), None
    return event, body
