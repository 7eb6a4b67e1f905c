"""The one door: ``handle`` takes stimuli and returns instructions.

    packets ─ Received ─▶ BrokerState ─ Flush, Connect, Close, Authenticate, Log ─▶ shell
                              ▲                                                       │
                              └── Opened, Closed, Authenticated, Woke ◀───────────────┘

The same stimuli in the same order always give the same instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kbn.broker.asking import Phase
from kbn.broker.core import Core
from kbn.broker.delivering import Delivering
from kbn.broker.inquiry import Inquiry
from kbn.broker.instructions import Instruction
from kbn.broker.knowing import NOTHING_LOADED, Ontology
from kbn.broker.learning import OWN, Learning
from kbn.broker.links import Link, Mode
from kbn.broker.publishing import Publishing
from kbn.broker.recalling import Recalling
from kbn.broker.remembering import Kept, Remembering
from kbn.broker.sessions import Sessions
from kbn.broker.settings import Settings
from kbn.broker.steering import Steering
from kbn.broker.stimuli import (
    Arrival,
    Authenticated,
    Closed,
    Explained,
    Filled,
    FromLibrary,
    FromStore,
    LookedUp,
    OntologyBuilt,
    OntologyKept,
    OntologyRefused,
    Opened,
    Recalled,
    Received,
    Recorded,
    Resumed,
    Spooled,
    Stimulus,
    Trimmed,
    Unrecorded,
    Woke,
)
from kbn.broker.subscribing import Subscribing
from kbn.broker.uplink import Uplink
from kbn.errors import KbnError, RefusedError
from senp import Packet, WireError

#: How often timers are looked at, when nothing asks for an earlier time.
SWEEP = 1_000

#: Requests whose rooms acknowledge them themselves, at once or later.
_ANSWERED_THERE = ("HLO", "BYE", "SUB", "UNS", "WHO", "ONT")


class BrokerState:
    """One broker. Nothing happens but through ``handle`` and ``take``."""

    def __init__(
        self,
        settings: Settings,
        now: int,
        kept: Kept | None = None,
        known: Ontology = NOTHING_LOADED,
    ) -> None:
        self.core = Core(settings, now, known)
        self.memory = None if kept is None else Remembering(self.core, kept)
        memory = self.memory
        self.uplink = (
            None
            if settings.master is None
            else Uplink(self.core, settings.master, self._path_changed, memory)
        )
        delivering = Delivering(self.core)
        self.recalling = None if memory is None else Recalling(self.core, memory, delivering)
        asking = None if self.uplink is None else self.uplink.asking
        self.steering = Steering(self.core, self.recalling)
        self.subscribing = Subscribing(
            self.core, asking, memory, self.recalling, steering=self.steering
        )
        self.publishing = Publishing(self.core, delivering, self.uplink, memory)
        self.sessions = Sessions(self.core, self.subscribing, self._resume, memory, self.recalling)
        if kept is not None:
            for session in kept.sessions:
                self.core.durables[session.name] = self.subscribing.restore(session)
            assert self.memory is not None
            for asked in kept.acquired:
                self.memory.release(asked)
        self.learning = Learning(self.core, self.subscribing, memory, asking, self._path_changed)
        if self.uplink is not None:
            self.uplink.asking.when_settled = self.learning.proceed
        self.inquiry = Inquiry(self.core, self.steering, self.uplink, memory)
        self.draining = False
        self._swept = self._trimmed = now
        #: When inner filters of an earlier run are forgotten, if nobody asked for them.
        self._prune_at: int | None = now + settings.unreachable
        self._requests: dict[str, Callable[[Link, Packet], None]] = {
            "SUB": self.subscribing.subscribe,
            "UNS": self.subscribing.unsubscribe,
            "BYE": self.subscribing.bye,
            "SUS": self.steering.suspend,
            "RES": self.steering.resume,
            "MAP": self.steering.map,
            "ADV": self.steering.advertise,
            "UNA": self.steering.unadvertise,
            "WHO": self.inquiry.who,
            "INF": self._inform,
            "HLO": self.sessions.hello,
            "NOP": self._nothing,
            "PONG": self._nothing,
            "CNF": self._administrative,
            "OFF": self._administrative,
            "CTX": self._contexts,
            "ONT": self.learning.ont,
        }

    # --- the door ------------------------------------------------------------------

    def handle(self, now: int, *stimuli: Stimulus) -> list[Instruction]:
        """Take in what happened by ``now``; return what to do about it."""
        self.core.now = now
        for stimulus in stimuli:
            if isinstance(stimulus, Received):
                self._received(stimulus.link, stimulus.arrivals)
            elif isinstance(stimulus, Opened):
                self._opened(stimulus)
            elif isinstance(stimulus, Closed):
                self._closed(stimulus)
            elif isinstance(stimulus, Authenticated):
                link = self.core.links.get(stimulus.link)
                if link is not None:
                    self.sessions.authenticated(link, stimulus.principal)
            elif isinstance(stimulus, Woke):
                self._woke()
            elif isinstance(stimulus, FromLibrary):
                self._from_library(stimulus)
            else:
                self._from_store(stimulus)
        return self.take_instructions()

    def _from_library(self, stimulus: FromLibrary) -> None:
        """What is known is about to change."""
        if isinstance(stimulus, OntologyBuilt):
            self.learning.built(stimulus)
        elif isinstance(stimulus, OntologyKept):
            self.learning.kept(stimulus)
        elif isinstance(stimulus, OntologyRefused):
            self.learning.refused(stimulus)
        else:
            assert isinstance(stimulus, Resumed)
            self.core.resumed()

    def _from_store(self, stimulus: FromStore) -> None:
        """The history answered."""
        if isinstance(stimulus, Recorded):
            self.publishing.recorded(stimulus.upto, stimulus.number)
        elif isinstance(stimulus, Unrecorded):
            self._unrecorded(stimulus)
        elif isinstance(stimulus, Filled):
            (self.learning if stimulus.number == OWN else self.subscribing).filled(stimulus)
        elif isinstance(stimulus, Recalled):
            if self.recalling is not None:
                self.recalling.recalled(stimulus)
        elif isinstance(stimulus, Spooled):
            if self.uplink is not None:
                self.uplink.spool.stored(stimulus.entries)
        elif isinstance(stimulus, Trimmed):
            self.sessions.trimmed(stimulus)
        elif isinstance(stimulus, Explained):
            self.inquiry.explained(stimulus)
        elif isinstance(stimulus, LookedUp):
            self.inquiry.looked_up(stimulus)
        else:
            self.subscribing.saving.saved(stimulus)

    def take_instructions(self) -> list[Instruction]:
        """What is to be done by now; the shell also asks after it took frames."""
        out = self.core.take_instructions()
        if self.memory is not None:
            record = self.memory.take_record()
            if record is not None:
                out.append(record)
        return out

    def take(self, number: int, most: int) -> list[bytes]:
        """Frames for a link that can be written to; what is taken counts as delivered.

        The caller looks for new instructions afterwards: room in an outbox may
        release answers that other links wait for.
        """
        link = self.core.links.get(number)
        if link is None or link.target is None:
            return []
        outbox = link.target.outbox
        before = outbox.waiting_ids
        frames = outbox.take(most)
        self.core.accounts.delivered += before - outbox.waiting_ids
        if self.publishing.answering.blocking and not outbox.full:
            self.publishing.answering.drained(link.target)
        if not outbox:
            self.core.release_handler(link.target)
            if link.target.spilling and self.recalling is not None:
                self.recalling.drained(link.target)
        return frames

    @property
    def wake_at(self) -> int:
        """When ``Woke`` should come at the latest."""
        times = [self._swept + SWEEP]
        if self.uplink is not None and self.uplink.wake_at is not None:
            times.append(self.uplink.wake_at)
        times.extend(
            target.next_try
            for target in self.core.handlers.values()
            if target.next_try is not None and target.link is None
        )
        return min(times)

    # --- connections -----------------------------------------------------------------

    def _opened(self, stimulus: Opened) -> None:
        core = self.core
        link = core.links.get(stimulus.link)
        if link is None:
            link = Link(stimulus.link, stimulus.peer, core.settings.anonymous, core.now)
            core.links[link.number] = link
            return
        link.peer = stimulus.peer
        link.opened = link.heard = core.now
        if link.master and self.uplink is not None:
            self.uplink.opened()
        elif link.target is not None:
            target = link.target
            target.link = link
            target.since = target.next_try = None
            target.retries = 0
            core.touch(target)

    def _closed(self, stimulus: Closed) -> None:
        core = self.core
        link = core.links.pop(stimulus.link, None)
        if link is None:
            return
        self.learning.left(link)
        if link.master:
            if self.uplink is not None and self.uplink.link is link:
                self.uplink.closed(stimulus.reason)
        elif link.handler:
            self._handler_lost(link, stimulus.reason)
        else:
            self.sessions.left(link)
        if link.target is not None and self.publishing.answering.blocking:
            self.publishing.answering.drained(link.target)

    def _unrecorded(self, failure: Unrecorded) -> None:
        """The store is down, full or slow: say so to whoever waits, and go on."""
        memory = self.memory
        if memory is None or failure.epoch != memory.epoch:
            return
        self.core.log("error", "store", failure.reason)
        self.publishing.unrecorded(failure.code, failure.reason)

    def _handler_lost(self, link: Link, reason: str) -> None:
        """A legacy subscriber could not be reached, or its connection ended."""
        core, target = self.core, link.target
        if target is None:
            return
        target.link = None
        target.next_try = None
        if not target.outbox:
            # It closed an idle connection, as Siena does: call again when there is news.
            core.release_handler(target)
            return
        if target.since is None:
            target.since = core.now
        wait = min(core.settings.retry_first * 2**target.retries, core.settings.retry_most)
        target.retries = min(target.retries + 1, 16)
        target.next_try = core.now + int(wait * (0.5 + core.settings.jitter() / 2))
        core.log("info", "handler_retry", f"{target.name}: {reason or 'closed'}")

    def _woke(self) -> None:
        core = self.core
        if self.uplink is not None:
            self.uplink.woke()
        for target in list(core.handlers.values()):
            if target.link is not None or target.next_try is None or target.next_try > core.now:
                continue
            if target.since is not None and core.now - target.since >= core.settings.unreachable:
                self._give_up(target.name, list(target.subscribers))
                target.outbox.drop_all("unreachable")
                assert target.address is not None
                core.handlers.pop(target.address, None)
                self.publishing.answering.drained(target)
            else:
                core.connect(target)
        if core.now - self._swept >= SWEEP:
            self._swept = core.now
            self.sessions.keep_alive()
            self.sessions.expire_brokers()
            self._sweep_history()

    def _sweep_history(self) -> None:
        """Try again what the store refused; let go what nobody asks any more."""
        core, memory, recalling = self.core, self.memory, self.recalling
        if memory is None or recalling is None:
            return
        memory.rested()
        recalling.retry()
        self.subscribing.saving.save_again()
        if self.uplink is not None:
            self.uplink.spool.read_on()
        if self._prune_at is not None and core.now >= self._prune_at:
            self._prune_at = None
            memory.prune()
        if core.now - self._trimmed >= core.settings.care:
            self._trimmed = core.now
            self.sessions.trim()

    def _give_up(self, name: str, subscribers: Sequence[str]) -> None:
        self.core.log(
            "warning",
            "unreachable",
            f"{name} could not be reached: {len(subscribers)} subscribers removed",
        )
        for subscriber_id in subscribers:
            self.subscribing.remove(subscriber_id)

    # --- packets -----------------------------------------------------------------------

    def _received(self, number: int, arrivals: Sequence[Arrival | WireError]) -> None:
        link = self.core.links.get(number)
        if link is None:
            return
        link.heard = self.core.now
        link.pinged = False
        for arrival in arrivals:
            if isinstance(arrival, WireError):
                self._malformed(link, arrival)
            elif link.mode is Mode.WAITING:
                link.held.append(arrival)
            elif link.mode is not Mode.CLOSING:
                self._packet(link, arrival)

    def _malformed(self, link: Link, error: WireError) -> None:
        if link.mode is Mode.UNKNOWN:
            link.mode = Mode.LEGACY
        self.core.refuse(link, error.seq, error.code, error.message)

    def _packet(self, link: Link, arrival: Arrival) -> None:
        packet = arrival.packet
        method = packet.method
        if link.mode is Mode.UNKNOWN and method != "HLO":
            if self.core.settings.credentials_required and link.peer.certified is None:
                self.core.refuse(link, None, "auth", "legacy connections are not allowed here")
                self.core.close(link)
                return
            if link.peer.certified is not None:
                link.principal = link.peer.certified
            link.mode = Mode.LEGACY
        try:
            if method == "PUB":
                try:
                    self.publishing.publish(link, packet, arrival.body)
                finally:
                    if packet.pos is not None and link.master:
                        self.publishing.heard(packet.pos)
                return
            self.core.accounts.packets_in[method if method in self._requests else "other"] += 1
            if packet.ttl <= 0:
                return
            if method in ("ACK", "ERR", "PING"):
                self._conversation(link, packet)
                return
            if link.master and method == "HLO" and self.uplink is not None:
                self.uplink.hello(packet)
                return
            request = self._requests.get(method)
            if request is None:
                raise RefusedError("unknown_method", f"there is no method '{method[:40]}'")
            request(link, packet)
        except KbnError as error:
            self.core.refuse(link, packet.seq, error.code, error.message)
            return
        if method not in _ANSWERED_THERE:
            self.core.acknowledge(link, packet.seq)

    def _conversation(self, link: Link, packet: Packet) -> None:
        """Answers to what we said, and PING."""
        if packet.method == "PING":
            self.core.answer(link, Packet(method="PONG", seq=packet.seq))
        elif link.master and self.uplink is not None:
            if packet.method == "ERR":
                self.uplink.refused(packet)
            elif packet.seq is not None:
                self.uplink.acknowledged(packet.seq)
        elif packet.method == "ACK" and packet.pos is not None and link.target is not None:
            if link.target.durable:
                self.sessions.confirm(link.target, packet.pos)
            else:
                link.target.outbox.confirm(packet.pos)

    def _inform(self, link: Link, packet: Packet) -> None:
        """INF: from a Siena master its identity, from a child that it is a broker."""
        asking = self.uplink is not None and self.uplink.phase is Phase.IDENTIFYING
        if self.uplink is not None and asking and link.mode is Mode.LEGACY:
            self.uplink.informed(packet)
        else:
            self.sessions.inform(link, packet)

    def _nothing(self, link: Link, packet: Packet) -> None:
        """NOP and PONG: being heard was the point."""

    def _administrative(self, link: Link, packet: Packet) -> None:
        if not link.principal.admin:
            raise RefusedError(
                "forbidden", f"{packet.method} is refused unless enabled for {link.principal.name}"
            )
        if packet.method == "OFF":
            self.draining = True
            self.core.log("warning", "off", f"{link.principal.name} asked to switch off")
        else:
            raise RefusedError("unsupported", "CNF: configuration is a file, not a packet")

    def _contexts(self, link: Link, packet: Packet) -> None:
        raise RefusedError("unsupported", "contexts are not offered yet")

    def _resume(self, link: Link) -> None:
        """Credentials were good: handle what came meanwhile, in order."""
        held, link.held = link.held, []
        for arrival in held:
            if link.mode is Mode.SESSION:
                self._packet(link, arrival)

    def _path_changed(self) -> None:
        self.sessions.path_changed()
