"""Requests and their answers, notifications and their readers, over one line.

Two bounds hold: unanswered publications (``window`` and ``WINDOW_BYTES``), and
notifications waiting for their reader (``queue`` of each stream), by not reading
from the socket. Reading goes on while a request awaits its answer, since the
answer stands behind the notifications: a reader that publishes would otherwise
wait for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kbn.client.happenings import Answered, Arrived, Complained, Declined, Happening
from kbn.client.ids import EventIds
from kbn.client.line import Line, log
from kbn.client.options import Options
from kbn.client.protocol import Conversation
from kbn.client.stream import Feed
from kbn.errors import ClosedError, KbnError
from kbn.model import Notification, Subscription, Value

#: The most bytes of unanswered publications, beside their number.
WINDOW_BYTES = 4 * 1024 * 1024
#: How long a goodbye may take, in seconds.
_FAREWELL = 2.0


class Connection:
    """One client's dealings with its broker."""

    def __init__(self, options: Options) -> None:
        self.conversation = Conversation(EventIds(), options.credentials)
        self._line = Line(options, self.conversation, self)
        self._window = options.window
        #: Why nothing goes any more, for good.
        self._over: KbnError | None = None
        self._answers: dict[int, asyncio.Future[object]] = {}
        #: Bytes of each unanswered publication, and their sum.
        self._sizes: dict[int, int] = {}
        self._unanswered = 0
        self._waiting_for_room: list[asyncio.Future[None]] = []
        self._feeds: dict[int, Feed] = {}
        self._full: set[Feed] = set()

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._line.open()

    async def close(self) -> None:
        """Say goodbye, then fail what is unanswered and end the streams."""
        if self._over is None and self.conversation.ready:
            farewell = self._expect(self.conversation.leave())
            await asyncio.wait([farewell], timeout=_FAREWELL)
        self._finish(ClosedError("the client was closed"), None)
        await self._line.close()

    def _finish(self, error: KbnError, told: KbnError | None) -> None:
        """Nothing goes any more: every request and every stream hears of it, once."""
        if self._over is not None:
            return
        self._over = error
        for seq in self.conversation.abandon():
            self._settle(seq, error=error)
        for feed in self._feeds.values():
            feed.end(told)
        self._feeds.clear()
        self._full.clear()
        self._make_room()

    # --- what the line tells ------------------------------------------------------------

    def happened(self, happenings: list[Happening]) -> None:
        for happening in happenings:
            if isinstance(happening, Arrived):
                self._arrived(happening)
            elif isinstance(happening, Answered):
                self._settle(happening.seq, happening.rows)
            elif isinstance(happening, Declined):
                self._settle(happening.seq, error=happening.error)
                if happening.number is not None:
                    feed = self._remove(happening.number)
                    if feed is not None:
                        feed.end(happening.error)
            elif isinstance(happening, Complained):
                log.warning("the broker says %s: %s", happening.error.code, happening.error)
        if self._full:
            self._update_reading()

    def interrupted(self) -> None:
        for feed in self._feeds.values():
            feed.gaps += 1

    def failed(self, error: KbnError) -> None:
        self._finish(error, error)

    def _arrived(self, arrived: Arrived) -> None:
        for number in arrived.numbers:
            feed = self._feeds.get(number)
            if feed is not None:
                feed.put(arrived.delivery)
                if feed.full:
                    self._full.add(feed)

    def _update_reading(self) -> None:
        self._line.read(not self._full or bool(self._answers))

    # --- answers ---------------------------------------------------------------------------

    def _check(self) -> None:
        if self._over is not None:
            raise self._over
        if self.conversation.server is None:
            raise ClosedError("the client is not open")

    def _expect(self, seq: int) -> asyncio.Future[object]:
        answer: asyncio.Future[object] = self._loop.create_future()
        self._answers[seq] = answer
        self._line.flush_soon()
        if self._full:
            self._update_reading()
        return answer

    def _settle(
        self, seq: int, rows: tuple[Notification, ...] = (), error: KbnError | None = None
    ) -> None:
        size = self._sizes.pop(seq, None)
        if size is not None:
            self._unanswered -= size
            if self._waiting_for_room:
                self._make_room()
        answer = self._answers.pop(seq, None)
        if answer is None or answer.done():
            return
        if error is None:
            answer.set_result(rows)
        else:
            answer.set_exception(error)
            answer.exception()  # whoever awaits it gets it; nobody must

    # --- requests ----------------------------------------------------------------------------

    async def publish(self, body: bytes) -> tuple[asyncio.Future[object], str]:
        """Publish once there is room in the window; returns the answer to come, and the id."""
        self._check()
        while len(self._sizes) >= self._window or self._unanswered >= WINDOW_BYTES:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiting_for_room.append(waiter)
            await waiter
            self._check()
        seq, uid = self.conversation.publish_encoded(body)
        self._sizes[seq] = len(body)
        self._unanswered += len(body)
        return self._expect(seq), uid

    def _make_room(self) -> None:
        # Half the window at once: waking everyone for each answer would cost a square.
        half = len(self._sizes) <= self._window // 2 and self._unanswered <= WINDOW_BYTES // 2
        if half or self._over is not None:
            waiters, self._waiting_for_room = self._waiting_for_room, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def subscribe(self, asked: Subscription, feed: Feed) -> tuple[int, asyncio.Future[object]]:
        """Subscribe; returns the subscription's number and the answer to come."""
        self._check()
        number, seq = self.conversation.subscribe(asked)
        self._feeds[number] = feed
        return number, self._expect(seq)

    async def ask(self, what: str, after: int = 0) -> list[Notification]:
        """One page of what the broker tells about itself."""
        self._check()
        rows = await self._expect(self.conversation.ask(what, after))
        assert isinstance(rows, tuple)
        return list(rows)

    async def ontology(self, said: Mapping[str, Value]) -> list[Notification]:
        """One request about ontologies; the rows of its answer."""
        self._check()
        rows = await self._expect(self.conversation.ontology(said))
        assert isinstance(rows, tuple)
        return list(rows)

    async def ping(self) -> None:
        self._check()
        await self._expect(self.conversation.ping())

    # --- what streams ask -----------------------------------------------------------------------

    def taken(self, feed: Feed) -> None:
        if feed in self._full and len(feed.queue) <= feed.limit // 2:
            self._full.discard(feed)
            self._update_reading()

    async def end_subscription(self, number: int) -> None:
        answer = self._unsubscribe(number)
        if answer is not None:
            await answer

    def drop_subscription(self, number: int) -> None:
        if self._over is None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._unsubscribe, number)

    def _unsubscribe(self, number: int) -> asyncio.Future[object] | None:
        self._remove(number)
        self._update_reading()
        seq = None if self._over is not None else self.conversation.unsubscribe(number)
        return None if seq is None else self._expect(seq)

    def _remove(self, number: int) -> Feed | None:
        feed = self._feeds.pop(number, None)
        if feed is not None:
            self._full.discard(feed)
        return feed
