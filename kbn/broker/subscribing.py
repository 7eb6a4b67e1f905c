"""SUB, UNS, BYE, SUS, RES, MAP, ADV, UNA: who wants what, and where it goes."""

from __future__ import annotations

from typing import Protocol

from kbn.broker.addresses import handler_refusal, parse_address
from kbn.broker.core import Core
from kbn.broker.links import Link, Target
from kbn.covering import covers
from kbn.errors import NoOntologyError, RefusedError, UnsupportedError
from kbn.model.filters import Subscription, needs_history, needs_ontology
from kbn.routing.table import Change, Options, Subscriber
from senp import Packet, Pattern


class Roots(Protocol):
    """Whoever must hear that the table changed."""

    def changed(self, change: Change[Target], *, travels: bool) -> None: ...


class Subscribing:
    """The requests that change the table; each raises ``KbnError`` when refused."""

    def __init__(self, core: Core, roots: Roots | None) -> None:
        self._core = core
        self._roots = roots

    def subscribe(self, link: Link, packet: Packet) -> None:
        asked = self._check(link, packet)
        held = self._core.held_units
        owner = link.principal.name
        if held.get(owner, 0) >= self._core.settings.max_subscriptions:
            raise RefusedError(
                "limit",
                f"{owner} holds {held[owner]} subscriptions,"
                f" at most {self._core.settings.max_subscriptions} are allowed",
            )
        subscriber = self._subscriber(link, packet)
        subscriber.target.subscribers[subscriber.id] = subscriber
        options = Options(local=packet.ttl == 1)
        self._changed(self._core.table.subscribe(subscriber, asked, options))

    def _check(self, link: Link, packet: Packet) -> Subscription:
        asked = packet.payload
        if isinstance(asked, Pattern):
            raise UnsupportedError("patterns of events are not offered yet")
        if not isinstance(asked, Subscription):
            raise RefusedError("syntax", "SUB needs filter{…} or filters{…}")
        if needs_ontology(asked):
            raise NoOntologyError("a semantic operator")
        if needs_history(asked) or packet.history or packet.since is not None:
            raise UnsupportedError("temporal operators need a history, and this broker has none")
        principal = link.principal
        if not principal.may_subscribe or (
            principal.subscribe is not None and not covers(principal.subscribe, asked)
        ):
            raise RefusedError("forbidden", f"{principal.name} may not subscribe to that")
        return asked

    def _subscriber(self, link: Link, packet: Packet) -> Subscriber[Target]:
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

    def _owned(self, link: Link, packet: Packet) -> Subscriber[Target] | None:
        """The subscriber a request is about, if it is known and the peer's own."""
        found = self._core.table.subscribers.get(packet.id or link.name)
        if found is not None:
            self._check_owner(link, found)
        return found

    def unsubscribe(self, link: Link, packet: Packet) -> None:
        asked = packet.payload
        if asked is not None and not isinstance(asked, Subscription):
            raise RefusedError("syntax", "UNS takes filter{…}, filters{…} or nothing")
        if self._owned(link, packet) is not None:
            self.remove(packet.id or link.name, asked, travels=packet.ttl > 1)

    def remove(
        self, subscriber_id: str, asked: Subscription | None = None, *, travels: bool = True
    ) -> None:
        """Take units out of the table, whoever asked for it."""
        subscriber = self._core.table.subscribers.get(subscriber_id)
        if subscriber is None:
            return
        self._changed(self._core.table.unsubscribe(subscriber_id, asked), travels=travels)
        if not subscriber.units:
            self._core.forget_subscriber(subscriber)

    def bye(self, link: Link, packet: Packet) -> None:
        """All of a subscriber is gone; from a session itself, the session ends."""
        name = packet.id or link.name
        self._core.advertisements.pop(name, None)
        if link.target is not None and not link.handler and name == link.name:
            for subscriber_id in list(link.target.subscribers):
                self.remove(subscriber_id)
            self._core.brokers.pop(link.name, None)
            self._core.acknowledge(link, packet.seq)
            self._core.close(link)
        elif self._owned(link, packet) is not None:
            self.remove(name)

    def suspend(self, link: Link, packet: Packet) -> None:
        subscriber = self._owned(link, packet)
        if subscriber is not None:
            subscriber.suspended = True

    def resume(self, link: Link, packet: Packet) -> None:
        subscriber = self._owned(link, packet)
        if subscriber is not None:
            subscriber.suspended = False

    def map(self, link: Link, packet: Packet) -> None:
        """A legacy subscriber listens elsewhere now."""
        if packet.handler is None:
            raise RefusedError("syntax", "MAP needs a handler")
        subscriber = self._owned(link, packet)
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

    def _changed(self, change: Change[Target], *, travels: bool = True) -> None:
        held = self._core.held_units
        for unit in change.added:
            owner = unit.subscriber.owner
            held[owner] = held.get(owner, 0) + 1
        for unit in change.removed:
            owner = unit.subscriber.owner
            held[owner] -= 1
            if not held[owner]:
                del held[owner]
        if self._roots is not None and (change.added or change.removed):
            self._roots.changed(change, travels=travels)
