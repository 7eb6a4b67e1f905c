"""The link to the master: find out what it speaks, ask for the roots, pass publications up.

A master of ours is spoken to in a session: every publication carries a number,
stays in the spool until it is acknowledged, and is sent again after a
reconnect; the master knows it by its ``uid``. A Siena master is spoken to as
Siena children do: ``WHO``, ``INF``, ``SUB`` with our handler, fire and forget.
While the link is down, publications wait in the spool, in order and bounded.
"""

from __future__ import annotations

from collections.abc import Callable

from kbn.broker.addresses import parse_address
from kbn.broker.asking import Asking, Phase
from kbn.broker.core import Core
from kbn.broker.delivering import Publication, body_for_legacy
from kbn.broker.instructions import Connect
from kbn.broker.links import Link, Mode, Target
from kbn.broker.remembering import Remembering
from kbn.broker.settings import MasterProtocol
from kbn.broker.spool import Spool
from kbn.broker.stimuli import Peer
from kbn.errors import RefusedError
from kbn.model import Bag, Notification
from senp import Packet, encode, encode_frame, encode_value

#: What a master says when it cannot, not when it will not.
_PASSING = ("store_unavailable", "overloaded")


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
        self._next_seq = 1
        self._confirmed = 0
        self._id = encode_value(core.settings.identity)
        self.phase = Phase.DOWN
        self.identity: str | None = None
        #: What is asked of the master, and what is on its way there.
        self.asking = Asking(core, self, memory)
        self.spool = Spool(core, memory, self.number, self._from_spool)
        if memory is not None:
            self.spool.stored(list(memory.kept.spooled))
        self.link: Link | None = None
        self.refusal: str | None = None
        self.wake_at: int | None = core.now
        self._retries = 0
        self._siena = core.settings.master_protocol is MasterProtocol.SIENA
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
            self.send(Packet(method="WHO", id=core.settings.identity, handler=self.handler()))
        else:
            link.mode = Mode.SESSION
            self.phase = Phase.ASKING
            auto = core.settings.master_protocol is MasterProtocol.AUTO
            self.wake_at = core.now + (core.settings.probe if auto else core.settings.handshake)
            # A Siena master rejects fields it does not know; one that wants a token is ours.
            token = core.settings.master_token
            self.send(Packet(method="HLO", id=core.settings.identity, token=token))

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
        session = self.phase is Phase.SESSION
        if session and self._memory is not None:
            self._memory.hears = False
        self.phase = Phase.DOWN
        self.asking.cut(session=session)
        wait = min(core.settings.retry_first * 2**self._retries, core.settings.retry_most)
        self._retries = min(self._retries + 1, 16)
        self.wake_at = core.now + int(wait * (0.5 + core.settings.jitter() / 2))

    def handler(self) -> str:
        """Where a Siena master calls us; raises ``RefusedError`` if it cannot."""
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
        self.asking.master_said(said)
        self._set_path(path)
        if self.phase is Phase.ASKING:
            self._established(Phase.SESSION)
        self.asking.say_anew_soon()

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
        """The master has what was sent under this number."""
        if not self.spool.acknowledged(seq):
            self.asking.acknowledged(seq)

    def refused(self, packet: Packet) -> None:
        """The master said no: for now, or sending it again would not change that."""
        core = self._core
        core.log("warning", "master_refused", f"{packet.code}: {packet.reason}")
        self.asking.answered(packet.seq)
        if packet.code in _PASSING:
            # It will say yes one day: all that is not acknowledged goes again, in order.
            self._drop(f"{packet.code}: try again later")
        elif packet.seq is not None:
            self.spool.drop(packet.seq)

    def heard(self, pos: int) -> None:
        """A publication with a position came down: confirm it."""
        if pos > self._confirmed:
            self._confirmed = pos
            self.send(Packet(method="ACK", pos=pos))

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
            self.send(
                Packet(
                    method="INF",
                    id=core.settings.identity,
                    seq=self.number(),
                    pos=self._confirmed,
                    durable=True,
                    payload=self.asking.what_is_known(),
                )
            )
        self.asking.reached()
        if self._memory is not None:
            self._memory.hears = phase is Phase.SESSION
        for seq, publication in self.spool.items():
            self._send_up(seq, publication)
        if phase is Phase.SIENA:
            # Nobody acknowledges there: what was written is gone from here.
            self.spool.clear()

    # --- what goes up ----------------------------------------------------------------

    def publish(self, publication: Publication) -> None:
        """Send it up now, or keep it until the link stands."""
        if self.phase is Phase.SIENA:
            self._send_up(0, publication)
        else:
            self.spool.publish(publication)

    def _from_spool(self, seq: int, publication: Publication) -> None:
        if self.phase is Phase.SESSION:
            self._send_up(seq, publication)

    @property
    def established(self) -> bool:
        """Whether the master is reached and knows us."""
        return self.phase in (Phase.SESSION, Phase.SIENA)

    @property
    def spooled(self) -> int:
        """How many publications wait for the master or for its acknowledgement."""
        return len(self.spool)

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

    def number(self) -> int:
        """The number of the next request or publication."""
        self._next_seq += 1
        return self._next_seq

    def send(self, packet: Packet) -> None:
        """Say something to the master, if a connection stands."""
        self._write(encode_frame(encode(packet)))

    def _write(self, frame: bytes) -> None:
        if self.link is not None and self.link.target is not None:
            self.link.target.outbox.answer(frame)
            self._core.touch(self.link.target)
