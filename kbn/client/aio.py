"""The asynchronous client: the conversation with a socket, time and patience.

    async with kbn.connect("ka://127.0.0.1:1969") as c:
        await c.publish(price=79.5)
        async for n in c.subscribe("price < 80"):
            print(n["price"])

A lost connection is made again with growing, jittered pauses; subscriptions are
renewed and unanswered publications sent again under the same id. Writes of one
turn of the loop leave in one piece.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Unpack

from kbn.client.connection import Connection
from kbn.client.events import Plain, Publishable, as_notification
from kbn.client.happenings import Server
from kbn.client.options import DEFAULT_URL, Options, Told
from kbn.client.stream import Feed, Stream
from kbn.errors import ClosedError
from kbn.language import as_subscription
from kbn.model import Notification, Subscription, Value
from senp import encode_event

if TYPE_CHECKING:
    from kbn.language.builder import Subscribable

#: A batch stays below this, so that with its header it fits any broker's packet.
BATCH_BYTES = 60_000
BATCH_EVENTS = 500


def connect(url: str = DEFAULT_URL, **told: Unpack[Told]) -> Client:
    """A client of the broker at ``url``, to be used in ``async with``.

    ``ka://`` is plain TCP, ``ka+senps://`` is TLS (``tls`` replaces the system's
    defaults). ``token``, or ``user`` and ``password``, say who comes; ``Options``
    explains the rest. The first connection must succeed; later ones are made
    again unless ``reconnect`` is False.
    """
    return Client(Options.of(url, told))


class Client:
    """One session with a broker. Use ``kbn.connect``; not for several threads."""

    def __init__(self, options: Options) -> None:
        self._connection = Connection(options)
        self._options = options

    # --- life --------------------------------------------------------------------

    async def open(self) -> Client:
        """Connect and say HLO; raises ``UnreachableError`` or ``RefusedError``."""
        await self._connection.open()
        return self

    async def close(self) -> None:
        """Say goodbye and end every stream; unanswered requests raise ``ClosedError``."""
        await self._connection.close()

    async def __aenter__(self) -> Client:
        return await self.open()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    # --- the broker ----------------------------------------------------------------

    @property
    def url(self) -> str:
        """The broker's address as it was given."""
        return self._options.url

    @property
    def limits(self) -> Server:
        """All the broker said of itself: its limits, its capabilities, its path."""
        server = self._connection.conversation.server
        if server is None:
            raise ClosedError("the client is not open: use it in `async with`")
        return server

    @property
    def identity(self) -> str:
        """The broker's name."""
        return self.limits.identity

    @property
    def path(self) -> tuple[str, ...]:
        """The broker and those above it, up to the root."""
        return self.limits.path

    @property
    def connected(self) -> bool:
        """Whether the session stands right now."""
        return self._connection.conversation.ready

    # --- publishing ----------------------------------------------------------------

    async def publish(self, event: Publishable | None = None, /, **attributes: Plain) -> str:
        """Publish one event, from a mapping, keywords or both; returns its id.

        Returns once the broker acknowledged. Raises ``RefusedError`` with the
        broker's code. When cancelled, the event may have been published or not.
        """
        body = encode_event(as_notification(event, attributes))
        answer, uid = await self._connection.publish(body)
        await answer
        return uid

    async def publish_many(self, events: Iterable[Publishable]) -> int:
        """Publish events in order, many in one packet; returns how many.

        Each packet is accepted whole or not at all. The first refusal is raised
        after everything before it was answered; what follows is not sent.
        """
        answers: deque[asyncio.Future[object]] = deque()
        count = 0
        try:
            for bodies in _batches(events):
                body = bodies[0] if len(bodies) == 1 else b"events{ %s}" % b" ".join(bodies)
                answer, _ = await self._connection.publish(body)
                answers.append(answer)
                count += len(bodies)
                while answers and answers[0].done():
                    answers.popleft().result()
        except Exception:
            if answers:
                await asyncio.wait(answers)
            raise
        while answers:
            await answers.popleft()
        return count

    # --- subscribing ---------------------------------------------------------------

    def subscribe(self, asked: Subscribable, *, queue: int | None = None) -> Stream:
        """Subscribe by text, ``Subscription``, ``Filter`` or a builder's expression.

        Returns at once; ``await stream.ready()`` waits for the broker. ``queue``
        bounds the notifications kept here while the reader is busy.
        """
        subscription: Subscription = as_subscription(asked)
        connection = self._connection
        feed = Feed(queue or self._options.queue)
        number, answer = connection.subscribe(subscription, feed)
        return Stream(connection, feed, number, subscription, answer)

    # --- asking ---------------------------------------------------------------------

    async def who(self) -> Notification:
        """What the broker tells about itself: counters, children, its path."""
        (row,) = await self._connection.ask("who")
        return row

    async def subscriptions(self) -> list[Notification]:
        """Every subscription the broker holds."""
        return await self._rows("subs")

    async def drops(self) -> list[Notification]:
        """What was dropped, by subscriber and reason."""
        return await self._rows("drops")

    # --- what the broker knows --------------------------------------------------------

    async def load_ontology(
        self, name: str, data: bytes, *, source: str = "", format: str = "", skos: bool = False
    ) -> Notification:
        """Load an ontology, or replace the one of that name; tells what is known then.

        Returns once the broker answers by it. Raises ``RefusedError``; nothing has
        changed then. Without ``format`` the broker goes by the name of the ``source``.
        """
        size = max(100, (min(self.limits.max_packet, BATCH_BYTES) - 1200) * 3 // 4)
        pieces = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
        rows: list[Notification] = []
        for part, piece in enumerate(pieces, 1):
            said: dict[str, Value] = {
                "what": "load",
                "name": name,
                "source": source or name,
                "format": format,
                "skos": skos,
                "part": part,
                "parts": len(pieces),
                "data": b64encode(piece).decode("ascii"),
            }
            rows = await self._connection.ontology(said)
        return rows[0]

    async def remove_ontology(self, name: str) -> Notification:
        """Take an ontology out; tells what is known then."""
        (row,) = await self._connection.ontology({"what": "remove", "name": name})
        return row

    async def ontologies(self) -> list[Notification]:
        """What the broker knows, all in all, then one row for each file."""
        return await self._connection.ontology({"what": "list"})

    async def ping(self) -> None:
        """A round trip to the broker."""
        await self._connection.ping()

    async def _rows(self, what: str) -> list[Notification]:
        rows: list[Notification] = []
        after = 0
        while page := await self._connection.ask(what, after):
            rows += page
            last = page[-1].get("number")
            if not isinstance(last, int) or last <= after:
                break
            after = last
        return rows


def _batches(events: Iterable[Publishable]) -> Iterator[list[bytes]]:
    """Encoded events, cut so that each batch fits one packet."""
    batch: list[bytes] = []
    size = 0
    for event in events:
        body = encode_event(as_notification(event))
        if batch and (size + len(body) > BATCH_BYTES or len(batch) >= BATCH_EVENTS):
            yield batch
            batch, size = [], 0
        batch.append(body)
        size += len(body) + 1
    if batch:
        yield batch
