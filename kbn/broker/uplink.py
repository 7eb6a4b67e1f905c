"""The link to the master: find out what it speaks, ask for the roots, pass publications up.

A master of ours is spoken to in a session: every publication carries a number,
stays in the spool until it is acknowledged, and is sent again after a
reconnect; the master knows it by its ``uid``. A Siena master is spoken to as
Siena children do: ``WHO``, ``INF``, ``SUB`` with our handler, fire and forget.
While the link is down, publications wait in the spool, in order and bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from kbn.broker.addresses import parse_address
from kbn.broker.core import Core
from kbn.broker.delivering import Publication, body_for_legacy
from kbn.broker.instructions import Connect, ReadSpool
from kbn.broker.links import Link, Mode, Target
from kbn.broker.recalling import past_publication
from kbn.broker.remembering import Remembering
from kbn.broker.settings import MasterProtocol
from kbn.broker.stimuli import Peer
from kbn.errors import RefusedError
from kbn.knowledge.hierarchy import Hierarchy
from kbn.model import Bag, Filter, Notification, Subscription
from kbn.model.filters import needs_ontology
from kbn.model.publications import LogEntry
from kbn.model.time import TIME_MIN
from kbn.routing.siena import safe_for
from kbn.routing.table import Change, Unit
from kbn.routing.upward import UpwardPosets
from senp import DEFAULT_TTL, Packet, encode, encode_frame, encode_value

#: How many units may wait for a withdrawal that was not to travel.
STALE = 1_000
#: How many semantic units are said anew in one turn of the loop.
SLICE = 50


class Phase(Enum):
    """Where the link stands."""

    DOWN = "down"
    CONNECTING = "connecting"
    ASKING = "asking"  # HLO is out
    IDENTIFYING = "identifying"  # WHO is out, to a Siena master
    SESSION = "session"
    SIENA = "siena"


class Wanted(NamedTuple):
    """A filter the master is asked for: to be told, or (``history``) to be remembered."""

    asked: Filter
    ttl: int
    history: bool = False


#: What a master says when it cannot, not when it will not.
_PASSING = ("store_unavailable", "overloaded")
#: How far before the end of a connection its past is asked for again: clocks differ.
_OVERLAP = 60_000


class Uplink:
    """One broker's way to its master."""

    def __init__(
        self,
        core: Core,
        url: str,
        path_changed: Callable[[], None],
        memory: Remembering | None = None,
    ) -> None:
        self._core = core
        self._address = parse_address(url)
        self._path_changed = path_changed
        self._memory = memory
        self._filters = UpwardPosets()
        #: What the master is asked to tell so that it is remembered here.
        self._histories = UpwardPosets(history=True)
        #: The subscriber id each forwarded filter has at a master of ours. It keeps
        #: it over reconnects, so that saying it again changes nothing there.
        self._forwarded: dict[Wanted, str] = {}
        #: Up to when what the master told for a filter is surely here. Asked for again
        #: from there on, it answers only if it forgot us, as after a restart.
        self._known_until: dict[Wanted, int] = {}
        #: The same for all that was asked in an earlier run of this broker, and is asked
        #: again soon after its start.
        self._known_before = None if memory is None else memory.kept.heard
        self._begun = core.now
        self._has_history = False
        #: Ids to be withdrawn, until the master acknowledged it; by number of the request.
        self._withdrawn: dict[str, int] = {}
        self._sent_to_siena: dict[Wanted, Filter] = {}
        #: Units whose UNS was not to travel: withdrawn at the next reconnect, or when many.
        self._stale: list[Unit[Target]] = []
        #: Publications without an acknowledgement, by their number, oldest first.
        self._spool: dict[int, Publication] = {}
        self._spooled_bytes = 0
        #: More waits in the store than here, behind this arrival number.
        self._stored_after: int | None = None
        self._reading = False
        self._next_seq = 1
        self._next_name = 1
        self._confirmed = 0
        self._id = encode_value(core.settings.identity)
        self.phase = Phase.DOWN
        self.identity: str | None = None
        self.link: Link | None = None
        self.refusal: str | None = None
        self.wake_at: int | None = core.now
        self._retries = 0
        self._siena = core.settings.master_protocol is MasterProtocol.SIENA
        self._origin = Link(0, Peer("log"), core.settings.anonymous, core.now)
        if memory is not None:
            self.spooled_before(list(memory.kept.spooled))
        #: What the master knows, as its HLO says; see ``Ontology.name``.
        self._master_knows = ("", "")
        #: While what is known here changes, no term travels.
        self._muted = False
        #: Filters said anew that the master has not acknowledged, and those they replace.
        self._awaited: set[int] = set()
        self._leaving: dict[Wanted, None] = {}
        self._shifting = False
        #: Called when the master has what it was asked anew.
        self.when_settled: Callable[[], None] = lambda: None
        #: It spoke in a session once: a slow answer does not make it a Siena broker.
        self._is_ours = False

    # --- coming and going --------------------------------------------------------

    def woke(self) -> None:
        """Time to try, or to give up waiting for an answer."""
        if self.wake_at is None or self._core.now < self.wake_at:
            return
        self.wake_at = None
        if self.phase is Phase.DOWN:
            self._connect()
        elif self.phase is Phase.ASKING:
            settings = self._core.settings
            auto = settings.master_protocol is MasterProtocol.AUTO
            if not auto or self._is_ours or settings.advertised is None:
                self._drop("no answer to HLO")
                return
            # No HLO came back in time: an original Siena broker ignores ours.
            self._siena = True
            self._drop("no answer to HLO, trying Siena's protocol")
            self.wake_at = self._core.now
        elif self.phase is Phase.IDENTIFYING:
            # Perhaps it was only slow: ask again as at first.
            self._siena = self._core.settings.master_protocol is MasterProtocol.SIENA
            self._drop("no INF from the master")

    def _connect(self) -> None:
        core = self._core
        number = core.new_link()
        link = Link(number, Peer(str(self._address)), core.settings.anonymous, core.now)
        link.master = True
        link.target = Target("master", core.new_outbox())
        link.target.link = link
        core.links[number] = link
        self.link = link
        self.phase = Phase.CONNECTING
        core.instruct(Connect(number, self._address, local=True, trusted=True))

    def opened(self) -> None:
        """The connection stands: say who we are, in the master's language."""
        assert self.link is not None
        core, link = self._core, self.link
        if self._siena:
            link.mode = Mode.LEGACY
            self.phase = Phase.IDENTIFYING
            self.wake_at = core.now + 10 * core.settings.probe
            self._send(Packet(method="WHO", id=core.settings.identity, handler=self._handler()))
        else:
            link.mode = Mode.SESSION
            self.phase = Phase.ASKING
            auto = core.settings.master_protocol is MasterProtocol.AUTO
            self.wake_at = core.now + (core.settings.probe if auto else core.settings.handshake)
            # A Siena master rejects fields it does not know; one that wants a token is ours.
            token = core.settings.master_token
            self._send(Packet(method="HLO", id=core.settings.identity, token=token))

    def closed(self, reason: str) -> None:
        """The connection is gone; what was not acknowledged will be sent again."""
        core = self._core
        core.log("warning", "master_down", f"master {self._address}: {reason or 'closed'}")
        self._down()

    def _drop(self, why: str) -> None:
        """Leave the master by our own will."""
        if self.link is not None:
            self._core.log("info", "master_drop", f"master {self._address}: {why}")
            self._core.close(self.link)
            self._down()

    def _down(self) -> None:
        core = self._core
        self.link = None
        if self.phase is Phase.SESSION:
            known = core.now - _OVERLAP
            self._known_until = dict.fromkeys(self._known_until, known)
            if self._memory is not None:
                self._memory.hears = False
        self.phase = Phase.DOWN
        self._awaited.clear()
        self._settle()
        self._sent_to_siena.clear()
        wait = min(core.settings.retry_first * 2**self._retries, core.settings.retry_most)
        self._retries = min(self._retries + 1, 16)
        self.wake_at = core.now + int(wait * (0.5 + core.settings.jitter() / 2))

    def _handler(self) -> str:
        advertised = self._core.settings.advertised
        if advertised is None:
            raise RefusedError("unsupported", "a Siena master needs an address to call us at")
        return advertised

    # --- what the master says ------------------------------------------------------

    def hello(self, packet: Packet) -> None:
        """The master's HLO, first or again because its path changed."""
        said = packet.payload if isinstance(packet.payload, Notification) else Notification()
        above = said.get("path")
        path = tuple(str(m) for m in above) if isinstance(above, Bag) else (packet.id or "?",)
        core = self._core
        if core.settings.identity in path:
            self.refusal = f"loop: {' -> '.join((core.settings.identity, *path))}"
            core.log("error", "loop", f"the master's way to the root leads here: {self.refusal}")
            if self.link is not None:
                core.refuse(self.link, None, "loop", self.refusal)
            self._retries = 16
            self._drop("loop")
            self.wake_at = core.now + core.settings.retry_most
            return
        self.refusal = None
        self.identity = packet.id
        able = said.get("capabilities")
        self._has_history = isinstance(able, Bag) and "history" in able
        self._set_path(path)
        knows = (str(said.get("ontology", "")), str(said.get("prefixes", "")))
        self._master_knows = knows
        if self.phase is Phase.ASKING:
            self._established(Phase.SESSION)
        self._say_anew_soon()

    def _set_path(self, above: tuple[str, ...]) -> None:
        path = (self._core.settings.identity, *above)
        if path != self._core.path:
            self._core.path = path
            self._path_changed()

    def informed(self, packet: Packet) -> None:
        """INF: a Siena master's identity."""
        if self.phase is Phase.IDENTIFYING:
            self.identity = packet.id
            self._set_path((packet.id or "?",))
            self._established(Phase.SIENA)

    def acknowledged(self, seq: int) -> None:
        """The master has it: the spool may forget it."""
        if seq in self._awaited:
            self._awaited.discard(seq)
            self._settle()
        publication = self._spool.pop(seq, None)
        if publication is not None:
            self._spooled_bytes -= len(publication.body)
            if self._memory is not None:
                self._memory.unspool(publication.seq)
                self._read_spool()
        elif self._withdrawn:
            self._withdrawn = {n: s for n, s in self._withdrawn.items() if s != seq}

    def refused(self, packet: Packet) -> None:
        """The master said no: for now, or sending it again would not change that."""
        core = self._core
        core.log("warning", "master_refused", f"{packet.code}: {packet.reason}")
        if packet.seq in self._awaited:
            self._awaited.discard(packet.seq)
            self._settle()
        if packet.code in _PASSING:
            # It will say yes one day: all that is not acknowledged goes again, in order.
            self._drop(f"{packet.code}: try again later")
        elif packet.seq is not None and packet.seq in self._spool:
            self.acknowledged(packet.seq)
            core.accounts.spooled_dropped += 1

    def heard(self, pos: int) -> None:
        """A publication with a position came down: confirm it."""
        if pos > self._confirmed:
            self._confirmed = pos
            self._send(Packet(method="ACK", pos=pos))

    def hear_again(self, why: str) -> None:
        """What the master told could not be kept: have it told again from what was."""
        if self.phase is Phase.SESSION:
            self._drop(why)

    @property
    def confirmed(self) -> int:
        return self._confirmed

    def _established(self, phase: Phase) -> None:
        core = self._core
        self.phase = phase
        self.wake_at = None
        self._retries = 0
        core.log("info", "master_up", f"master {self.identity} at {self._address}: {phase.value}")
        if phase is Phase.SESSION:
            self._is_ours = True
            self._send(
                Packet(
                    method="INF",
                    id=core.settings.identity,
                    seq=self._number(),
                    pos=self._confirmed,
                    durable=True,
                    payload=self._what_is_known(),
                )
            )
        self._forget_stale()
        for root in self._filters.roots():
            self._forward(Wanted(*root))
        for root in self._histories.roots():
            self._forward(Wanted(*root, history=True))
        if self._memory is not None:
            self._memory.hears = phase is Phase.SESSION
        for name in list(self._withdrawn):
            self._withdraw_name(name)
        for seq, publication in self._spool.items():
            self._send_up(seq, publication)
        if phase is Phase.SIENA:
            # Nobody acknowledges there: what was written is gone from here.
            for seq in list(self._spool):
                self.acknowledged(seq)

    # --- what goes up ----------------------------------------------------------------

    def changed(self, change: Change[Target], *, travels: bool = True) -> None:
        """The table changed: forward what became maximal, then withdraw what no longer is."""
        if not travels:
            self._stale += change.removed
            if len(self._stale) < STALE:
                return
            change = Change((), tuple(self._stale))
            self._stale = []
        for filters, history in ((self._filters, False), (self._histories, True)):
            shift = filters.apply(change)
            for root in shift.forward:
                self._forward(Wanted(*root, history))
            for root in shift.withdraw:
                self._withdraw(Wanted(*root, history))

    # --- terms ---------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether the master has everything that was said anew."""
        return not self._awaited

    def stop_speaking(self) -> Iterator[None]:
        """Terms are about to mean something else here: have them widened; in slices."""
        self._muted = True
        yield from self._say_anew()

    def speak_again(self) -> None:
        """Tell the master what is known now; terms travel if it knows the same."""
        self._muted = False
        if self.phase is Phase.SESSION:
            known = self._what_is_known()
            self._send(Packet(method="INF", id=self._core.settings.identity, payload=known))
        self._say_anew_soon()

    def _what_is_known(self) -> Notification | None:
        known = self._core.known
        if known.hierarchy is None and self._filters.speaking is None:
            return None
        return Notification({"ontology": known.hash, "prefixes": known.prefixes})

    def _common_knowledge(self) -> Hierarchy | None:
        """What the master knows as we do, if it does."""
        known = self._core.known
        same = known.name == self._master_knows and not self._muted
        return known.hierarchy if same else None

    def _say_anew_soon(self) -> None:
        if self._common_knowledge() is not self._filters.speaking:
            self._core.spread(self._say_anew())

    def _say_anew(self) -> Iterator[None]:
        """Say what units ask as master and we understand each other now.

        What comes anew is said at once, what it replaces is withdrawn when the master
        has all of it. Units that come meanwhile are said the new way by themselves.
        """
        speaking = self._common_knowledge()
        if self.phase is not Phase.SESSION or speaking is self._filters.speaking:
            return
        both = ((self._filters, False), (self._histories, True))
        for filters, _ in both:
            filters.speaking = speaking
        units = [u for u in self._core.table.units.values() if needs_ontology(u.asked)]
        yield
        for at in range(0, len(units), SLICE):
            for filters, history in both:
                shift = filters.say_anew(units[at : at + SLICE])
                self._shifting = True
                for root in shift.forward:
                    self._forward(Wanted(*root, history))
                self._shifting = False
                for root in shift.withdraw:
                    self._leaving[Wanted(*root, history)] = None
            yield
        self._settle()

    def _settle(self) -> None:
        """Withdraw what was replaced, once the master has all that replaces it."""
        if self._awaited:
            return
        leaving, self._leaving = self._leaving, {}
        for wanted in leaving:
            self._withdraw(wanted)
        self.when_settled()

    def _forget_stale(self) -> None:
        stale, self._stale = self._stale, []
        self.changed(Change((), tuple(stale)))

    def _forward(self, wanted: Wanted) -> None:
        core = self._core
        self._leaving.pop(wanted, None)
        if self.phase is Phase.SIENA:
            safe = safe_for(wanted.asked, self._sent_to_siena.values())
            self._sent_to_siena[wanted] = safe
            self._send(self._to_siena("SUB", safe, wanted.ttl))
            return
        # Each filter under a name of its own: one that covers another must not
        # replace it, or the withdrawal of the wider would take both.
        name = self._forwarded.get(wanted)
        if name is None:
            name = f"{core.settings.identity}/{self._next_name}"
            self._next_name += 1
            self._forwarded[wanted] = name
        if self.phase is Phase.SESSION:
            since = None
            if wanted.history or (self._has_history and self._memory is not None):
                since = self._known_until.get(wanted, self._past_of(wanted))
                self._known_until[wanted] = core.now - _OVERLAP
            number = self._number()
            if self._shifting:
                self._awaited.add(number)
            self._send(
                Packet(
                    method="SUB",
                    ttl=wanted.ttl,
                    id=name,
                    seq=number,
                    history=wanted.history,
                    since=since,
                    payload=Subscription([wanted.asked]),
                )
            )

    def _past_of(self, wanted: Wanted) -> int | None:
        """From when on a filter needs the past that this run did not ask for yet."""
        if wanted.history:
            return TIME_MIN
        fresh = self._core.now - self._begun >= self._core.settings.unreachable
        if fresh or self._known_before is None:
            return None
        return self._known_before - _OVERLAP

    def _withdraw(self, wanted: Wanted) -> None:
        self._leaving.pop(wanted, None)
        name = self._forwarded.pop(wanted, None)
        self._known_until.pop(wanted, None)
        if name is not None:
            self._withdraw_name(name)
        gone = self._sent_to_siena.pop(wanted, None)
        if gone is not None:
            # UNS takes along whatever the filter covers, so what stays is said again.
            self._send(self._to_siena("UNS", gone))
            for still, kept in self._sent_to_siena.items():
                self._send(self._to_siena("SUB", kept, still.ttl))

    def _withdraw_name(self, name: str) -> None:
        self._withdrawn[name] = self._number()
        if self.phase is Phase.SESSION:
            self._send(Packet(method="UNS", id=name, seq=self._withdrawn[name]))

    def _to_siena(self, method: str, asked: Filter, ttl: int = DEFAULT_TTL) -> Packet:
        return Packet(
            method=method,
            ttl=ttl,
            id=self._core.settings.identity,
            to=self.identity,
            handler=self._handler() if method == "SUB" else None,
            payload=Subscription([asked]),
        )

    def publish(self, publication: Publication) -> None:
        """Send it up now, or keep it until the link stands."""
        if self.phase is Phase.SIENA:
            self._send_up(0, publication)
            return
        if self._stored_after is not None:
            return  # the store has it, behind others that go first
        if self._memory is not None and self._spooled_bytes > self._core.settings.spool:
            self._stored_after = publication.seq - 1
            return
        self._keep(publication)
        while self._spooled_bytes > self._core.settings.spool and self._memory is None:
            self.acknowledged(next(iter(self._spool)))
            self._core.accounts.spooled_dropped += 1

    def _keep(self, publication: Publication) -> None:
        seq = self._number()
        self._spool[seq] = publication
        self._spooled_bytes += len(publication.body)
        if self.phase is Phase.SESSION:
            self._send_up(seq, publication)

    def spooled_before(self, entries: list[LogEntry] | None) -> None:
        """What the store kept for the master, next in order; none left if empty.

        None: it could not be read; ``read_again`` tries when time has passed.
        """
        self._reading = False
        if entries is None:
            return
        for entry in entries:
            self._keep(past_publication(entry, self._origin))
        self._stored_after = entries[-1].seq if entries else None
        if entries:
            self._read_spool()

    def read_again(self) -> None:
        """Time has passed: what could not be read from the store may be asked for again."""
        self._read_spool()

    def _read_spool(self) -> None:
        """Have more read from the store once half of what is here went up."""
        room = self._spooled_bytes <= self._core.settings.spool // 2
        if self._stored_after is not None and not self._reading and room:
            self._reading = True
            if self._memory is not None:
                self._memory.flush()
            self._core.instruct(ReadSpool(self._stored_after))

    @property
    def established(self) -> bool:
        """Whether the master is reached and knows us."""
        return self.phase in (Phase.SESSION, Phase.SIENA)

    @property
    def spooled(self) -> int:
        """How many publications wait for the master or for its acknowledgement."""
        return len(self._spool)

    def _send_up(self, seq: int, publication: Publication) -> None:
        head = b'senp{version=1 method="PUB" ttl=%d id=%s' % (publication.ttl, self._id)
        if self.phase is Phase.SESSION:
            packet = b"%s seq=%d uid=%s at=%d} %s" % (
                head,
                seq,
                encode_value(publication.uid),
                publication.at,
                publication.body,
            )
        else:
            body = body_for_legacy(publication)
            packet = b"%s to=%s} %s" % (head, encode_value(self.identity), body)
        self._write(encode_frame(packet))

    def _number(self) -> int:
        self._next_seq += 1
        return self._next_seq

    def _send(self, packet: Packet) -> None:
        self._write(encode_frame(encode(packet)))

    def _write(self, frame: bytes) -> None:
        if self.link is not None and self.link.target is not None:
            self.link.target.outbox.answer(frame)
            self._core.touch(self.link.target)
