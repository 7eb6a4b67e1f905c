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
import json
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

from kbn.client.connection import Connection
from kbn.client.events import Plain, Publishable, as_notification
from kbn.client.handle import EventHandle
from kbn.client.happenings import Server
from kbn.client.moments import Moment, Since, milliseconds, now, since_when
from kbn.client.options import DEFAULT_URL, Options, Told
from kbn.client.stream import Feed, Stream
from kbn.client.telling import ended, instant, said, started, without_times
from kbn.errors import ClosedError, RefusedError
from kbn.language import as_subscription
from kbn.model import Notification, Subscription, Value
from kbn.model.time import END_TIME, PUB_TYPE
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
        """Say goodbye and end every stream; unanswered requests raise ``ClosedError``.

        A durable session confirms what was read and goes on at the broker.
        """
        await self._connection.close()

    async def forget(self) -> None:
        """End the session for good: its subscriptions, and all that a broker keeps for it."""
        await self._connection.close(forget=True)

    async def __aenter__(self) -> Client:
        return await self.open()

    async def __aexit__(self, *exc_info: object) -> None:
        if exc_info[0] is not None:
            self.disown()
        await self.close()

    def disown(self) -> None:
        """What readers have taken and not come back from shall be told again."""
        self._connection.disown()

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

    @property
    def durable(self) -> bool:
        """Whether the broker keeps what this session has not confirmed."""
        return self._options.durable

    @property
    def lost(self) -> int:
        """Deliveries a durable session lost to the bounds of its backlog, as it was told."""
        return self._connection.lost

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

    # --- events that last ------------------------------------------------------------

    def event(
        self,
        event: Publishable | None = None,
        /,
        *,
        id: str | None = None,
        at: Moment | None = None,
        **attributes: Plain,
    ) -> EventHandle:
        """An event for ``async with``: its START is published on entering, its END on leaving.

        The END repeats what the START said, and what ``update`` changed since. ``at``
        is when it started, now if not given; ``id`` is a new one if not given.
        """
        return EventHandle(self, said(event, attributes), id, at)

    async def start(
        self,
        event: Publishable | None = None,
        /,
        *,
        id: str | None = None,
        at: Moment | None = None,
        **attributes: Plain,
    ) -> str:
        """Publish the START of an event; returns the event's id."""
        told = said(event, attributes)
        made = id or self.new_id()
        await self.publish(started(told, made, _moment(at)))
        return made

    async def end(
        self,
        id: str,
        event: Publishable | None = None,
        /,
        *,
        at: Moment | None = None,
        repeat: bool = False,
        **attributes: Plain,
    ) -> None:
        """Publish the END of an event.

        A publication is matched as it was published: give the START's attributes again,
        or have ``repeat`` ask the broker for them; what is given here wins.
        """
        told = said(event, attributes)
        if repeat:
            told = Notification({**(await self._started(id)).attributes, **told.attributes})
        await self.publish(ended(told, id, _moment(at)))

    async def instant(
        self,
        event: Publishable | None = None,
        /,
        *,
        id: str | None = None,
        at: Moment | None = None,
        **attributes: Plain,
    ) -> str:
        """Publish an event of one moment; returns its id."""
        told = said(event, attributes)
        made = id or self.new_id()
        await self.publish(instant(told, made, _moment(at)))
        return made

    def new_id(self) -> str:
        """An id for an event: a UUID of version 7."""
        return self._connection.conversation.new_id()

    async def publications(self, id: str) -> list[Notification]:
        """What the broker was told of an event, START before END; empty if nothing."""
        return await self._connection.ask("event", id=id)

    async def _started(self, id: str) -> Notification:
        for told in await self.publications(id):
            # The END alone says nothing about the START.
            if END_TIME not in told and PUB_TYPE in told:
                return without_times(told)
        raise RefusedError("temporal_missing", f"the broker knows no START of '{id}'")

    # --- subscribing ---------------------------------------------------------------

    def subscribe(
        self, asked: Subscribable, *, queue: int | None = None, since: Since | None = None
    ) -> Stream:
        """Subscribe by text, ``Subscription``, ``Filter`` or a builder's expression.

        Returns at once; ``await stream.ready()`` waits for the broker. ``queue``
        bounds the notifications kept here while the reader is busy. ``since`` (a time,
        or a ``timedelta`` ago) asks for the past by its arrival at the broker, then the
        present: no gap and no double, also over lost connections; ``pos`` of what is
        delivered rises throughout.
        """
        subscription: Subscription = as_subscription(asked)
        connection = self._connection
        first = None if since is None else since_when(since)
        feed = Feed(queue or self._options.queue, resumes=since is not None or connection.durable)
        number, answer = connection.subscribe(subscription, feed, first)
        return Stream(connection, feed, number, subscription, answer)

    def confirm(self, pos: int) -> None:
        """Tell the broker that a durable session has dealt with everything up to ``pos``.

        Done by itself unless the client was made with ``auto_confirm=False``.
        """
        self._connection.confirm(pos)

    async def drop_unclaimed(self) -> None:
        """End what earlier runs of a durable session subscribed to and this one has not.

        Until then it waits here, is not confirmed, and holds up the rest once it is many.
        """
        await self._connection.drop_unclaimed()

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

    async def explain(self, subscriber: str, event_id: str) -> list[dict[str, Any]]:
        """Why an event of the broker's history reached a subscriber, or did not.

        One object for each publication about it and each subscription held: ``pos``,
        ``event``, ``match`` and ``alternatives``, by the history as of its arrival.
        """
        rows = await self._connection.ask("explain", subscriber=subscriber, id=event_id)
        text = "".join([str(row["text"]) for row in rows])
        # Not ``splitlines``: strings may hold other ends of lines than the one between objects.
        return [json.loads(line) for line in text.split("\n") if line]

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


def _moment(at: Moment | None) -> int:
    return now() if at is None else milliseconds(at)


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
