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
from kbn.client.handle import EventHandle
from kbn.client.happenings import Server
from kbn.client.moments import Moment, Since
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
        if exc_info[0] is not None:
            self._client.disown()
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

    # --- events that last: see ``Client`` ------------------------------------------------

    def event(
        self,
        event: Publishable | None = None,
        /,
        *,
        id: str | None = None,
        at: Moment | None = None,
        **attributes: Plain,
    ) -> SyncEventHandle:
        """An event for ``with``: START on entering, END on leaving."""
        return SyncEventHandle(self, self._client.event(event, id=id, at=at, **attributes))

    def start(
        self,
        event: Publishable | None = None,
        /,
        *,
        id: str | None = None,
        at: Moment | None = None,
        **attributes: Plain,
    ) -> str:
        """Publish the START of an event; returns the event's id."""
        return self.call(self._client.start(event, id=id, at=at, **attributes))

    def end(
        self,
        id: str,
        event: Publishable | None = None,
        /,
        *,
        at: Moment | None = None,
        repeat: bool = False,
        **attributes: Plain,
    ) -> None:
        """Publish the END of an event; ``repeat`` says again what its START said."""
        self.call(self._client.end(id, event, at=at, repeat=repeat, **attributes))

    def instant(
        self,
        event: Publishable | None = None,
        /,
        *,
        id: str | None = None,
        at: Moment | None = None,
        **attributes: Plain,
    ) -> str:
        """Publish an event of one moment; returns its id."""
        return self.call(self._client.instant(event, id=id, at=at, **attributes))

    def publications(self, id: str, *, timeout: float | None = None) -> list[Notification]:
        """What the broker was told of an event, START before END."""
        return self.call(self._client.publications(id), timeout)

    def explain(
        self, subscriber: str, event_id: str, *, timeout: float | None = None
    ) -> list[dict[str, Any]]:
        """Why an event of the broker's history reached a subscriber, or did not."""
        return self.call(self._client.explain(subscriber, event_id), timeout)

    def publish_many(self, events: Iterable[Publishable], *, timeout: float | None = None) -> int:
        """Publish events in order, many in one packet; returns how many.

        The events are drawn in the client's own thread: a source that waits
        holds up this client.
        """
        return self.call(self._client.publish_many(events), timeout)

    def subscribe(
        self,
        asked: Subscribable,
        *,
        queue: int | None = None,
        since: Since | None = None,
        timeout: float | None = None,
    ) -> SyncStream:
        """Subscribe and wait until the broker confirmed; iterate what is returned.

        ``timeout`` bounds the wait for each notification, None waits for ever.
        """
        stream = self.call(self._subscribe(asked, queue, since))
        return SyncStream(self, stream, timeout, 1 if self._client.durable else 1000)

    async def _subscribe(
        self, asked: Subscribable, queue: int | None, since: Since | None
    ) -> Stream:
        return await self._client.subscribe(asked, queue=queue, since=since).ready()

    # --- durable sessions -------------------------------------------------------------------

    @property
    def lost(self) -> int:
        """Deliveries a durable session lost to the bounds of its backlog, as it was told."""
        return self._client.lost

    def confirm(self, pos: int) -> None:
        """A durable session has dealt with everything up to ``pos``."""
        self.call(self._confirm(pos))

    async def _confirm(self, pos: int) -> None:
        self._client.confirm(pos)

    def drop_unclaimed(self) -> None:
        """End what earlier runs of a durable session subscribed to and this one has not."""
        self.call(self._client.drop_unclaimed())

    def forget(self) -> None:
        """End the session for good, with all that the broker keeps for it."""
        try:
            self.call(self._client.forget())
        finally:
            self._stop()


class SyncEventHandle:
    """One event, for ``with``; see ``EventHandle``."""

    def __init__(self, client: SyncClient, handle: EventHandle) -> None:
        self._client = client
        self._handle = handle

    @property
    def id(self) -> str:
        """The event's id."""
        return self._handle.id

    @property
    def start(self) -> int | None:
        """When it started, in milliseconds; None before it did."""
        return self._handle.start

    def update(
        self, event: Publishable | None = None, /, *, at: Moment | None = None, **attributes: Plain
    ) -> None:
        """What the END will say beside, or instead; ``at`` is when it ends."""
        self._handle.update(event, at=at, **attributes)

    def __enter__(self) -> SyncEventHandle:
        self._client.call(self._handle.begin())
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._client.call(self._handle.finish())


class SyncStream:
    """Notifications of one subscription: iterate it, or ``get`` one; closed by ``with``."""

    def __init__(
        self, client: SyncClient, stream: Stream, timeout: float | None, most: int = 1000
    ) -> None:
        self._client = client
        self._stream = stream
        self._timeout = timeout
        #: How many are taken at once: one, where taking the next confirms the last.
        self._most = most
        self._taken: deque[Delivery] = deque()

    @property
    def subscription(self) -> Subscription:
        """What was asked."""
        return self._stream.subscription

    @property
    def gaps(self) -> int:
        """How often notifications may have been missed; see ``Stream.gaps``."""
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
        self._taken.extend(await self._stream.take(self._most))

    def __iter__(self) -> SyncStream:
        return self

    def __next__(self) -> Delivery:
        try:
            return self.get(self._timeout)
        except ClosedError:
            raise StopIteration from None

    def close(self) -> None:
        """Unsubscribe, or leave a durable session's subscription, which goes on."""
        self._client.call(self._stream.close())

    def unsubscribe(self) -> None:
        """End the subscription at the broker, also that of a durable session."""
        self._client.call(self._stream.unsubscribe())

    def __enter__(self) -> SyncStream:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._client.call(self._stream.__aexit__(*exc_info))
