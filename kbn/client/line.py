"""The line to the broker: connecting, coming back, writing, and when not to read.

A lost connection is dialled again after a pause that doubles and jitters, so
that a thousand clients of a restarted broker do not all knock at once. Whoever
owns the line hears what happened and never sees a socket.
"""

from __future__ import annotations

import asyncio
import logging
import random
import uuid
from collections.abc import Coroutine
from typing import Protocol

from kbn.client.happenings import Ended, Happening, Welcomed
from kbn.client.options import Options
from kbn.client.protocol import Conversation
from kbn.errors import KbnError, UnreachableError

log = logging.getLogger("kbn.client")

#: A connection that lasted so long has earned a quick first retry, in seconds.
_STEADY = 5.0
#: How long a socket may take to close, in seconds.
_PARTING = 1.0


class Owner(Protocol):
    """Who hears of the line."""

    def happened(self, happenings: list[Happening]) -> None:
        """The conversation has news."""

    def interrupted(self) -> None:
        """An established session was lost; the line is coming back."""

    def failed(self, error: KbnError) -> None:
        """The line is gone and stays so."""


class _Wire(asyncio.Protocol):
    """One TCP connection; it outlives its use by a moment, so it says who it is."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._line.made(self, transport)

    def data_received(self, data: bytes) -> None:
        self._line.received(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._line.lost(self, exc)


class Line:
    """Carries a conversation over one connection after another."""

    def __init__(self, options: Options, conversation: Conversation, owner: Owner) -> None:
        self._options = options
        self._address = options.address()
        self._conversation = conversation
        self._owner = owner
        #: Both None between connections.
        self._wire: _Wire | None = None
        self._transport: asyncio.Transport | None = None
        #: Set while a connection is being made; resolved by the broker's HLO.
        self._welcome: asyncio.Future[None] | None = None
        self._closing = False
        self._paused = False
        self._flushing = False
        self._heard = self._since = 0.0
        self._pause = options.backoff[0]
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone = asyncio.Event()

    # --- connecting -----------------------------------------------------------------

    async def open(self) -> None:
        """The first connection: what goes wrong now is raised, not retried."""
        self._loop = asyncio.get_running_loop()
        await self._dial()
        self._spawn(self._keep_alive())

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self) -> None:
        """One attempt; raises ``UnreachableError`` or the broker's ``RefusedError``."""
        address, options = self._address, self._options
        welcome: asyncio.Future[None] = self._loop.create_future()
        self._welcome = welcome
        try:
            async with asyncio.timeout(options.timeout):
                await self._loop.create_connection(
                    lambda: _Wire(self), address.host, address.port, ssl=options.tls_context()
                )
                await welcome
        except TimeoutError:
            self._detach()
            raise UnreachableError(str(address), "no answer in time") from None
        except OSError as error:
            self._detach()
            why = error.strerror or str(error) or type(error).__name__
            raise UnreachableError(str(address), why) from None
        except BaseException:
            self._detach()
            raise

    def made(self, wire: _Wire, transport: asyncio.Transport) -> None:
        self._wire, self._transport = wire, transport
        self._paused = False
        self._gone.clear()
        self._heard = self._since = self._loop.time()
        # A name nobody chose is new each time: the broker may still hold the last one.
        self._conversation.opened(self._options.name or f"client-{uuid.uuid4().hex[:12]}")

    def lost(self, wire: _Wire, exc: Exception | None) -> None:
        if wire is not self._wire:
            return
        why = UnreachableError(str(self._address), str(exc) if exc else "the connection was lost")
        welcome = self._welcome
        self._detach()
        if welcome is not None:
            if not welcome.done():
                welcome.set_exception(why)
        elif not self._closing:
            if self._options.reconnect:
                self._owner.interrupted()
                self._spawn(self._come_back())
            else:
                self._closing = True
                self._owner.failed(why)

    def _detach(self) -> None:
        """Have nothing more to do with the present connection."""
        transport = self._transport
        self._wire = self._transport = self._welcome = None
        if transport is not None:
            transport.abort()
            self._owner.happened(self._conversation.closed())
        self._gone.set()

    async def _come_back(self) -> None:
        """Dial until it works, or the broker says that it never will."""
        first, most = self._options.backoff
        if self._loop.time() - self._since >= _STEADY:
            self._pause = first
        while not self._closing:
            await asyncio.sleep(self._pause * (0.5 + random.random() / 2))
            self._pause = min(self._pause * 2, most)
            try:
                await self._dial()
            except KbnError as error:
                log.debug("not back yet: %s", error)
            else:
                return

    def _ended(self, ended: Ended) -> None:
        """The broker, or what it sent, ended the session."""
        welcome = self._welcome
        if welcome is not None and not welcome.done():
            # Who dials drops the connection.
            welcome.set_exception(ended.error)
        elif self._transport is not None:
            self._transport.abort()
        if ended.final and self._conversation.server is not None:
            self._closing = True
            self._owner.failed(ended.error)

    def retire(self) -> None:
        """If the connection is lost from now on, it is not made again."""
        self._closing = True

    async def close(self) -> None:
        """Hang up, and wait until the socket is closed."""
        self._closing = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._transport is not None:
            self._transport.abort()
            async with asyncio.timeout(_PARTING):
                await self._gone.wait()

    async def _keep_alive(self) -> None:
        """Say something before the broker calls us dead, and notice when it is."""
        every = self._options.keepalive
        while not self._closing:
            await asyncio.sleep(every)
            if self._paused:
                self._conversation.murmur("NOP")
            elif self._conversation.ready:
                silent = self._loop.time() - self._heard
                if silent >= 3 * every and self._transport is not None:
                    self._transport.abort()
                elif silent >= every / 2:
                    self._conversation.murmur("PING")
            self.flush_soon()

    # --- bytes ---------------------------------------------------------------------------

    def flush_soon(self) -> None:
        """Write what the conversation says in this turn of the loop, in one piece."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._transport is not None:
            out = self._conversation.take()
            if out:
                self._transport.write(out)

    def received(self, wire: _Wire, data: bytes) -> None:
        if wire is not self._wire:
            return
        self._heard = self._loop.time()
        happenings = self._conversation.receive(data)
        for happening in happenings:
            if isinstance(happening, Welcomed):
                if happening.fresh and self._welcome is not None:
                    self._welcome.set_result(None)
                    self._welcome = None
            elif isinstance(happening, Ended):
                self._ended(happening)
        self._owner.happened(happenings)
        self.flush_soon()

    def read(self, wanted: bool) -> None:
        """Read on, or leave what comes to the broker's queue."""
        transport = self._transport
        if transport is None or transport.is_closing() or wanted != self._paused:
            return
        self._paused = not wanted
        if wanted:
            self._heard = self._loop.time()
            transport.resume_reading()
        else:
            transport.pause_reading()
