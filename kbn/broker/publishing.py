"""The way of a publication, read top to bottom: admit, match, deliver, forward, acknowledge.

Each publication ends in exactly one of refused, duplicate, expired, unmatched
and matched. A body is encoded once and shared by all receivers; receivers that
share a link are told by one packet. Only the subscriber whose id equals the
packet's is skipped, and a link whose peer is a broker hears nothing it said.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kbn.broker.core import Core
from kbn.broker.links import Link, Mode, Target
from kbn.broker.settings import Policy
from kbn.errors import KbnError, RefusedError
from kbn.matching.naive import matches
from kbn.matching.world import NOTHING_KNOWN
from kbn.model.notifications import Notification
from kbn.model.time import PUB_TYPE
from kbn.model.values import Bag, Value
from kbn.routing.table import Subscriber
from senp import MAX_ID, MAX_PACKET, Packet, encode_event, encode_value

#: What one name of KBN_PUB_TYPE from a Siena client stands for: it cannot write bags.
_LEGACY_TYPES = {
    "START": Bag(["START"]),
    "END": Bag(["END"]),
    "INSTANT": Bag(["START", "END", "INSTANT"]),
}


class Publication(NamedTuple):
    """One accepted publication on its way through the broker."""

    notification: Notification
    body: bytes
    ttl: int
    uid: str
    at: int
    sender: str | None
    origin: Link
    from_master: bool


class Upward(Protocol):
    """The master link, as far as a publication is concerned."""

    identity: str | None

    def publish(self, publication: Publication) -> None: ...


class Publishing:
    """Takes PUB packets; ``uplink`` is None at the root of the tree."""

    def __init__(self, core: Core, uplink: Upward | None) -> None:
        self._core = core
        self._uplink = uplink
        self._seen: set[str] = set()
        self._seen_before: set[str] = set()
        self._id = encode_value(core.settings.identity)
        #: Acknowledgements withheld while a blocking subscriber is full.
        self._withheld: list[tuple[Link, int]] = []
        self._blocking: set[Target] = set()

    def publish(self, link: Link, packet: Packet, body: bytes | None) -> None:
        """Handle one PUB, single or batch; raises ``KbnError`` when it is refused."""
        payload = packet.payload
        if isinstance(payload, Notification):
            self._count(1)
            try:
                publication = self._admit(link, packet, payload, body, 0)
            except KbnError:
                self._core.accounts.refused += 1
                raise
            if publication is not None:
                self._accepted(publication)
        elif isinstance(payload, tuple):
            self._count(len(payload))
            try:
                admitted = [
                    self._admit(link, packet, event, None, i) for i, event in enumerate(payload)
                ]
            except KbnError:
                # All or none: what was admitted before the bad one must not count as seen.
                self._core.accounts.refused += len(payload)
                self._forget(packet, len(payload))
                raise
            for publication in admitted:
                if publication is not None:
                    self._accepted(publication)
        else:
            self._count(1)
            self._core.accounts.refused += 1
            raise RefusedError("syntax", "PUB needs event{…} or events{…}")
        self._acknowledge(link, packet.seq)

    def _count(self, publications: int) -> None:
        self._core.accounts.received += publications

    def _admit(
        self, link: Link, packet: Packet, event: Notification, body: bytes | None, at: int
    ) -> Publication | None:
        """Check one event; None when it is a duplicate or has expired."""
        core = self._core
        principal = link.principal
        if not principal.may_publish or (
            principal.publish is not None and not matches(principal.publish, event, NOTHING_KNOWN)
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
            if at:
                uid = f"{uid}.{at}"
            if not 0 < len(uid) <= MAX_ID:
                raise RefusedError("limit", f"a uid has 1 to {MAX_ID} characters")
            if uid in self._seen or uid in self._seen_before:
                core.accounts.duplicate += 1
                return None
        ttl = packet.ttl - 1
        if ttl <= 0:
            core.accounts.expired += 1
            return None
        self._seen.add(uid)
        if len(self._seen) > core.settings.seen:
            self._seen_before, self._seen = self._seen, set()
        moment = core.now if packet.at is None else packet.at
        return Publication(event, body, ttl, uid, moment, packet.id, link, from_master)

    def _forget(self, packet: Packet, count: int) -> None:
        if packet.uid is not None:
            self._seen -= {f"{packet.uid}.{i}" if i else packet.uid for i in range(count)}

    def _accepted(self, publication: Publication) -> None:
        """Forward and deliver: the order in which a link hears is the order of acceptance."""
        if self._uplink is not None and not publication.from_master:
            self._uplink.publish(publication)
        core = self._core
        units = core.table.match(publication.notification)
        by_target: dict[Target, list[Subscriber[Target]]] = {}
        sender, origin = publication.sender, publication.origin
        back = origin.target if origin.target is not None and origin.target.broker else None
        told: set[str] | None = set() if core.table.crowded else None
        for unit in units:
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
            receivers = by_target.get(target)
            if receivers is None:
                by_target[target] = [subscriber]
            else:
                receivers.append(subscriber)
        if not by_target:
            core.accounts.unmatched += 1
            return
        core.accounts.matched += 1
        for target, receivers in by_target.items():
            core.accounts.matches += len(receivers)
            self._deliver(publication, target, receivers)

    def _deliver(
        self, publication: Publication, target: Target, receivers: list[Subscriber[Target]]
    ) -> None:
        core = self._core
        if any(receiver.suspended for receiver in receivers):
            core.accounts.lost([r for r in receivers if r.suspended], "suspended")
            receivers = [r for r in receivers if not r.suspended]
            if not receivers:
                return
        outbox = target.outbox
        if target.address is not None:
            self._deliver_legacy(publication, target, receivers)
        else:
            head = b'senp{version=1 method="PUB" ttl=%d id=%s to=' % (publication.ttl, self._id)
            tail = b" uid=%s at=%d} %s" % (
                encode_value(publication.uid),
                publication.at,
                publication.body,
            )
            if outbox.keeping:
                tail = b" pos=%d%s" % (outbox.next_pos(), tail)
            self._pack(target, head, tail, receivers)
        if outbox.full:
            self._overflow(target)
        core.touch(target)

    def _pack(
        self, target: Target, head: bytes, tail: bytes, receivers: list[Subscriber[Target]]
    ) -> None:
        """One packet for all receivers, or several when their ids do not fit in one."""
        if len(receivers) == 1:
            packet = head + receivers[0].wire + tail
        else:
            packet = b"%s[%s]%s" % (head, b" ".join([r.wire for r in receivers]), tail)
        if len(packet) <= MAX_PACKET:
            target.outbox.deliver(len(packet).to_bytes(2) + packet, receivers)
        elif len(receivers) > 1:
            half = len(receivers) // 2
            self._pack(target, head, tail, receivers[:half])
            self._pack(target, head, tail, receivers[half:])
        else:
            self._core.accounts.lost(receivers, "too_large")

    def _deliver_legacy(
        self, publication: Publication, target: Target, receivers: list[Subscriber[Target]]
    ) -> None:
        """One packet a receiver, in the fields and values that Siena can read."""
        body = body_for_legacy(publication)
        head = b'senp{version=1 method="PUB" ttl=%d id=%s to=' % (publication.ttl, self._id)
        outbox = target.outbox
        for receiver in receivers:
            packet = b"%s%s} %s" % (head, receiver.wire, body)
            if len(packet) > MAX_PACKET:
                self._core.accounts.lost((receiver,), "too_large")
            else:
                outbox.deliver(len(packet).to_bytes(2) + packet, (receiver,))

    # --- slow subscribers ------------------------------------------------------

    def _overflow(self, target: Target) -> None:
        """The target is past its high-water mark after this delivery."""
        policy = self._core.settings.policy
        if policy is Policy.DISCONNECT and target.link is not None and not target.outbox.keeping:
            target.outbox.drop_all("queue_full")
            self._core.log("warning", "slow_subscriber", f"{target.name}: disconnected, too slow")
            self._core.close(target.link)
        elif policy is Policy.BLOCK and not target.outbox.keeping:
            self._blocking.add(target)

    def _acknowledge(self, link: Link, seq: int | None) -> None:
        if seq is None:
            return
        if self._blocking and link.target is not None and not link.target.broker:
            self._withheld.append((link, seq))
        else:
            self._core.acknowledge(link, seq)

    def drained(self, target: Target) -> None:
        """A full target has room again, or is gone: blocked publishers get their answers."""
        self._blocking.discard(target)
        if not self._blocking and self._withheld:
            withheld, self._withheld = self._withheld, []
            for link, seq in withheld:
                if link.number in self._core.links:
                    self._core.acknowledge(link, seq)

    @property
    def blocking(self) -> bool:
        """Whether some target holds publishers back."""
        return bool(self._blocking)


def _from_legacy(event: Notification, body: bytes | None) -> tuple[Notification, bytes | None]:
    """Siena has no bags: a string in KBN_PUB_TYPE stands for the bag of that name."""
    kind = event.get(PUB_TYPE)
    if isinstance(kind, str) and kind in _LEGACY_TYPES:
        return event.merged({PUB_TYPE: _LEGACY_TYPES[kind]}), None
    return event, body


def body_for_legacy(publication: Publication) -> bytes:
    """The body with each bag as one string that holds its SENP text."""
    attributes = publication.notification.attributes
    if not any(type(value) is Bag for value in attributes.values()):
        return publication.body
    plain: dict[str, Value] = {
        name: encode_value(value).decode("ascii") if isinstance(value, Bag) else value
        for name, value in attributes.items()
    }
    return encode_event(Notification.trusted(plain))
