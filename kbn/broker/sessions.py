"""HLO, credentials, keep-alive, and what becomes of a peer that leaves."""

from __future__ import annotations

from collections.abc import Callable

from kbn.broker.core import Core
from kbn.broker.instructions import Authenticate, Forget, SaveSession, Trim
from kbn.broker.links import Link, Mode, Target
from kbn.broker.recalling import Recalling
from kbn.broker.remembering import Remembering
from kbn.broker.saving import stored_session
from kbn.broker.settings import Principal
from kbn.broker.stimuli import Trimmed
from kbn.broker.subscribing import Subscribing
from kbn.errors import RefusedError
from kbn.model import Bag, Notification, Value
from senp import Packet

CAPABILITIES = ("bag", "batch", "broker")
WITH_A_STORE = ("temporal", "history", "durable")
PROTOCOL = 1
ASKS = (
    "this broker asks for credentials in HLO: use --token or KBN_TOKEN"
    " (or --user with KBN_PASSWORD)"
)


class Sessions:
    """Turns links into sessions and looks after them."""

    def __init__(
        self,
        core: Core,
        subscribing: Subscribing,
        resume: Callable[[Link], None],
        memory: Remembering | None = None,
        recalling: Recalling | None = None,
    ) -> None:
        self._core = core
        self._subscribing = subscribing
        self._memory = memory
        self._recalling = recalling
        #: Called once a link that waited for its credentials may go on.
        self._resume = resume

    # --- becoming a session ----------------------------------------------------

    def hello(self, link: Link, packet: Packet) -> None:
        """The first packet of a session; a second one is an error."""
        if link.mode is not Mode.UNKNOWN:
            raise RefusedError("syntax", "this connection said HLO before")
        if packet.durable and packet.id is None:
            raise RefusedError("syntax", "a durable session needs a name: HLO id=")
        link.name = packet.id or f"session-{link.number}"
        link.target = Target(link.name, self._core.new_outbox())
        link.target.link = link
        link.hello_seq = packet.seq
        link.hello = packet
        if packet.durable and self._recalling is None:
            link.mode = Mode.SESSION
            self._core.refuse(
                link, packet.seq, "unsupported", "durable sessions need a store, there is none"
            )
            self._core.close(link)
            return
        given = packet.token is not None or packet.user is not None
        if link.peer.certified is not None:
            self._welcome(link, link.peer.certified, packet.seq)
        elif given:
            link.mode = Mode.WAITING
            self._core.instruct(
                Authenticate(link.number, packet.token, packet.user, packet.password)
            )
        elif self._core.settings.credentials_required:
            self._turn_away(link, ASKS)
        else:
            self._welcome(link, self._core.settings.anonymous, packet.seq)

    def authenticated(self, link: Link, principal: Principal | None) -> None:
        """The answer about the credentials of a waiting link."""
        if link.mode is not Mode.WAITING:
            return
        if principal is None:
            self._turn_away(link, "unknown user, password or token")
            return
        self._welcome(link, principal, link.hello_seq)
        self._resume(link)

    def _turn_away(self, link: Link, reason: str) -> None:
        """Who did not say, or is not, somebody we know: told, logged and closed."""
        link.mode = Mode.SESSION
        self._core.refuse(link, link.hello_seq, "auth", reason)
        self._core.log("warning", "auth", f"{link.peer.address}: auth: {reason}")
        self._core.close(link)

    def _welcome(self, link: Link, principal: Principal, seq: int | None) -> None:
        link.principal = principal
        link.mode = Mode.SESSION
        hello = link.hello
        if hello is not None and hello.durable:
            self._come_back(link, hello.pos)
        else:
            self.greet(link)
            self._core.acknowledge(link, seq)

    # --- durable sessions ------------------------------------------------------------

    def _come_back(self, link: Link, pos: int | None) -> None:
        """A durable session is here, for the first time or again."""
        core, recalling = self._core, self._recalling
        assert recalling is not None
        target = core.durables.get(link.name)
        if target is None:
            target = Target(link.name, core.new_outbox(durable=True))
            target.durable = target.positions = True
            core.durables[link.name] = target
        elif target.link is not None:
            old = target.link
            self.displace(old)
            # What waits for the older connection, answers included, is not for this one.
            self._subscribing.left(old)
            recalling.stop(target)
            self._keep(target)
        target.link = link
        link.target = target
        target.suspended = False
        lost, target.lost = target.lost, 0
        self.greet(link, lost)
        if lost:
            core.instruct(Forget(losses=((link.name, lost),)))
        if pos is not None:
            self.confirm(target, pos)
        target.told = target.confirmed
        core.instruct(SaveSession(stored_session(target), link.number, link.hello_seq))
        recalling.go_on(target)

    def confirm(self, target: Target, pos: int) -> None:
        """The client has everything up to ``pos``; only positions it was told count."""
        assert self._memory is not None
        if pos <= target.floor:
            return  # perhaps it was told as the past of one unit, with others still to come
        if target.confirmed < pos <= self._memory.accepted:
            target.confirmed = pos
            self._memory.confirm(target.name, pos)
            if target.past and all(owed.told for owed in target.past.values()):
                # It came after all that was owed, so that has arrived too.
                target.past.clear()
                target.floor = 0
                self._core.instruct(SaveSession(stored_session(target), 0, None))

    def trimmed(self, stimulus: Trimmed) -> None:
        """The store cut a backlog: a loss that has a name and is told at resume."""
        target = self._core.durables.get(stimulus.session)
        if target is not None and stimulus.lost:
            target.lost += stimulus.lost
            accounts = self._core.accounts
            accounts.matches += stimulus.lost
            accounts.dropped["backlog"] += stimulus.lost
            accounts.name_loss(stimulus.session, "backlog", stimulus.lost)

    def greet(self, link: Link, lost: int = 0) -> None:
        """Our own HLO: identity, limits, capabilities and the way to the root."""
        limits = self._core.settings.limits
        said: dict[str, Value] = {
            "protocol": PROTOCOL,
            "max_packet": limits.max_packet,
            "max_depth": limits.max_depth,
            "max_constraints": limits.max_constraints,
            "capabilities": Bag(self._capabilities()),
            "ontology": self._core.known.hash,
            "path": Bag(self._core.path),
        }
        if link.target is not None and link.target.durable and self._memory is not None:
            said["pos"] = self._memory.accepted
        if self._core.ontology is not None:
            said["prefixes"] = self._core.known.prefixes
        if lost:
            said["lost"] = lost
        identity = self._core.settings.identity
        self._core.answer(link, Packet(method="HLO", id=identity, payload=Notification(said)))

    def trim(self) -> None:
        """Bound what waits for durable sessions, by age and by size."""
        core = self._core
        if core.durables:
            before = core.now - core.settings.backlog_age
            core.instruct(Trim(tuple(core.durables), before, core.settings.backlog))

    def _capabilities(self) -> tuple[str, ...]:
        held = CAPABILITIES if self._recalling is None else CAPABILITIES + WITH_A_STORE
        return held if self._core.ontology is None else (*held, "semantic")

    def path_changed(self) -> None:
        """Tell every session the new way to the root, or what is known now."""
        for link in self._core.links.values():
            if link.mode is Mode.SESSION and not link.master:
                self.greet(link)

    # --- child brokers -----------------------------------------------------------

    def inform(self, link: Link, packet: Packet) -> None:
        """INF from a session: with ``durable`` the peer says it is a broker.

        Its target outlives the connection; ``pos`` is the last position it has,
        and what came after is sent again.
        """
        said = packet.payload
        if isinstance(said, Notification):
            link.ontology = (str(said.get("ontology", "")), str(said.get("prefixes", "")))
        if link.target is None or link.handler:
            return
        if not packet.durable:
            self._subscribing.check_ontology(link)
            return
        if packet.id != link.name:
            raise RefusedError("syntax", "a broker says INF under the name of its session")
        waiting = self._core.brokers.get(link.name)
        if waiting is None:
            # The session may have subscribed already: the target stays, the outbox changes.
            target = link.target
            kept = self._core.new_outbox(keeping=True)
            # After what it heard from an earlier run, or before we forgot it: a
            # position it has confirmed must never be given out again.
            kept.last_pos = packet.pos or 0
            for frame in target.outbox.take(1 << 30):
                kept.answer(frame)
            target.outbox = kept
            self._core.brokers[link.name] = target
        else:
            if waiting.link is not None and waiting.link is not link:
                self.displace(waiting.link)
            target = waiting
            pending = link.target.outbox.take(1 << 30)
            heard = packet.pos or 0
            # A position of another master's says nothing about what waits here.
            again = target.outbox.rewind(heard if heard <= target.outbox.last_pos else 0)
            target.outbox.last_pos = max(target.outbox.last_pos, heard)
            self._core.accounts.redelivered += again
            for frame in pending:
                target.outbox.answer(frame)
        target.broker = True
        target.since = None
        target.link = link
        link.target = target
        self._subscribing.check_ontology(link)
        self._core.touch(target)

    def displace(self, old: Link) -> None:
        """Another connection came under the name: the older one is told and closed."""
        target = old.target
        old.target = Target(old.name, self._core.new_outbox())
        old.target.link = old
        self._core.refuse(old, None, "name_in_use", f"'{old.name}' connected elsewhere")
        self._core.close(old)
        if target is not None:
            target.link = None

    # --- keeping and losing ------------------------------------------------------

    def left(self, link: Link) -> None:
        """The connection of a session is gone."""
        target = link.target
        if target is None:
            return
        if target.broker and self._core.brokers.get(link.name) is target:
            target.outbox.forget_answers()
            target.link = None
            target.since = self._core.now
            return
        if self._recalling is not None:
            self._subscribing.left(link)
            self._recalling.stop(target)
        if target.durable:
            self._keep(target)
            return
        for subscriber_id in list(target.subscribers):
            self._subscribing.remove(subscriber_id)
        target.outbox.drop_all("unreachable")
        target.link = None

    def _keep(self, target: Target) -> None:
        """A durable session is away: what waits for it waits in the store."""
        # It will be matched anew when it is read from there.
        self._core.accounts.matches -= target.outbox.waiting_ids
        target.outbox.clear()
        target.told = target.confirmed
        target.spilling = True
        target.link = None

    def expire_brokers(self) -> None:
        """A child broker that stays away too long loses its place, with a log line."""
        core = self._core
        for name, target in list(core.brokers.items()):
            if target.since is not None and core.now - target.since >= core.settings.unreachable:
                core.log("warning", "broker_gone", f"child broker {name} stayed away: forgotten")
                for subscriber_id in list(target.subscribers):
                    self._subscribing.remove(subscriber_id)
                target.outbox.drop_all("unreachable")
                del core.brokers[name]

    def keep_alive(self) -> None:
        """Close what never spoke, ask what fell silent, close what does not answer."""
        core, settings = self._core, self._core.settings
        for link in list(core.links.values()):
            silent = core.now - link.heard
            if link.mode is Mode.UNKNOWN and not link.master:
                if core.now - link.opened >= settings.handshake:
                    core.log("info", "handshake", f"{link.peer.address}: no packet in time")
                    core.close(link)
            elif link.mode is Mode.SESSION and silent >= settings.idle:
                if link.pinged and silent >= 2 * settings.idle:
                    core.log("info", "silent", f"{link.name}: no answer to PING")
                    core.close(link)
                elif not link.pinged:
                    link.pinged = True
                    core.answer(link, Packet(method="PING"))
