"""A small dispatcher that behaves as the original does, for tests: its words, and its mistakes.

It reads only Siena's fields and operators and drops what has others, answers WHO
by INF at the handler, speaks in one direction on each connection, hangs up when
told to be idle, and takes a filter for covered by comparing operands across
different operators, which is unsound.
"""

from __future__ import annotations

import asyncio
import re

from kbn.matching.content import content_holds
from kbn.matching.naive import matches
from kbn.model import Filter, Notification, Subscription
from kbn.model.operators import Content
from kbn.model.values import Bag
from senp import ACCEPTED, FrameReader, Packet, decode, encode, encode_frame
from tests.sockets import LOOPBACK, until

_FIELDS = {"version", "method", "ttl", "id", "to", "handler"}
_HEADER = re.compile(r"senp\{(.*?)\}")


def readable(text: str) -> bool:
    """Whether the original would read the packet at all."""
    header = _HEADER.match(text)
    if header is None:
        return False
    names = set(re.findall(r"(\w+)=", re.sub(r'"(?:[^"\\]|\\.)*"', '""', header[1])))
    return names <= _FIELDS and not re.search(r"[#@$^]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text))


def swallows(wide: Filter, narrow: Filter) -> bool:
    """Siena's covering: operands compared by the wider operator, whatever the narrower one is."""
    return all(
        any(
            c == w
            or (
                c.name == w.name
                and (
                    w.op is Content.ANY
                    or (c.operand is not None and _holds(w.op, c.operand, w.operand))
                )
            )
            for c in narrow
        )
        for w in wide
    )


def _holds(op: object, value: object, operand: object) -> bool:
    return isinstance(op, Content) and content_holds(op, value, operand)  # type: ignore[arg-type]


class Dispatcher:
    """One dispatcher, named ``siena``; ``master`` makes it somebody's child."""

    def __init__(self, name: str = "siena") -> None:
        self.name = name
        self.port = 0
        #: Every packet that came, and those the original would have thrown away.
        self.heard: list[str] = []
        self.unreadable: list[str] = []
        self.subscribers: dict[str, list[Filter]] = {}
        self.handlers: dict[str, str] = {}
        self.master: str | None = None
        self._master_url = ""
        self._server: asyncio.Server | None = None
        self._inbound: set[asyncio.StreamWriter] = set()
        self._outgoing: dict[str, asyncio.StreamWriter] = {}

    async def open(self, port: int = 0) -> Dispatcher:
        self._server = await asyncio.start_server(self._called, LOOPBACK, port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    @property
    def url(self) -> str:
        return f"ka+senp://{LOOPBACK}:{self.port}"

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._inbound.add(writer)
        writer.write(ACCEPTED)
        frames = FrameReader()
        try:
            while data := await reader.read(65536):
                for frame in frames.feed(data):
                    await self._packet(frame)
        except ConnectionError:
            pass
        finally:
            self._inbound.discard(writer)
            writer.close()

    async def _packet(self, frame: bytes) -> None:
        text = frame.decode("latin-1")
        self.heard.append(text)
        if not readable(text):
            self.unreadable.append(text)
            return
        packet = decode(frame)
        if packet.method == "WHO" and packet.handler:
            answer = Packet(method="INF", id=self.name, to=packet.id, handler=packet.handler)
            await self._send(packet.handler, answer)
        elif packet.method == "INF":
            self.master = packet.id
        elif packet.method == "SUB" and packet.id and isinstance(packet.payload, Subscription):
            if packet.handler:
                self.handlers[packet.id] = packet.handler
            held = self.subscribers.setdefault(packet.id, [])
            (asked,) = packet.payload.alternatives
            if not any(swallows(old, asked) for old in held):
                held[:] = [old for old in held if not swallows(asked, old)] + [asked]
                await self._up(Packet(method="SUB", id=self.name, to=self.master,
                                      handler=self.url, payload=packet.payload))  # fmt: skip
        elif packet.method == "UNS" and packet.id:
            held = self.subscribers.get(packet.id, [])
            gone = packet.payload.alternatives if isinstance(packet.payload, Subscription) else ()
            held[:] = [old for old in held if gone and not swallows(gone[0], old)]
        elif packet.method == "PUB" and isinstance(packet.payload, Notification):
            await self.publish(packet.payload, packet.id or "")

    async def publish(self, event: Notification, sender: str) -> None:
        """To the master unless it came from there, then to everybody who asked."""
        assert not any(isinstance(value, Bag) for value in event.values())
        if sender != self.master:
            await self._up(Packet(method="PUB", id=self.name, to=self.master, payload=event))
        for name, held in self.subscribers.items():
            if name != sender and any(matches(Subscription([f]), event) for f in held):
                packet = Packet(method="PUB", ttl=29, id=self.name, to=name, payload=event)
                await self._send(self.handlers[name], packet)

    async def join(self, url: str) -> None:
        """Become a child of the broker at ``url``."""
        self._master_url = url
        await self._send(url, Packet(method="WHO", id=self.name, handler=self.url))
        await until(lambda: self.master is not None, "the master said who it is")

    async def _up(self, packet: Packet) -> None:
        if self.master is not None:
            await self._send(self._master_url, packet)

    async def _send(self, url: str, packet: Packet) -> None:
        writer = self._outgoing.get(url)
        if writer is None or writer.is_closing():
            host, port = url.split("//")[1].split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            assert await reader.readexactly(1) == ACCEPTED
            self._outgoing[url] = writer
        writer.write(encode_frame(encode(packet)))

    def hang_up(self) -> None:
        """What the original does with connections that are idle for five seconds."""
        for writer in list(self._inbound):
            writer.close()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in [*self._outgoing.values(), *self._inbound]:
            writer.close()
        self._outgoing.clear()
        await until(lambda: not self._inbound, "the dispatcher is closed")
