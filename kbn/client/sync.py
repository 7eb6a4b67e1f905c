"""The synchronous twin: the same client, with its loop in a thread of its own.

    with kbn.connect_sync("ka://127.0.0.1:1969") as c:
        c.publish(price=79.5)
        for n in c.subscribe("price < 80"):
            print(n["price"])

Every method waits at most ``timeout`` seconds and raises ``TimeoutError``; None
waits for ever. A client may be shared between threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections import deque
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from kbn.client.aio import Client
from kbn.client.events import Delivery, Plain, Publishable
from kbn.client.happenings import Server
from kbn.client.options import DEFAULT_URL, Options, Told
from kbn.client.stream import Stream
from kbn.errors import ClosedError
from kbn.model import Notification, Subscription

if TYPE_CHECKING:
    from kbn.language.builder import Subscribable

T = TypeVar("T")


def connect_sync(
    url: str = DEFAULT_URL, *, call_timeout: float | None = 30.0, **told: Unpack[Told]
) -> SyncClient:
    """As ``connect``, for ``with``; ``call_timeout`` is for calls without one of their own."""
    return SyncClient(Client(Options.of(url, told)), call_timeout)


class SyncClient:
    """One session with a broker, for programs without a loop. Use ``kbn.connect_sync``."""

    def __init__(self, client: Client, call_timeout: float | None) -> None:
        self._client = client
        self._timeout = call_timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # --- life --------------------------------------------------------------------

    def open(self) -> SyncClient:
        """Connect and say HLO; raises ``UnreachableError`` or ``RefusedError``."""
        self._loop = asyncio.new_event_loop()
        # A daemon, so that a program that dies need not wait for the broker.
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="kbn-client", daemon=True
        )
        self._thread.start()
        try:
            self.call(self._client.open())
        except BaseException:
            self._stop()
            raise
        return self

    def close(self) -> None:
        """Say goodbye and end every stream."""
        if self._loop is not None:
            try:
                self.call(self._client.close())
            finally:
                self._stop()

    def _stop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def __enter__(self) -> SyncClient:
        return self.open()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def call(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine of the asynchronous client and wait for its result."""
        if self._loop is None:
            work.close()
            raise ClosedError("the client is not open: use it in `with`")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(self._timeout if timeout is None else timeout)
        except concurrent.futures.CancelledError:
            raise ClosedError("the client was closed") from None
        except BaseException:
            future.cancel()
            raise

    # --- the broker ----------------------------------------------------------------

    @property
    def identity(self) -> str:
        """The broker's name."""
        return self._client.identity

    @property
    def path(self) -> tuple[str, ...]:
        """The broker and those above it, up to the root."""
        return self._client.path

    @property
    def limits(self) -> Server:
        """All the broker said of itself."""
        return self._client.limits

    def who(self, *, timeout: float | None = None) -> Notification:
        """What the broker tells about itself."""
        return self.call(self._client.who(), timeout)

    def subscriptions(self, *, timeout: float | None = None) -> list[Notification]:
        """Every subscription the broker holds."""
        return self.call(self._client.subscriptions(), timeout)

    def drops(self, *, timeout: float | None = None) -> list[Notification]:
        """What was dropped, by subscriber and reason."""
        return self.call(self._client.drops(), timeout)

    def ping(self, *, timeout: float | None = None) -> None:
        """A round trip to the broker."""
        self.call(self._client.ping(), timeout)

    # --- publishing and subscribing ---------------------------------------------------

    def publish(self, event: Publishable | None = None, /, **attributes: Plain) -> str:
        """Publish one event and wait for its acknowledgement; returns its id."""
        return self.call(self._client.publish(event, **attributes))

    def publish_many(self, events: Iterable[Publishable], *, timeout: float | None = None) -> int:
        """Publish events in order, many in one packet; returns how many.

        The events are drawn in the client's own thread: a source that waits
        holds up this client.
        """
        return self.call(self._client.publish_many(events), timeout)

    def subscribe(
        self, asked: Subscribable, *, queue: int | None = None, timeout: float | None = None
    ) -> SyncStream:
        """Subscribe and wait until the broker confirmed; iterate what is returned.

        ``timeout`` bounds the wait for each notification, None waits for ever.
        """
        return SyncStream(self, self.call(self._subscribe(asked, queue)), timeout)

    async def _subscribe(self, asked: Subscribable, queue: int | None) -> Stream:
        return await self._client.subscribe(asked, queue=queue).ready()


class SyncStream:
    """Notifications of one subscription: iterate it, or ``get`` one; closed by ``with``."""

    def __init__(self, client: SyncClient, stream: Stream, timeout: float | None) -> None:
        self._client = client
        self._stream = stream
        self._timeout = timeout
        self._taken: deque[Delivery] = deque()

    @property
    def subscription(self) -> Subscription:
        """What was asked."""
        return self._stream.subscription

    @property
    def gaps(self) -> int:
        """How often the connection was lost: each time, notifications may have been missed."""
        return self._stream.gaps

    def get(self, timeout: float | None = None) -> Delivery:
        """The next one; ``TimeoutError`` if none comes in time, ``ClosedError`` at the end."""
        if not self._taken:
            wait = threading.TIMEOUT_MAX if timeout is None else timeout
            self._client.call(self._fill(), wait)
            if not self._taken:
                raise ClosedError("the subscription has ended")
        return self._taken.popleft()

    async def _fill(self) -> None:
        # Here and not by the caller: what is taken just as the caller gives up is kept.
        self._taken.extend(await self._stream.take())

    def __iter__(self) -> SyncStream:
        return self

    def __next__(self) -> Delivery:
        try:
            return self.get(self._timeout)
        except ClosedError:
            raise StopIteration from None

    def close(self) -> None:
        """Unsubscribe."""
        self._client.call(self._stream.close())

    def __enter__(self) -> SyncStream:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
