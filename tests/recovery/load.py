"""A publisher and a durable subscriber that drive a broker over sockets through its deaths.

The publisher sends again, under the same ``uid``, whatever was not acknowledged; the
subscriber comes back under its name and says how far it got.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random

from kbn.language import parse_subscription
from kbn.matching.world import NOTHING_KNOWN
from kbn.model import Bag, Notification
from kbn.model.publications import LogEntry
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME, TIME_MIN
from kbn.temporal.lookback import matching
from senp import ACCEPTED, FrameReader, Packet, decode_with_body, encode, encode_frame

#: What the subscriber asks, by its id; one of them looks back.
ASKED = {
    "d/1": parse_subscription("serial any"),
    "d/2": parse_subscription("x = 1 and end after(300ms) { x = 2 }"),
}
#: How many publications may be without an answer.
WINDOW = 300
_INSTANT = Bag(["START", "END", "INSTANT"])


class Load:
    """What was sent, acknowledged and heard, over all lives of the broker."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.serial = 0
        #: Sent and not acknowledged, oldest first.
        self.waiting: dict[int, Notification] = {}
        self.acknowledged: set[int] = set()
        self.errors: list[str] = []
        #: Positions told, by subscriber; how often in all; and how far it was confirmed.
        self.heard: dict[str, set[int]] = {name: set() for name in ASKED}
        self.told = 0
        self.confirmed = 0
        self.subscribed: set[str] = set()

    def make(self) -> Notification:
        """The next publication: plain, an instant, or both parts of an event in turn."""
        serial = self.serial
        self.serial += 1
        said = {"serial": serial, "x": self.random.randrange(4), "text": "é" * 20}
        kind = serial % 4
        if kind == 0:
            return Notification(said)
        if kind == 1:
            times = {START_TIME: serial * 10, END_TIME: serial * 10}
            return Notification({**said, PUB_ID: f"i{serial}", PUB_TYPE: _INSTANT, **times})
        if kind == 2:
            opens = {PUB_ID: f"e{serial}", PUB_TYPE: Bag(["START"]), START_TIME: serial * 10}
            return Notification({**said, **opens})
        closes = {PUB_ID: f"e{serial - 1}", PUB_TYPE: Bag(["END"]), END_TIME: serial * 10}
        return Notification({**said, **closes})

    async def drive(
        self, port: int, upto: int, full: Callable[[], object], *, endless: bool = False
    ) -> None:
        """Publish until ``upto`` are acknowledged in all, or without end, and ask ``full``
        from then on; ends with the connections, or when ``full`` returned True."""
        listening = asyncio.create_task(self.listen(port))
        try:
            async with asyncio.timeout(30):
                # From the first publication on the subscriber is owed everything.
                while self.subscribed != ASKED.keys() and not listening.done():
                    await asyncio.sleep(0.005)
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    await self._publish(port, upto, full, endless)
        finally:
            listening.cancel()
            (ended,) = await asyncio.gather(listening, return_exceptions=True)
        if not isinstance(ended, asyncio.CancelledError | ConnectionError | EOFError):
            raise AssertionError(f"the subscriber failed: {ended!r}")

    async def _publish(
        self, port: int, upto: int, full: Callable[[], object], endless: bool
    ) -> None:
        line = await Line.open(port)
        try:
            line.say(Packet(method="HLO", id="p"))
            for serial in list(self.waiting):
                self._send(line, serial)
            while True:
                while len(self.waiting) < WINDOW and (endless or len(self.acknowledged) < upto):
                    event = self.make()
                    self.waiting[self.serial - 1] = event
                    self._send(line, self.serial - 1)
                for packet in await line.hear():
                    self._answered(line, packet)
                if len(self.acknowledged) >= upto and full():
                    return
        finally:
            line.close()

    def _send(self, line: Line, serial: int) -> None:
        event = self.waiting[serial]
        line.say(Packet(method="PUB", id="p", seq=serial + 1, uid=f"u{serial}", payload=event))

    def _answered(self, line: Line, packet: Packet) -> None:
        if packet.seq is None:
            return
        serial = packet.seq - 1
        if packet.method == "ACK":
            self.waiting.pop(serial, None)
            self.acknowledged.add(serial)
        elif packet.method == "ERR":
            self.errors.append(str(packet.code))
            assert packet.code == "store_unavailable", packet
            if serial in self.waiting:
                self._send(line, serial)

    async def listen(self, port: int) -> None:
        """Subscribe as a durable session and take in what is told, until it ends."""
        line = await Line.open(port)
        try:
            line.say(Packet(method="HLO", id="d", durable=True, pos=self.confirmed or None))
            for number, (name, asked) in enumerate(ASKED.items(), start=1):
                line.say(Packet(method="SUB", id=name, seq=number, payload=asked))
            while True:
                for packet in await line.hear():
                    if packet.method == "ACK" and packet.seq is not None:
                        self.subscribed.add(list(ASKED)[packet.seq - 1])
                    elif packet.method == "PUB":
                        self._told(line, packet)
        finally:
            line.close()

    def _told(self, line: Line, packet: Packet) -> None:
        assert packet.pos is not None
        for name in packet.receivers:
            self.heard[name].add(packet.pos)
            self.told += 1
        if self.random.random() < 0.05:
            self.confirmed = packet.pos
            line.say(Packet(method="ACK", pos=packet.pos))

    # --- what must be true -----------------------------------------------------------

    def lost(self, log: list[LogEntry]) -> set[int]:
        """Acknowledged and not in the log."""
        return self.acknowledged - {serial_of(entry) for entry in log}

    def owed(self, log: list[LogEntry]) -> dict[str, set[int]]:
        """Positions each subscriber must hear, by the log."""
        found = {
            name: matching(log, asked, NOTHING_KNOWN, after=0, since=TIME_MIN)
            for name, asked in ASKED.items()
        }
        return {name: {entry.seq for entry in entries} for name, entries in found.items()}

    def missed(self, owed: dict[str, set[int]]) -> dict[str, list[int]]:
        """Some of the positions that were owed and not heard, by subscriber."""
        for name, positions in self.heard.items():
            strange = positions - owed[name]
            assert not strange, f"{name} was told {sorted(strange)[:5]} for no reason"
        lacking = {name: sorted(owed[name] - self.heard[name])[:5] for name in owed}
        return {name: positions for name, positions in lacking.items() if positions}


def serial_of(entry: LogEntry) -> int:
    serial = entry.notification["serial"]
    assert isinstance(serial, int)
    return serial


class Line:
    """One connection of packets."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frames = FrameReader()

    @classmethod
    async def open(cls, port: int) -> Line:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.readexactly(1) == ACCEPTED
        return cls(reader, writer)

    def say(self, packet: Packet) -> None:
        self._writer.write(encode_frame(encode(packet)))

    async def hear(self) -> list[Packet]:
        data = await self._reader.read(65536)
        if not data:
            raise ConnectionResetError
        return [decode_with_body(frame)[0] for frame in self._frames.feed(data)]

    def close(self) -> None:
        self._writer.transport.abort()
