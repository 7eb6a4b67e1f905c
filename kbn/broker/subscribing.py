"""SUB, UNS, BYE: who wants what.

A subscription that asks the past waits until its inner filters know it; one that asks
about terms waits while their meaning changes; one of a durable session is answered when
it is written down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from datastore.store import StoredSession
from kbn.broker.core import Core
from kbn.broker.instructions import Fill, SaveSession
from kbn.broker.links import Link, Mode, Owed, Target
from kbn.broker.recalling import Recalling
from kbn.broker.remembering import Remembering
from kbn.broker.saving import Saving, stored_session
from kbn.broker.steering import Steering
from kbn.broker.stimuli import Filled
from kbn.covering import covers
from kbn.errors import KbnError, RefusedError, UnsupportedError
from kbn.model.filters import Subscription, needs_history, needs_ontology
from kbn.routing.table import Change, Options, Subscriber, hops_left
from kbn.routing.upward import without_terms
from kbn.temporal.backfill import Backfill
from senp import Packet, Pattern

_TOO_SOON = "it was unsubscribed before it began"


class Roots(Protocol):
    """Whoever must hear that the table changed."""

    def changed(self, change: Change[Target], *, travels: bool) -> None: ...


class _Filling(NamedTuple):
    """A SUB that waits for its inner filters."""

    link: Link
    packet: Packet
    asked: Subscription
    backfill: Backfill


class Subscribing:
    """The requests that change the table; each raises ``KbnError`` when refused."""

    def __init__(
        self,
        core: Core,
        roots: Roots | None,
        memory: Remembering | None = None,
        recalling: Recalling | None = None,
        *,
        steering: Steering,
    ) -> None:
        self._core = core
        self._roots = roots
        self._steering = steering
        self._memory = memory
        self._recalling = recalling
        #: Requests whose inner filters are being filled from the log, by number.
        self._filling: dict[int, _Filling] = {}
        self._next = 0
        self.saving = Saving(core, recalling, self.remove)
        #: While what is known changes: subscriptions that ask the past about terms wait.
        self._changing = False
        self._postponed: list[tuple[Link, Packet]] = []

    def subscribe(self, link: Link, packet: Packet) -> None:
        """Enter a unit; acknowledged here, at once or when its history is in memory."""
        asked = self._check(link, packet)
        self._check_limit(link)
        if needs_ontology(asked):
            if link.target is not None and link.target.broker and not self._understands(link):
                asked = without_terms(asked)
            elif self._changing and needs_history(asked) and not packet.history:
                self._postponed.append((link, packet))
                return
        subscriber = self._steering.subscriber(link, packet)
        if self._memory is not None and not packet.history and needs_history(asked):
            backfill = self._memory.acquire(asked)
            if backfill is not None:
                self._next += 1
                self._filling[self._next] = _Filling(link, packet, asked, backfill)
                self._core.instruct(Fill(self._next, backfill))
                return
        self._enter(link, packet, subscriber, asked)

    # --- what is known changes ------------------------------------------------------------

    def _understands(self, link: Link) -> bool:
        """Whether this broker decides a child's semantic constraints as the child would."""
        return not self._changing and link.ontology == self._core.known.name

    def check_ontology(self, link: Link) -> None:
        """A child broker said what it knows: what it asked in other terms is widened."""
        target = link.target
        if target is not None and target.broker and not self._understands(link):
            for _ in self._widen(target):
                pass

    def widen_brokers(self) -> Iterator[None]:
        """Widen what child brokers asked in terms; they will ask again. In slices."""
        for target in list(self._core.brokers.values()):
            yield from self._widen(target)

    def _widen(self, target: Target) -> Iterator[None]:
        for subscriber in list(target.subscribers.values()):
            for unit in [unit for unit in subscriber.units if needs_ontology(unit.asked)]:
                wider = without_terms(unit.asked)
                self._changed(self._core.table.subscribe(subscriber, wider, unit.options))
                yield

    def postpone(self, changing: bool) -> None:
        """What is known begins to change, or has changed (or not, after all)."""
        self._changing = changing
        if changing:
            return
        again, self._postponed = self._postponed, []
        for number, waiting in list(self._filling.items()):
            if needs_ontology(waiting.asked):
                # Its past was being decided under what was known before.
                del self._filling[number]
                assert self._memory is not None
                self._memory.engine.abandon(waiting.backfill)
                again.append((waiting.link, waiting.packet))
        for link, packet in again:
            try:
                self.subscribe(link, packet)
            except KbnError as error:
                self._core.refuse(link, packet.seq, error.code, error.message)

    def _check_limit(self, link: Link) -> None:
        held = self._core.held_units
        owner = link.principal.name
        if held.get(owner, 0) >= self._core.settings.max_subscriptions:
            raise RefusedError(
                "limit",
                f"{owner} holds {held[owner]} subscriptions,"
                f" at most {self._core.settings.max_subscriptions} are allowed",
            )

    def _enter(
        self, link: Link, packet: Packet, subscriber: Subscriber[Target], asked: Subscription
    ) -> None:
        core = self._core
        target = subscriber.target
        if self._memory is not None and subscriber.id not in core.table.subscribers:
            subscriber.after = self._memory.accepted
        target.subscribers[subscriber.id] = subscriber
        options = Options(history=packet.history, hops=hops_left(packet.ttl))
        change = core.table.subscribe(subscriber, asked, options)
        if not change.added:
            self._release(asked, packet.history)
        self._changed(change)
        if not target.durable:
            core.acknowledge(link, packet.seq)
        if packet.since is not None and change.added and self._recalling is not None:
            target.positions = target.positions or not target.broker
            self._recalling.since(change.added[0], packet.since, packet.pos or 0)
        if target.durable:
            # Its ACK precedes its first notification, and follows its being written down.
            # Until then the store keeps what comes for the whole session.
            fresh = bool(change.added) and not change.removed
            self.saving.save(subscriber, asked, link, packet.seq, fresh=fresh)

    def filled(self, stimulus: Filled) -> None:
        """A back-fill ended: the subscription it was for can be entered now."""
        waiting = self._filling.pop(stimulus.number, None)
        memory = self._memory
        if waiting is None or memory is None:
            return
        link, packet, asked, backfill = waiting
        core = self._core
        gone = link.number not in core.links or link.mode is Mode.CLOSING
        if gone or stimulus.failure is not None:
            memory.engine.abandon(backfill)
            if not gone:
                core.refuse(link, packet.seq, "overloaded", stimulus.failure or "")
            return
        memory.adopt(backfill, stimulus.decisions)
        try:
            self._check_limit(link)
            subscriber = self._steering.subscriber(link, packet)
        except KbnError as error:
            self._release(asked, history=False)
            core.refuse(link, packet.seq, error.code, error.message)
            return
        self._enter(link, packet, subscriber, asked)

    def restore(self, session: StoredSession) -> Target:
        """Enter a durable session of an earlier run; it may come back or not.

        Its inner filters are in memory: ``open_history`` saw to that.
        """
        core, memory = self._core, self._memory
        assert memory is not None
        target = Target(session.name, core.new_outbox(durable=True))
        target.durable = target.positions = target.spilling = True
        target.told = target.confirmed = session.confirmed
        target.lost = session.lost
        for said in session.subscriptions:
            subscriber = target.subscribers.get(said.id)
            if subscriber is None:
                subscriber = Subscriber(said.id, target, owner=core.settings.anonymous.name)
                target.subscribers[said.id] = subscriber
            backfill = memory.acquire(said.subscription)
            assert backfill is None, "open_history fills what sessions ask"
            change = core.table.subscribe(subscriber, said.subscription)
            if not change.added:
                self._release(said.subscription, history=False)
            self._changed(change)
            if said.since is not None:
                owed = Owed(said.since, memory.accepted)
                target.past[said.id, said.subscription] = owed
                target.floor = memory.accepted
        return target

    def _release(self, asked: Subscription, history: bool) -> None:
        if self._memory is not None and not history and needs_history(asked):
            self._memory.release(asked)

    def _check(self, link: Link, packet: Packet) -> Subscription:
        asked = packet.payload
        if isinstance(asked, Pattern):
            raise UnsupportedError("patterns of events are not offered yet")
        if not isinstance(asked, Subscription):
            raise RefusedError("syntax", "SUB needs filter{…} or filters{…}")
        from_broker = link.target is not None and link.target.broker
        if self._core.ontology is None and needs_ontology(asked) and not from_broker:
            raise self._core.known.refusal(asked)
        if self._memory is None and (
            needs_history(asked) or packet.history or packet.since is not None
        ):
            raise UnsupportedError("temporal operators need a history, and this broker has none")
        if packet.since is not None and packet.handler is not None:
            raise UnsupportedError("the past is told to sessions, not to handlers")
        principal = link.principal
        if not principal.may_subscribe or (
            principal.subscribe is not None
            and not covers(principal.subscribe, asked, self._core.ontology)
        ):
            raise RefusedError("forbidden", f"{principal.name} may not subscribe to that")
        return asked

    def unsubscribe(self, link: Link, packet: Packet) -> None:
        asked = packet.payload
        if asked is not None and not isinstance(asked, Subscription):
            raise RefusedError("syntax", "UNS takes filter{…}, filters{…} or nothing")
        subscriber = self._steering.owned(link, packet)
        name = packet.id or link.name
        for number, waiting in list(self._filling.items()):
            if waiting.link is link and (waiting.packet.id or link.name) == name:
                self._cancel(number, waiting)
        for postponed in [p for p in self._postponed if p[0] is link]:
            if (postponed[1].id or link.name) == name:
                self._postponed.remove(postponed)
                self._core.refuse(link, postponed[1].seq, "overloaded", _TOO_SOON)
        if subscriber is None:
            self._core.acknowledge(link, packet.seq)
            return
        target = subscriber.target
        self.remove(name, asked, travels=packet.ttl > 1)
        if target.durable:
            self._core.instruct(SaveSession(stored_session(target), link.number, packet.seq))
        else:
            self._core.acknowledge(link, packet.seq)

    def _cancel(self, number: int, waiting: _Filling) -> None:
        del self._filling[number]
        assert self._memory is not None
        self._memory.engine.abandon(waiting.backfill)
        self._core.refuse(waiting.link, waiting.packet.seq, "overloaded", _TOO_SOON)

    def left(self, link: Link) -> None:
        """A link is gone, and with it what it was waiting for."""
        self._postponed = [(of, packet) for of, packet in self._postponed if of is not link]
        for number, waiting in list(self._filling.items()):
            if waiting.link is link:
                del self._filling[number]
                assert self._memory is not None
                self._memory.engine.abandon(waiting.backfill)

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
            if link.target.durable:
                # Goodbye for good; who means to come back hangs up without a word.
                self._core.durables.pop(link.name, None)
                assert self._memory is not None
                self._memory.forget_session(link.name)
            self._core.acknowledge(link, packet.seq)
            self._core.close(link)
        elif self._steering.owned(link, packet) is not None:
            self.remove(name)

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
            self._release(unit.asked, unit.options.history)
        if self._roots is not None and (change.added or change.removed):
            self._roots.changed(change, travels=travels)
