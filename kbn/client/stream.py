"""One subscription's notifications, as they arrive.

The queue between socket and reader is bounded: past its limit the client stops
reading from the socket, the broker's queue for us fills, and its policy for
slow subscribers applies. Nothing is dropped on this side.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from kbn.client.events import Delivery
from kbn.errors import KbnError
from kbn.model import Subscription


class Feed:
    """The queue of one subscription; the client fills it, the stream empties it."""

    __slots__ = ("_waiters", "ended", "error", "gaps", "limit", "queue")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.queue: deque[Delivery] = deque()
        #: Nothing more will come; ``error`` says why, None after an orderly close.
        self.ended = False
        self.error: KbnError | None = None
        #: How often the connection was lost meanwhile: something may have been missed.
        self.gaps = 0
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def full(self) -> bool:
        return len(self.queue) >= self.limit

    def put(self, delivery: Delivery) -> None:
        self.queue.append(delivery)
        self._wake()

    def end(self, error: KbnError | None = None) -> None:
        if not self.ended:
            self.ended, self.error = True, error
            self._wake()

    async def wait(self) -> None:
        """Until there is something to take, or never will be."""
        while not self.queue and not self.ended:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _wake(self) -> None:
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)


class Owner(Protocol):
    """What a stream asks of its client."""

    def taken(self, feed: Feed) -> None:
        """Room was made in the feed."""

    async def end_subscription(self, number: int) -> None:
        """Tell the broker that nobody listens any more."""

    def drop_subscription(self, number: int) -> None:
        """The same without waiting, from whatever thread collects the stream."""


class Stream:
    """What ``subscribe`` returns: iterate it, or use it as an async context manager.

    Leaving the ``async with``, ``close()``, or forgetting the object ends the
    subscription. The iteration ends when stream or client are closed, and
    raises the broker's refusal, or ``UnreachableError`` when the client gave up.
    """

    def __init__(
        self,
        owner: Owner,
        feed: Feed,
        number: int,
        subscription: Subscription,
        settled: asyncio.Future[object],
    ) -> None:
        self.subscription = subscription
        self._owner = owner
        self._feed = feed
        self._number = number
        self._settled = settled

    @property
    def gaps(self) -> int:
        """How often the connection was lost: each time, notifications may have been missed."""
        return self._feed.gaps

    async def ready(self) -> Stream:
        """Until the broker confirmed; raises ``RefusedError`` if it would not."""
        await asyncio.shield(self._settled)
        return self

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Delivery:
        feed = self._feed
        if not feed.queue:
            await feed.wait()
            self._check()
        delivery = feed.queue.popleft()
        self._owner.taken(feed)
        return delivery

    async def take(self, most: int = 1000) -> list[Delivery]:
        """What has arrived, at least one and at most so many; empty once it has ended."""
        feed = self._feed
        await feed.wait()
        if not feed.queue and feed.error is None:
            return []
        self._check()
        taken = [feed.queue.popleft() for _ in range(min(most, len(feed.queue)))]
        self._owner.taken(feed)
        return taken

    def _check(self) -> None:
        """Raise what ended the stream, once everything that came before is read."""
        if self._feed.queue:
            return
        if self._feed.error is not None:
            raise self._feed.error
        raise StopAsyncIteration

    async def close(self) -> None:
        """Unsubscribe; what is queued here already can still be read."""
        if not self._feed.ended:
            self._feed.end()
            await self._owner.end_subscription(self._number)

    async def __aenter__(self) -> Stream:
        return await self.ready()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def __del__(self) -> None:
        if not self._feed.ended:
            self._owner.drop_subscription(self._number)
