"""From a matched publication to frames in outboxes: one packet a target, slow ones bounded.

A body is encoded once and shared by all receivers; receivers that share a link
are told by one packet, split when their ids do not fit. A legacy target gets a
packet for each receiver, in the fields and values that Siena can read.
"""

from __future__ import annotations

from typing import NamedTuple

from kbn.broker.core import Core
from kbn.broker.links import Link, Target
from kbn.broker.settings import Policy
from kbn.model.notifications import Notification
from kbn.model.values import Bag, Value
from kbn.routing.table import Subscriber
from senp import MAX_PACKET, encode_event, encode_value

#: Who is told of one publication, by the target they share.
Receivers = dict[Target, list[Subscriber[Target]]]


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
    #: Came as history only: kept and remembered, delivered to nobody.
    history: bool = False
    #: The arrival number in the log; 0 when nothing is kept.
    seq: int = 0


class Delivering:
    """Writes deliveries into outboxes and minds the slow."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._id = encode_value(core.settings.identity)
        #: Targets past their high-water mark under the blocking policy.
        self.blocking: set[Target] = set()

    def deliver(
        self, publication: Publication, target: Target, receivers: list[Subscriber[Target]]
    ) -> None:
        """Queue one publication for the receivers behind one target."""
        core = self._core
        if target.spilling:
            # The store has it, and gives it back in order once there is room.
            if target.hold is not None:
                target.hold.put((publication, receivers), publication.seq, len(publication.body))
            return
        if any(receiver.aside for receiver in receivers):
            receivers = self._set_aside(publication, receivers)
            if not receivers:
                return
        core.accounts.matches += len(receivers)
        outbox = target.outbox
        if target.address is not None:
            self._legacy(publication, target, receivers)
        else:
            head = b'senp{version=1 method="PUB" ttl=%d id=%s to=' % (publication.ttl, self._id)
            tail = b" uid=%s at=%d%s} %s" % (
                encode_value(publication.uid),
                publication.at,
                b" history=true" if publication.history else b"",
                publication.body,
            )
            if outbox.keeping:
                tail = b" pos=%d%s" % (outbox.next_pos(), tail)
            elif target.positions:
                tail = b" pos=%d%s" % (publication.seq, tail)
                target.told = max(target.told, publication.seq)
            self._pack(target, head, tail, receivers)
        if outbox.full:
            self._overflow(target)
        core.touch(target)

    def _set_aside(
        self, publication: Publication, receivers: list[Subscriber[Target]]
    ) -> list[Subscriber[Target]]:
        """Who may be told at once; the suspended lose it, those on hold get it later."""
        going: list[Subscriber[Target]] = []
        for receiver in receivers:
            if receiver.suspended:
                self._core.accounts.matches += 1
                self._core.accounts.lost((receiver,), "suspended")
            elif receiver.hold is not None:
                size = len(publication.body)
                receiver.hold.put((publication, [receiver]), publication.seq, size)
            else:
                going.append(receiver)
        return going

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

    def _legacy(
        self, publication: Publication, target: Target, receivers: list[Subscriber[Target]]
    ) -> None:
        body = body_for_legacy(publication)
        head = b'senp{version=1 method="PUB" ttl=%d id=%s to=' % (publication.ttl, self._id)
        outbox = target.outbox
        for receiver in receivers:
            packet = b"%s%s} %s" % (head, receiver.wire, body)
            if len(packet) > MAX_PACKET:
                self._core.accounts.lost((receiver,), "too_large")
            else:
                outbox.deliver(len(packet).to_bytes(2) + packet, (receiver,))

    def _overflow(self, target: Target) -> None:
        """The target is past its high-water mark after this delivery."""
        if target.durable:
            target.spilling = True
            return
        policy = self._core.settings.policy
        if policy is Policy.DISCONNECT and target.link is not None and not target.outbox.keeping:
            target.outbox.drop_all("queue_full")
            self._core.log("warning", "slow_subscriber", f"{target.name}: disconnected, too slow")
            self._core.close(target.link)
        elif policy is Policy.BLOCK and not target.outbox.keeping:
            self.blocking.add(target)


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
