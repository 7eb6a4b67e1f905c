"""Clients that keep their side of the bargain: they send again, confirm and come back."""

from __future__ import annotations

from random import Random

from kbn.model import Notification, Subscription
from senp import FrameReader, Packet, decode_with_body, encode, encode_frame
from tests.simulation.network import Connection, End, Network


class Faithful:
    """A session that connects again whenever its connection ends."""

    def __init__(self, network: Network, name: str, broker: str, random: Random) -> None:
        self.network = network
        self.name = name
        self.broker = broker
        self.random = random
        self.link = 0
        self.end: End | None = None
        self._reader = FrameReader()
        self.connect()

    def connect(self) -> None:
        connection = Connection(self.network.clock, 5)
        self._reader = FrameReader()
        self.end = connection.one
        mine = connection.one
        mine.received = lambda data: self._received(mine, data)
        mine.closed = lambda reason: self._closed(mine)
        self.link = self.network.nodes[self.broker].attach(connection.two)
        self.opened()

    def opened(self) -> None:
        raise NotImplementedError

    def packet(self, packet: Packet) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        """Hang up without a word; what is in flight is lost."""
        if self.end is not None:
            self.end.connection.break_now()

    def send(self, packet: Packet) -> None:
        if self.end is not None and self.end.alive:
            self.end.send(encode_frame(encode(packet)))

    def _received(self, end: End, data: bytes) -> None:
        if end is not self.end:
            return
        for frame in self._reader.feed(data):
            packet = decode_with_body(frame)[0]
            if packet.method == "PING":
                self.send(Packet(method="PONG"))
            else:
                self.packet(packet)

    def _closed(self, end: End) -> None:
        if end is self.end:
            self.end = None
            self.network.clock.after(self.random.randint(50, 800), self.connect)


class Publisher(Faithful):
    """Sends each publication until it is acknowledged, under one uid and in order."""

    def __init__(self, network: Network, name: str, broker: str, random: Random) -> None:
        self.waiting: dict[int, Notification] = {}
        self.acknowledged: list[int] = []
        #: Serials that were refused for good, and why.
        self.refused: dict[int, str] = {}
        self._again = False
        super().__init__(network, name, broker, random)

    def opened(self) -> None:
        self.send(Packet(method="HLO", id=self.name))
        self._send_all()

    def publish(self, event: Notification) -> None:
        serial = event["serial"]
        assert isinstance(serial, int)
        self.waiting[serial] = event
        self._send(serial)
        if self.random.random() < 0.2:
            self._send(serial)

    def _send(self, serial: int) -> None:
        self.send(
            Packet(
                method="PUB",
                id=self.name,
                seq=serial + 1,
                uid=f"u{serial}",
                payload=self.waiting[serial],
            )
        )

    def _send_all(self) -> None:
        self._again = False
        for serial in list(self.waiting):
            self._send(serial)

    def packet(self, packet: Packet) -> None:
        if packet.seq is None:
            return
        serial = packet.seq - 1
        if packet.method == "ACK":
            if self.waiting.pop(serial, None) is not None:
                self.acknowledged.append(serial)
        elif packet.method == "ERR" and serial in self.waiting:
            if packet.code == "store_unavailable":
                if not self._again:
                    self._again = True
                    self.network.clock.after(self.random.randint(20, 300), self._send_all)
            else:
                del self.waiting[serial]
                self.refused[serial] = str(packet.code)


class Listener(Faithful):
    """Asks again when it is refused for now; remembers (subscriber, pos, serial) in order."""

    def __init__(self, network: Network, name: str, broker: str, random: Random) -> None:
        self.asked: dict[str, tuple[Subscription, int | None]] = {}
        self.heard: list[tuple[str, int, int]] = []
        #: Where each connection begins in what was heard.
        self.connections: list[int] = []
        self.answered: set[str] = set()
        self._requests: dict[int, str] = {}
        #: What an earlier connection asked: a durable session may have it already.
        self._old: set[str] = set()
        self._seq = 0
        super().__init__(network, name, broker, random)

    def opened(self) -> None:
        self.answered.clear()
        self._requests.clear()
        self.connections.append(len(self.heard))
        self.send(self.hello())
        for number in list(self.asked):
            self._ask(number)

    def hello(self) -> Packet:
        return Packet(method="HLO", id=self.name)

    def subscribe(self, number: int, asked: Subscription, since: int | None = None) -> None:
        name = f"{self.name}/{number}"
        self.asked[name] = (asked, since)
        self._ask(name)

    def _ask(self, name: str) -> None:
        if name not in self.asked:
            return
        asked, since = self.asked[name]
        self._seq += 1
        self._requests[self._seq] = name
        self.send(Packet(method="SUB", id=name, seq=self._seq, since=since, payload=asked))

    def unsubscribe(self, number: int) -> None:
        name = f"{self.name}/{number}"
        self.asked.pop(name, None)
        self.send(Packet(method="UNS", id=name))

    def packet(self, packet: Packet) -> None:
        if packet.method == "PUB" and isinstance(packet.payload, Notification):
            serial = packet.payload["serial"]
            assert isinstance(serial, int)
            for to in packet.receivers:
                fresh = to in self.asked and to not in self._old
                assert to in self.answered or not fresh, f"{to} was told before its ACK"
                self.heard.append((to, packet.pos or 0, serial))
            self.told(packet)
        elif packet.seq in self._requests:
            name = self._requests.pop(packet.seq)
            if packet.method == "ACK":
                self.answered.add(name)
            else:
                assert packet.code in ("store_unavailable", "overloaded"), packet
                self.network.clock.after(self.random.randint(20, 300), lambda: self._ask(name))

    def told(self, packet: Packet) -> None:
        """Something was heard."""


class Durable(Listener):
    """A durable session that confirms now and then, and asks only what is not kept for it."""

    confirmed = 0

    def opened(self) -> None:
        self._requests.clear()
        self._old.update(self.asked)
        self.connections.append(len(self.heard))
        self.send(self.hello())
        for name in list(self.asked):
            if name not in self.answered:
                self._ask(name)

    def hello(self) -> Packet:
        pos = self.confirmed or None
        return Packet(method="HLO", id=self.name, durable=True, pos=pos)

    def told(self, packet: Packet) -> None:
        assert packet.pos is not None
        if self.random.random() < 0.4:
            self.confirmed = packet.pos
            self.send(Packet(method="ACK", pos=packet.pos))
