"""Performs what the broker's state instructs, and tells it what happened.

The only loop between the pure core and the sockets. Frames are taken from an
outbox when its transport can be written to, once a turn of the event loop for
all links that have something; a peer that asks and does not read its answers is
not read from until it does.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from datastore.store import Store
from kbn.broker.instructions import (
    Authenticate,
    ChangeOntology,
    Close,
    CommitOntology,
    Connect,
    Flush,
    Instruction,
    Log,
    Yield,
)
from kbn.broker.settings import Principal, Settings
from kbn.broker.state import BrokerState
from kbn.broker.stimuli import (
    Arrival,
    Authenticated,
    Closed,
    FromStore,
    Opened,
    Peer,
    Received,
    Resumed,
    Woke,
)
from kbn.server.care import Care
from kbn.server.clock import Clock
from kbn.server.history import Historian
from kbn.server.legacy import call
from kbn.server.librarian import Librarian
from kbn.server.logs import RateLimited
from kbn.server.memory import return_free_pages
from kbn.server.penalties import Penalties
from kbn.server.session import Connection
from senp import WireError

#: Unread answers beyond this stop the reading from a peer, in bytes; below half it goes on.
ANSWERS_HIGH = 1024 * 1024
#: Bytes on the way to the disk beyond which publishers are not read from.
PENDING_HIGH = 16 * 1024 * 1024

#: So many connections at once are worth giving memory back for.
MANY = 500

#: Says who stands behind credentials, or None. Runs in a thread.
Verify = Callable[[Authenticate], Principal | None]


class Shell:
    """One broker's connections, timers and tasks. Lives on one event loop."""

    def __init__(
        self,
        state: BrokerState,
        clock: Clock,
        log: RateLimited,
        verify: Verify,
        *,
        tls: ssl.SSLContext | None = None,
        store: Store | None = None,
        care: Care | None = None,
        librarian: Librarian | None = None,
    ) -> None:
        self.state = state
        self.settings: Settings = state.core.settings
        self.limits = self.settings.limits
        self.log = log
        self._clock = clock
        self._verify = verify
        self._tls = tls
        self._librarian = Librarian() if librarian is None else librarian
        self._loop = asyncio.get_running_loop()
        self._connections: dict[int, Connection] = {}
        self.penalties = Penalties()
        #: Links with frames to write in this turn of the loop.
        self._dirty: dict[int, None] = {}
        self._flushing = False
        self._inbound = 0
        #: The most connections since memory was last given back.
        self._most = 0
        #: Links not read from until the disk has caught up.
        self._throttled: set[int] = set()
        self._historian = None if store is None else Historian(store, state, self._on_disk, care)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._draining = False
        #: Everything is being closed: no timer, no task and no call is started any more.
        self._over = False
        #: Set when a principal asked the broker to switch off.
        self.off = asyncio.Event()
        self._tick()

    # --- what connections ask ---------------------------------------------------------

    def admits(self) -> bool:
        """Whether one more inbound connection may be kept."""
        return not self._draining and self._inbound < self.settings.max_connections

    def arrived(self, connection: Connection, peer: Peer) -> None:
        """An inbound connection was greeted."""
        connection.link = self.state.core.new_link()
        connection.inbound = True
        self._inbound += 1
        self._connections[connection.link] = connection
        self._feed(Opened(connection.link, peer))

    def adopt(self, connection: Connection) -> None:
        """An outgoing connection is being made."""
        self._connections[connection.link] = connection

    def opened(self, connection: Connection, peer: Peer) -> None:
        """An outgoing connection stands."""
        self._feed(Opened(connection.link, peer))
        self._arm()  # an answer may be waited for from now on

    def received(self, link: int, arrivals: list[Arrival | WireError]) -> None:
        """Packets came."""
        self._feed(Received(link, arrivals))
        found = self.state.core.links.get(link)
        if (
            found is not None
            and found.target is not None
            and found.target.outbox.answers > ANSWERS_HIGH
            and link in self._connections
        ):
            self._connections[link].pause_reading("answers")
        elif self.state.publishing.pending_bytes > PENDING_HIGH and link in self._connections:
            self._throttled.add(link)
            self._connections[link].pause_reading("disk")

    def _on_disk(self, said: FromStore) -> None:
        self._feed(said)
        if self._throttled and self.state.publishing.pending_bytes < PENDING_HIGH // 2:
            throttled, self._throttled = self._throttled, set()
            for link in throttled:
                connection = self._connections.get(link)
                if connection is not None:
                    connection.resume_reading("disk")

    def lost(self, connection: Connection, reason: str) -> None:
        """A connection ended; reported once."""
        if connection.link and self._connections.pop(connection.link, None) is not None:
            self._inbound -= connection.inbound
            self._feed(Closed(connection.link, reason))
            self._arm()

    def failed(self, link: int, reason: str) -> None:
        """A connection that was asked for could not be made."""
        self._connections.pop(link, None)
        self._feed(Closed(link, reason))
        self._arm()

    def take(self, link: int, most: int) -> list[bytes]:
        """Frames for a transport that has room."""
        return self.state.take(link, most)

    def has_waiting(self, link: int) -> bool:
        found = self.state.core.links.get(link)
        return found is not None and found.target is not None and bool(found.target.outbox)

    def want_write(self, link: int) -> None:
        """A transport has room again."""
        self._dirty[link] = None
        self._flush_soon()

    def later(self, milliseconds: int, action: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(milliseconds / 1000, action)

    def client_tls(self) -> ssl.SSLContext:
        """What outgoing ``ka+senps`` connections use."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    # --- the core -----------------------------------------------------------------------

    def _feed(self, *stimuli: Any) -> None:
        self._perform(self.state.handle(self._clock.now(), *stimuli))

    def _perform(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Flush):
                self._dirty[instruction.link] = None
            elif isinstance(instruction, Close):
                self._close(instruction.link)
            elif self._over and isinstance(instruction, Connect | Authenticate):
                continue
            elif isinstance(instruction, Connect):
                self._spawn(call(instruction, self))
            elif isinstance(instruction, Authenticate):
                self._spawn(self._authenticate(instruction))
            elif isinstance(instruction, ChangeOntology | CommitOntology):
                self._spawn(self._change_ontology(instruction))
            elif isinstance(instruction, Yield):
                self._loop.call_soon(self._resume)
            elif isinstance(instruction, Log):
                self.log.say(instruction.level, instruction.event, instruction.message)
            else:
                assert self._historian is not None
                self._historian.perform(instruction)
        if self._dirty:
            self._flush_soon()
        if self.state.draining:
            self.off.set()

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        dirty, self._dirty = self._dirty, {}
        for link in dirty:
            connection = self._connections.get(link)
            if connection is not None:
                connection.write_waiting()
                if not connection.reading:
                    self._read_again(link, connection)
        # Room in an outbox may have released answers that others wait for.
        self._perform(self.state.take_instructions())

    def _read_again(self, link: int, connection: Connection) -> None:
        found = self.state.core.links.get(link)
        if found is None or found.target is None:
            return
        if found.target.outbox.answers < ANSWERS_HIGH // 2:
            connection.resume_reading("answers")

    def _close(self, link: int) -> None:
        connection = self._connections.get(link)
        if connection is not None:
            connection.write_waiting()
            connection.close()
            # A peer that does not read would keep its connection half closed for ever.
            self.later(self.settings.handshake, connection.abort)

    async def _authenticate(self, asked: Authenticate) -> None:
        principal = await asyncio.to_thread(self._verify, asked)
        self._feed(Authenticated(asked.link, principal))

    async def _change_ontology(self, asked: ChangeOntology | CommitOntology) -> None:
        self._feed(await asyncio.to_thread(self._librarian.perform, asked))

    def _resume(self) -> None:
        if not self._over:
            self._feed(Resumed())

    def _spawn(self, work: Awaitable[None]) -> None:
        async def guarded() -> None:
            try:
                await work
            except Exception:  # a bug: the broker goes on, the operator is told
                self.log.failed("internal", "a task of the broker failed")

        task = self._loop.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- time ----------------------------------------------------------------------------

    def _tick(self) -> None:
        self._timer = None
        self._clock.follow()
        self.log.flush()
        self._feed(Woke())
        self._return_memory()
        self._arm()

    def _return_memory(self) -> None:
        """After most of many connections have gone, have the allocator give back their pages."""
        self._most = max(self._most, len(self._connections))
        if self._most >= MANY and len(self._connections) < self._most // 4:
            self._most = len(self._connections)
            self._spawn(asyncio.to_thread(return_free_pages))

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._over:
            return
        wait = min(max(self.state.wake_at - self._clock.now(), 5), 1000)
        self._timer = self._loop.call_later(wait / 1000, self._tick)

    # --- the end ---------------------------------------------------------------------------

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def drain(self, patience: float) -> int:
        """Write out what waits, for at most so many seconds; then close everything.

        Returns how many deliveries were still waiting.
        """
        self._draining = True
        for connection in list(self._connections.values()):
            connection.pause_reading("drain")
        end = self._loop.time() + patience
        while self._loop.time() < end:
            self._dirty.update(dict.fromkeys(self._connections))
            self._flush()
            waiting = any(c.unwritten for c in self._connections.values())
            waiting = waiting or any(self.has_waiting(link) for link in self._connections)
            waiting = waiting or bool(self.state.core.accounts.pending)
            if not waiting:
                break
            await asyncio.sleep(0.01)
        left = sum(outbox.waiting_ids for outbox in self.state.core.outboxes())
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._connections.values()):
            connection.close()
        # Transports that hold nothing close in one turn; the rest are cut off.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for connection in list(self._connections.values()):
            connection.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)
        if self._historian is not None:
            await self._historian.close()
        self.log.flush(everything=True)
        return left
