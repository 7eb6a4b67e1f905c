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

    __slots__ = ("_waiters", "ended", "error", "gaps", "handed", "limit", "queue", "resumes")

    def __init__(self, limit: int, *, resumes: bool = False) -> None:
        self.limit = limit
        #: A lost connection leaves no gap: the broker's log has what came meanwhile.
        self.resumes = resumes
        #: Positions the reader has and has not come back from.
        self.handed: list[int] = []
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

    durable: bool

    def taken(self, feed: Feed) -> None:
        """Room was made in the feed."""

    def dealt_with(self, feed: Feed) -> None:
        """The reader is done with all it was handed."""

    async def end_subscription(self, number: int) -> None:
        """Tell the broker that nobody listens any more."""

    def leave_subscription(self, number: int) -> None:
        """Stop listening; the subscription of a durable session goes on at the broker."""

    def drop_subscription(self, number: int) -> None:
        """The same without waiting, from whatever thread collects the stream."""


class Stream:
    """What ``subscribe`` returns: iterate it, or use it as an async context manager.

    Leaving the ``async with``, ``close()``, or forgetting the object ends the
    subscription, except in a durable session: there it goes on at the broker until
    ``unsubscribe()``, and what comes meanwhile is told to whoever subscribes to the
    same again. The iteration ends when stream or client are closed, and raises the
    broker's refusal, or ``UnreachableError`` when the client gave up.
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
        """How often notifications may have been missed.

        A lost connection is a gap, except where the broker tells what came meanwhile
        (``since``, durable sessions); then a gap is another broker in its place, or a
        backlog that was cut.
        """
        return self._feed.gaps

    async def ready(self) -> Stream:
        """Until the broker confirmed; raises ``RefusedError`` if it would not."""
        await asyncio.shield(self._settled)
        return self

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Delivery:
        feed = self._feed
        if feed.handed:
            self._owner.dealt_with(feed)
        if not feed.queue:
            await feed.wait()
            self._check()
        delivery = feed.queue.popleft()
        if delivery.pos:
            feed.handed.append(delivery.pos)
        self._owner.taken(feed)
        return delivery

    async def take(self, most: int = 1000) -> list[Delivery]:
        """What has arrived, at least one and at most so many; empty once it has ended."""
        feed = self._feed
        if feed.handed:
            self._owner.dealt_with(feed)
        await feed.wait()
        if not feed.queue and feed.error is None:
            return []
        self._check()
        taken = [feed.queue.popleft() for _ in range(min(most, len(feed.queue)))]
        feed.handed.extend([delivery.pos for delivery in taken if delivery.pos])
        self._owner.taken(feed)
        return taken

    def done(self) -> None:
        """What was taken so far is dealt with: a durable session need not hear it again.

        The same happens by itself when the reader comes back for more, or closes.
        """
        self._owner.dealt_with(self._feed)

    def _check(self) -> None:
        """Raise what ended the stream, once everything that came before is read."""
        if self._feed.queue:
            return
        if self._feed.error is not None:
            raise self._feed.error
        raise StopAsyncIteration

    async def close(self) -> None:
        """Unsubscribe, or leave a durable session's; else what is queued can still be read."""
        if not self._feed.ended:
            self._feed.end()
            if self._owner.durable:
                self._owner.dealt_with(self._feed)
                self._owner.leave_subscription(self._number)
            else:
                await self._owner.end_subscription(self._number)

    async def unsubscribe(self) -> None:
        """End the subscription at the broker, also that of a durable session."""
        self._feed.end()
        await self._owner.end_subscription(self._number)

    async def __aenter__(self) -> Stream:
        return await self.ready()

    async def __aexit__(self, *exc_info: object) -> None:
        if exc_info[0] is not None:
            # What was being read when it went wrong is told again.
            self._feed.handed.clear()
        await self.close()

    def __del__(self) -> None:
        if not self._feed.ended:
            self._owner.drop_subscription(self._number)
