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

from kbn.client.confirming import Confirmations
from kbn.client.happenings import (
    Answered,
    Arrived,
    Complained,
    Declined,
    Happening,
    Welcomed,
)
from kbn.client.ids import EventIds
from kbn.client.line import Line, log
from kbn.client.options import Options
from kbn.client.parking import Parking
from kbn.client.protocol import Conversation
from kbn.client.stream import Feed
from kbn.errors import ClosedError, KbnError
from kbn.model import Notification, Subscription, Value

#: The most bytes of unanswered publications, beside their number.
WINDOW_BYTES = 4 * 1024 * 1024
#: How long a goodbye may take, in seconds.
_FAREWELL = 2.0
#: Confirmations are gathered so long, in seconds: each costs the broker a write.
_GATHER = 0.1


class Connection:
    """One client's dealings with its broker."""

    def __init__(self, options: Options) -> None:
        self.durable = options.durable
        self.conversation = Conversation(
            EventIds(), options.credentials, durable=options.durable, resume=options.resume
        )
        self._line = Line(options, self.conversation, self)
        self._on_connected = options.on_connected
        #: The line was lost and is not back yet.
        self._away = False
        self._auto_confirm = options.auto_confirm
        self._confirmations = Confirmations()
        self._confirmed = options.resume or 0
        self._gathering: asyncio.TimerHandle | None = None
        #: Deliveries of a durable session's subscriptions that nobody here has made yet.
        self._parking = Parking(options.queue)
        #: Deliveries that a durable session lost for good, as the broker told.
        self.lost = 0
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

    async def close(self, *, forget: bool = False) -> None:
        """Say goodbye, then fail what is unanswered and end the streams.

        A durable session goes on at the broker unless it is to be forgotten.
        """
        self._line.retire()
        if self._over is None and self.conversation.ready:
            conversation = self.conversation
            if self.durable and not forget:
                # BYE would end the session for good; the answer says our ACK was heard.
                for feed in self._feeds.values():
                    self.dealt_with(feed)
                self._confirm_now()
                farewell = self._expect(conversation.ping())
            else:
                farewell = self._expect(conversation.leave())
            await asyncio.wait([farewell], timeout=_FAREWELL)
        self._finish(ClosedError("the client was closed"), None)
        await self._line.close()

    def disown(self) -> None:
        """The program failed: what its readers had taken is not dealt with."""
        for feed in self._feeds.values():
            feed.handed.clear()

    def _finish(self, error: KbnError, told: KbnError | None) -> None:
        """Nothing goes any more: every request and every stream hears of it, once."""
        if self._over is not None:
            return
        self._over = error
        if self._gathering is not None:
            self._gathering.cancel()
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
            elif isinstance(happening, Welcomed):
                self._welcomed(happening)
            elif isinstance(happening, Complained):
                log.warning("the broker says %s: %s", happening.error.code, happening.error)
        if self._full or self._parking.full:
            self._update_reading()

    def _welcomed(self, welcomed: Welcomed) -> None:
        lost = welcomed.server.lost if welcomed.fresh else 0
        if lost:
            self.lost += lost
            log.warning("%d deliveries were lost: the backlog was cut", lost)
        if welcomed.elsewhere:
            self._confirmations, self._confirmed = Confirmations(), 0
            self._parking.clear()
        if lost or welcomed.elsewhere:
            for feed in self._feeds.values():
                if feed.resumes:
                    feed.gaps += 1

        if self._away and welcomed.fresh:
            self._tell_connected(True)

    def interrupted(self) -> None:
        for feed in self._feeds.values():
            if not feed.resumes:
                feed.gaps += 1
        self._tell_connected(False)

    def _tell_connected(self, connected: bool) -> None:
        self._away = not connected
        if self._on_connected is not None:
            self._on_connected(connected)

    def failed(self, error: KbnError) -> None:
        self._finish(error, error)

    def _arrived(self, arrived: Arrived) -> None:
        if self.durable:
            unclaimed = [n for n in arrived.unclaimed if self._park(n, arrived)]
            readers = len(arrived.numbers) + len(unclaimed)
            self._confirmations.arrived(arrived.delivery.pos, readers)
        for number in arrived.numbers:
            feed = self._feeds.get(number)
            if feed is not None:
                feed.put(arrived.delivery)
                if feed.full:
                    self._full.add(feed)

    def _park(self, name: str, arrived: Arrived) -> bool:
        """Keep a delivery for who may subscribe to it yet; False if it was kept before."""
        if self._parking.dropping:
            if self._parking.forget(name):
                self._expect(self.conversation.unsubscribe_id(name))
            return False
        return self._parking.put(name, arrived.delivery)

    def _update_reading(self) -> None:
        held_up = bool(self._full) or self._parking.full
        self._line.read(not held_up or bool(self._answers))

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
        if self._full or self._parking.full:
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

    def subscribe(
        self, asked: Subscription, feed: Feed, since: int | None = None
    ) -> tuple[int, asyncio.Future[object]]:
        """Subscribe; returns the subscription's number and the answer to come."""
        self._check()
        conversation, pos = self.conversation, 0
        if self.durable:
            for delivery in self._parking.take(conversation.holding.id_next(asked)):
                feed.put(delivery)
                pos = delivery.pos
        number, seq = conversation.subscribe(asked, since, pos)
        self._feeds[number] = feed
        if feed.full:
            self._full.add(feed)
        return number, self._expect(seq)

    async def ask(self, what: str, after: int = 0, **more: Value) -> list[Notification]:
        """One page of what the broker tells."""
        self._check()
        rows = await self._expect(self.conversation.ask(what, after, **more))
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

    def dealt_with(self, feed: Feed) -> None:
        handed, feed.handed = feed.handed, []
        if self.durable and self._auto_confirm:
            for pos in handed:
                self._confirmations.done(pos)
            if self._gathering is None and self._over is None:
                self._gathering = self._loop.call_later(_GATHER, self._confirm_now)

    def _confirm_now(self) -> None:
        """Say how far everything was dealt with, if that is news."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        if self._auto_confirm:
            self.confirm(self._confirmations.level)

    def confirm(self, pos: int) -> None:
        """Everything up to this position was dealt with."""
        if pos > self._confirmed and self._over is None:
            self._confirmed = pos
            self.conversation.confirm(pos)
            self._line.flush_soon()

    async def drop_unclaimed(self) -> None:
        """End what the session subscribed to in earlier runs and nobody asked for in this one."""
        answers = []
        self._parking.dropping = True
        for name, deliveries in self._parking.take_all():
            for delivery in deliveries:
                self._confirmations.done(delivery.pos)
            if self._parking.forget(name):
                answers.append(self._expect(self.conversation.unsubscribe_id(name)))
        self._update_reading()
        for answer in answers:
            await answer

    async def end_subscription(self, number: int) -> None:
        answer = self._unsubscribe(number)
        if answer is not None:
            await answer

    def leave_subscription(self, number: int) -> None:
        feed = self._remove(number)
        name = self.conversation.holding.release(number)
        if feed is not None and name is not None:
            # Whoever subscribes to the same again gets what was not read.
            while feed.queue:
                self._parking.put(name, feed.queue.popleft())
        self._update_reading()

    def drop_subscription(self, number: int) -> None:
        if self._over is None and not self._loop.is_closed():
            end = self.leave_subscription if self.durable else self._unsubscribe
            self._loop.call_soon_threadsafe(end, number)

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
