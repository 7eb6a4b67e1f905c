"""A client's side of a session, without I/O: requests and bytes in, bytes and happenings out.

Law: every request gets exactly one ``Answered`` or ``Declined``, over however
many connections it takes. What is unanswered when a connection ends is sent
again on the next one, with the ``seq`` and the ``uid`` it had, so that the
broker can tell a publication it has already seen. Subscriptions held are made
again, before anything else is sent; one that asked for the past goes on behind
the last position it was told, and what a durable session tells twice is heard once.

    opened ─▶ (greeting byte) ─▶ HLO ─▶ (HLO) ─▶ Welcomed, requests flow ─▶ closed ─▶ opened …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from kbn.client.events import Delivery
from kbn.client.happenings import (
    Answered,
    Arrived,
    Complained,
    Declined,
    Ended,
    Happening,
    Server,
    Welcomed,
)
from kbn.client.holding import Holding
from kbn.client.requests import Credentials, Kind, Request
from kbn.errors import KbnError, RefusedError
from kbn.model import Notification, Subscription, Value
from senp import (
    ACCEPTED,
    REFUSED,
    FrameReader,
    Packet,
    WireError,
    decode,
    encode,
    encode_event,
    encode_frame,
)

#: Codes after which coming back would only be refused again, or chase away another client.
_FINAL = frozenset(("auth", "forbidden", "name_in_use", "loop", "unsupported", "syntax"))


class _Phase(Enum):
    CLOSED = "closed"
    GREETING = "greeting"
    HELLO = "hello"
    READY = "ready"


class Conversation:
    """One client, over one connection after another.

    ``durable`` makes a session whose deliveries the broker keeps until ``confirm``;
    ``resume`` is the position after which its first connection goes on.
    """

    def __init__(
        self,
        new_id: Callable[[], str],
        credentials: Credentials | None = None,
        *,
        durable: bool = False,
        resume: int | None = None,
    ) -> None:
        self.server: Server | None = None
        self.durable = durable
        self.new_id = new_id
        self._resume_at = resume
        self._credentials = credentials or Credentials()
        self._phase = _Phase.CLOSED
        self._frames = FrameReader()
        self._name = ""
        self._next_seq = 0
        #: Unanswered requests by seq, in the order they were made.
        self._pending: dict[int, Request] = {}
        #: What is subscribed to.
        self.holding = Holding(durable)
        self._out: list[bytes] = []

    # --- connections ----------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether requests go straight to the broker."""
        return self._phase is _Phase.READY

    def opened(self, name: str) -> None:
        """A connection stands; the session on it will have this name."""
        self._phase = _Phase.GREETING
        self._frames = FrameReader()
        self._name = name
        self.holding.begin(name)
        self._out.clear()

    def closed(self) -> list[Happening]:
        """The connection is gone. What a lost connection brings about by itself is answered."""
        self._phase = _Phase.CLOSED
        self._out.clear()
        done = [seq for seq, request in self._pending.items() if self._moot(request)]
        for seq in done:
            del self._pending[seq]
        for request in self._pending.values():
            request.rows.clear()
        return [Answered(seq) for seq in done]

    def _moot(self, request: Request) -> bool:
        if request.kind is Kind.SUBSCRIBE:
            return request.again or request.number not in self.holding.all
        return request.kind in (Kind.UNSUBSCRIBE, Kind.LEAVE)

    def take(self) -> bytes:
        """Everything that waits to be written, once."""
        out, self._out = self._out, []
        return b"".join(out)

    # --- requests: each returns the seq of its answer --------------------------------

    def publish(self, event: Notification) -> tuple[int, str]:
        """Publish one event; also returns its id. Raises ``KbnError`` if it cannot be sent."""
        return self.publish_encoded(encode_event(event))

    def publish_encoded(self, payload: bytes) -> tuple[int, str]:
        """Publish ``event{…}`` or ``events{…}`` that is encoded already."""
        seq, uid = self._next_seq + 1, self.new_id()
        head = f'senp{{version=1 method="PUB" ttl=30 seq={seq} uid="{uid}"}} '
        self._request(Request(Kind.PUBLISH, encode_frame(head.encode("ascii") + payload)))
        return seq, uid

    def subscribe(
        self, asked: Subscription, since: int | None = None, pos: int = 0
    ) -> tuple[int, int]:
        """Subscribe; returns the number of the subscription and the seq.

        ``since`` asks for the past from then on, by arrival at the broker. ``pos`` is how
        far this subscription of a durable session was told already.
        """
        number = self.holding.add(asked, since, pos)
        try:
            frame = self.holding.frame(number, self._next_seq + 1)
        except KbnError:
            self.holding.release(number)
            raise
        return number, self._request(Request(Kind.SUBSCRIBE, frame, number))

    def unsubscribe(self, number: int) -> int | None:
        """End a subscription; None when the broker need not be asked."""
        name = self.holding.release(number)
        return self.unsubscribe_id(name) if name is not None and self.ready else None

    def unsubscribe_id(self, name: str) -> int:
        """End whatever is subscribed under this id."""
        packet = Packet(method="UNS", id=name, seq=self._next_seq + 1)
        return self._request(Request(Kind.UNSUBSCRIBE, encode_frame(encode(packet))))

    def ask(self, what: str, after: int = 0, **more: Value) -> int:
        """Ask the broker: ``who``, ``subs``, ``drops``, ``event`` or ``explain``."""
        asked: dict[str, Value] = {"what": what, "after": after, **more}
        packet = Packet(method="WHO", seq=self._next_seq + 1, payload=Notification(asked))
        return self._request(Request(Kind.ASK, encode_frame(encode(packet))))

    def confirm(self, pos: int) -> None:
        """Everything up to ``pos`` was dealt with; said again after a lost connection."""
        self._resume_at = max(pos, self._resume_at or 0)
        if self.ready:
            self._say(Packet(method="ACK", pos=pos))

    def ontology(self, said: Mapping[str, Value]) -> int:
        """Ask for a change of what the broker knows, or for what it knows."""
        packet = Packet(method="ONT", seq=self._next_seq + 1, payload=Notification(said))
        return self._request(Request(Kind.ASK, encode_frame(encode(packet))))

    def ping(self) -> int:
        """Ask for a sign of life."""
        packet = Packet(method="PING", seq=self._next_seq + 1)
        return self._request(Request(Kind.ASK, encode_frame(encode(packet))))

    def leave(self) -> int:
        """Say goodbye; the broker closes the connection after its answer."""
        packet = Packet(method="BYE", seq=self._next_seq + 1)
        return self._request(Request(Kind.LEAVE, encode_frame(encode(packet))))

    def murmur(self, method: str) -> None:
        """Send NOP or PING without asking for an answer of its own, if there is a session."""
        if self.ready:
            self._say(Packet(method=method))

    def abandon(self) -> list[int]:
        """Give up every request; returns their seqs."""
        given_up = list(self._pending)
        self._pending.clear()
        self.holding.clear()
        return given_up

    def _request(self, request: Request) -> int:
        self._next_seq += 1
        self._pending[self._next_seq] = request
        if self.ready:
            self._out.append(request.frame)
        return self._next_seq

    def _say(self, packet: Packet) -> None:
        self._out.append(encode_frame(encode(packet)))

    # --- what the broker says ---------------------------------------------------------

    def receive(self, data: bytes) -> list[Happening]:
        """Take the next bytes of the connection."""
        happenings: list[Happening] = []
        if self._phase is _Phase.GREETING and data:
            greeting, data = data[:1], data[1:]
            if greeting != ACCEPTED:
                why = "the broker takes no more connections" if greeting == REFUSED else ""
                why = why or "what listens there does not speak ka"
                return [Ended(RefusedError("overloaded", why), final=greeting != REFUSED)]
            self._phase = _Phase.HELLO
            given = self._credentials
            self._say(
                Packet(
                    method="HLO",
                    id=self._name,
                    # Later on the same position may be one of another broker's.
                    pos=self._resume_at if self.durable and self.server is None else None,
                    durable=self.durable,
                    token=given.token,
                    user=given.user,
                    password=given.password,
                )
            )
        for frame in self._frames.feed(data):
            try:
                packet = decode(frame)
            except WireError as error:
                happenings.append(Ended(error, final=False))
                break
            self._packet(packet, happenings)
        return happenings

    def _packet(self, packet: Packet, happenings: list[Happening]) -> None:
        method = packet.method
        if method == "PUB":
            self._arrived(packet, happenings)
        elif method in ("ACK", "PONG"):
            request = self._pending.pop(packet.seq or 0, None)
            if request is not None and packet.seq is not None:
                happenings.append(Answered(packet.seq, tuple(request.rows)))
        elif method == "ERR":
            self._refused(packet, happenings)
        elif method == "INF":
            request = self._pending.get(packet.seq or 0)
            if request is not None and isinstance(packet.payload, Notification):
                request.rows.append(packet.payload)
        elif method == "HLO":
            self._welcomed(packet, happenings)
        elif method == "PING":
            self._say(Packet(method="PONG", seq=packet.seq))

    def _arrived(self, packet: Packet, happenings: list[Happening]) -> None:
        if not isinstance(packet.payload, Notification):
            return
        holding, pos = self.holding, packet.pos or 0
        known = holding.numbers
        # An id that is not known any more was unsubscribed while this was on its way.
        numbers = tuple([known[name] for name in packet.receivers if name in known])
        unclaimed: tuple[str, ...] = ()
        if pos:
            numbers = tuple([number for number in numbers if holding.is_news(number, pos)])
            if self.durable:
                unclaimed = tuple([name for name in packet.receivers if name not in known])
        if numbers or unclaimed:
            delivery = Delivery.of(packet.payload, packet.uid or "", packet.at or 0, pos)
            happenings.append(Arrived(numbers, delivery, unclaimed))

    def _welcomed(self, packet: Packet, happenings: list[Happening]) -> None:
        before, server = self.server, Server.of(packet)
        self.server = server
        fresh = self._phase is _Phase.HELLO
        elsewhere = False
        if fresh:
            self._phase = _Phase.READY
            if before is not None:
                shorter = server.pos is not None and server.pos < self.holding.newest
                elsewhere = before.identity != server.identity or shorter
            if elsewhere:
                self._resume_at = None
                self.holding.restart()
            elif self.durable and before is not None and self._resume_at:
                self._say(Packet(method="ACK", pos=self._resume_at))
            self._resume()
        happenings.append(Welcomed(server, fresh, elsewhere))

    def _resume(self) -> None:
        """Subscribe to everything held, then send what is unanswered, in order."""
        waiting = {r.number: seq for seq, r in self._pending.items() if r.kind is Kind.SUBSCRIBE}
        for number in self.holding.all:
            seq = waiting.get(number)
            if seq is None:
                self._next_seq += 1
                seq = self._next_seq
                self._pending[seq] = Request(Kind.SUBSCRIBE, b"", number, again=True)
            self._out.append(self.holding.frame(number, seq))
        self._out.extend(r.frame for r in self._pending.values() if r.kind is not Kind.SUBSCRIBE)

    def _refused(self, packet: Packet, happenings: list[Happening]) -> None:
        code = packet.code or "internal"
        error = RefusedError(code, packet.reason or "the broker gave no reason")
        request = self._pending.get(packet.seq or 0)
        if packet.seq is None or request is None:
            # Before the welcome it is about the session itself, and so is name_in_use later.
            if self._phase is _Phase.HELLO or code == "name_in_use":
                happenings.append(Ended(error, final=code in _FINAL))
            else:
                happenings.append(Complained(error))
            return
        if request.again and code == "name_in_use":
            # The broker has not noticed yet that our last connection is gone.
            happenings.append(Ended(error, final=False))
            return
        del self._pending[packet.seq]
        if request.kind is Kind.SUBSCRIBE and request.number is not None:
            self.holding.release(request.number)
        happenings.append(Declined(packet.seq, error, request.number))
