"""SUS, RES, MAP, ADV, UNA: where notifications go, and whose a subscriber is.

A subscriber belongs to the connection that made it, or, where it has a handler, to the
principal that did; an admin may do everything.
"""

from __future__ import annotations

from kbn.broker.addresses import handler_refusal, parse_address
from kbn.broker.core import Core
from kbn.broker.links import Link, Target
from kbn.broker.recalling import Recalling
from kbn.errors import RefusedError
from kbn.routing.table import Subscriber
from senp import Packet


class Steering:
    """The requests about subscribers that leave what they ask as it is."""

    def __init__(self, core: Core, recalling: Recalling | None = None) -> None:
        self._core = core
        self._recalling = recalling

    def subscriber(self, link: Link, packet: Packet) -> Subscriber[Target]:
        """The subscriber the packet names: known, or new with its place of delivery."""
        name = packet.id or link.name
        if not name:
            raise RefusedError("syntax", "SUB needs an id")
        known = self._core.table.subscribers.get(name)
        if packet.handler is not None:
            # Before the handler's target is made: a refusal must leave nothing behind.
            if known is not None and known.target.address != parse_address(packet.handler, 1936):
                self._check_owner(link, known)
            target = self.handler(link, packet.handler)
            if known is not None and known.target is not target:
                self._move(known, target)
        elif link.target is not None and not link.handler:
            target = link.target
            if known is not None and known.target is not target:
                raise RefusedError("name_in_use", f"another connection subscribes as '{name}'")
        elif known is None:
            raise RefusedError("syntax", f"SUB of '{name}' says no handler to deliver to")
        return known or Subscriber(name, target, owner=link.principal.name)

    def handler(self, link: Link, url: str) -> Target:
        """The target behind a handler URL, if this peer may have us call it."""
        address = parse_address(url, 1936)
        local = link.peer.local
        allowed = self._core.settings.handlers_allowed
        refusal = handler_refusal(address.host, local=local, allowed=allowed)
        if refusal is not None:
            raise RefusedError("forbidden", refusal)
        return self._core.handler_target(url, local=local)

    def _check_owner(self, link: Link, subscriber: Subscriber[Target]) -> None:
        """A subscriber belongs to whoever made it."""
        mine = subscriber.target is link.target or (
            subscriber.target.address is not None and subscriber.owner == link.principal.name
        )
        if not mine and not link.principal.admin:
            raise RefusedError("forbidden", f"'{subscriber.id}' belongs to another connection")

    def owned(self, link: Link, packet: Packet) -> Subscriber[Target] | None:
        """The subscriber a request is about, if it is known and the peer's own."""
        found = self._core.table.subscribers.get(packet.id or link.name)
        if found is not None:
            self._check_owner(link, found)
        return found

    def suspend(self, link: Link, packet: Packet) -> None:
        subscriber = self.owned(link, packet)
        if subscriber is not None:
            target = subscriber.target
            if target.durable and self._recalling is not None:
                # A durable session keeps its backlog; the whole session waits.
                self._recalling.stop(target)
                target.suspended = target.spilling = True
            else:
                subscriber.suspend(True)

    def resume(self, link: Link, packet: Packet) -> None:
        subscriber = self.owned(link, packet)
        if subscriber is not None:
            target = subscriber.target
            if target.suspended and self._recalling is not None:
                target.suspended = False
                self._recalling.go_on(target)
            subscriber.suspend(False)

    def map(self, link: Link, packet: Packet) -> None:
        """A legacy subscriber listens elsewhere now."""
        if packet.handler is None:
            raise RefusedError("syntax", "MAP needs a handler")
        subscriber = self.owned(link, packet)
        if subscriber is not None:
            self._move(subscriber, self.handler(link, packet.handler))

    def _move(self, subscriber: Subscriber[Target], target: Target) -> None:
        self._core.forget_subscriber(subscriber)
        subscriber.target = target
        target.subscribers[subscriber.id] = subscriber

    def advertise(self, link: Link, packet: Packet) -> None:
        """Kept and shown; routing in a tree does not need it."""
        kept = self._core.advertisements.setdefault(packet.id or link.name, [])
        if len(kept) < 100 and all(old.payload != packet.payload for old in kept):
            kept.append(packet)

    def unadvertise(self, link: Link, packet: Packet) -> None:
        name = packet.id or link.name
        kept = self._core.advertisements.get(name, [])
        left = [old for old in kept if packet.payload not in (None, old.payload)]
        if left:
            self._core.advertisements[name] = left
        else:
            self._core.advertisements.pop(name, None)
