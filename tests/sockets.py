"""What tests over real sockets share: a broker on a free port, raw peers, waiting for conditions.

Nothing here sleeps for a fixed time: every wait is for something to be true and
has a deadline, after which the test fails and says what it waited for.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from kbn.broker.addresses import Address
from kbn.broker.invariants import check
from kbn.server.config import Config, load
from kbn.server.run import Broker
from senp import ACCEPTED, FrameReader, encode_frame

#: Seconds until a test that waits for something gives up; nothing is measured by it.
DEADLINE = 20.0
LOOPBACK = "127.0.0.1"


def over_sockets(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """An ``async def`` test, run on a loop of its own that ends by the deadline."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(3 * DEADLINE):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run


async def until(condition: Callable[[], object], what: str) -> None:
    """Wait until the condition holds; the loop runs meanwhile."""
    loop = asyncio.get_running_loop()
    end = loop.time() + DEADLINE
    while not condition():
        assert loop.time() < end, f"it never came true that {what}"
        await asyncio.sleep(0.002)


async def soon(work: Awaitable[Any], what: str) -> Any:
    """The result of something that must happen before the deadline."""
    try:
        async with asyncio.timeout(DEADLINE):
            return await work
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None


@asynccontextmanager
async def running(
    *, listen: tuple[str, ...] = (f"ka://{LOOPBACK}:0",), **said: object
) -> AsyncIterator[Broker]:
    """A broker named ``b1`` unless told otherwise, without store; its books are checked after."""
    flags: dict[str, object] = {"http": "none", "store": "none", "identity": "b1", **said}
    broker = Broker(load(None, {}, {"listen": listen, **flags}))
    await broker.start()
    try:
        yield broker
        balanced(broker)
    finally:
        await broker.stop()
    balanced(broker)


def config(**said: object) -> Config:
    return load(None, {}, {"http": "none", "store": "none", "identity": "b1", **said})


def balanced(broker: Broker) -> None:
    """Every invariant of the core, the two laws of accounting among them."""
    check(broker.state)
    core = broker.state.core
    assert set(core.accounts.balance(core.outboxes()).values()) == {0}


def port_of(broker: Broker, scheme: str = "ka") -> int:
    """The port a broker listens on, by its scheme."""
    return next(a.port for a in broker.place.listening if a.scheme == scheme)


def url_of(broker: Broker, scheme: str = "ka") -> str:
    return str(Address(scheme, LOOPBACK, port_of(broker, scheme)))


class Raw:
    """A peer that says and hears packets as text, on one ``ka`` connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._frames = FrameReader()
        self._packets: list[bytes] = []

    @classmethod
    async def open(cls, port: int, **more: Any) -> Raw:
        """Connect and be greeted."""
        reader, writer = await asyncio.open_connection(LOOPBACK, port, **more)
        made = cls(reader, writer)
        greeting = await soon(reader.readexactly(1), "the greeting byte")
        assert greeting == ACCEPTED
        return made

    @classmethod
    async def session(cls, port: int, name: str, hello: str = "", **more: Any) -> Raw:
        """Connect and say HLO; the broker's answer is left in ``hello``."""
        made = await cls.open(port, **more)
        await made.send(f'senp{{version=1 method="HLO" ttl=30 id="{name}"{hello}}}')
        answer = await made.receive()
        assert 'method="HLO"' in answer, answer
        return made

    async def send(self, *packets: str | bytes) -> None:
        data = b"".join(
            encode_frame(p.encode("latin-1") if isinstance(p, str) else p) for p in packets
        )
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> str:
        while not self._packets:
            data = await soon(self.reader.read(65536), "a packet")
            assert data, "the connection ended where a packet was expected"
            self._packets += self._frames.feed(data)
        return self._packets.pop(0).decode("latin-1")

    async def ask(self, packet: str) -> str:
        await self.send(packet)
        return await self.receive()

    async def ended(self) -> list[str]:
        """Wait for the end of the connection; returns the packets before it."""
        while True:
            try:
                data = await soon(self.reader.read(65536), "the end of the connection")
            except ConnectionError:
                data = b""
            if not data:
                said = [p.decode("latin-1") for p in self._packets]
                self._packets = []
                return said
            self._packets += self._frames.feed(data)

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError, TimeoutError):
            await self.writer.wait_closed()


class Handler:
    """A legacy subscriber's own listener: ``ka`` frames, or ``senp`` one packet a connection."""

    def __init__(self, transport: str = "ka", greeting: bytes = ACCEPTED) -> None:
        self.transport = transport
        self.greeting = greeting
        self.packets: asyncio.Queue[str] = asyncio.Queue()
        self.calls = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self, port: int = 0) -> Handler:
        self._server = await asyncio.start_server(self._called, LOOPBACK, port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    @property
    def url(self) -> str:
        scheme = "ka+senp" if self.transport == "ka" else "senp"
        return f"{scheme}://{LOOPBACK}:{self.port}"

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        self._writers.add(writer)
        try:
            if self.transport == "senp":
                self.packets.put_nowait((await reader.read()).decode("latin-1"))
                return
            writer.write(self.greeting)
            frames = FrameReader()
            while data := await reader.read(65536):
                for packet in frames.feed(data):
                    self.packets.put_nowait(packet.decode("latin-1"))
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def receive(self) -> str:
        return await soon(self.packets.get(), "a packet at the handler")

    def hang_up(self) -> None:
        """Close what is open, as Siena does when a connection is idle; go on listening."""
        for writer in list(self._writers):
            writer.close()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.hang_up()
        await until(lambda: not self._writers, "the handler's connections are closed")
