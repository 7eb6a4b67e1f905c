"""What a client subscribes to, under which ids, and how far each was told.

A subscriber id is ``<session>/<key>``. The key is a number, except in a durable
session: there it is made of what is asked, so that the next run of a program, which
asks the same, is told what was kept for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from kbn.model import Subscription
from senp import Packet, encode, encode_frame, encode_subscription, join


@dataclass(slots=True)
class Held:
    """A subscription: the end of its subscriber id, its bytes, and how far it was told."""

    key: str
    body: bytes
    since: int | None
    pos: int = 0


class Holding:
    """The subscriptions of one client, by number."""

    def __init__(self, durable: bool) -> None:
        self._durable = durable
        self._session = ""
        self._next = 0
        self.all: dict[int, Held] = {}
        #: By subscriber id, as it is on this connection.
        self.numbers: dict[str, int] = {}

    def begin(self, session: str) -> None:
        """A connection stands, under this name."""
        self._session = session
        self.numbers = {self.id_of(held): number for number, held in self.all.items()}

    def add(self, asked: Subscription, since: int | None, pos: int) -> int:
        """Hold one more; returns its number. Raises ``KbnError`` if it has no spelling."""
        body = encode_subscription(asked)
        key = self.key_of(body) if self._durable else str(self._next + 1)
        self._next += 1
        held = Held(key, body, since, pos)
        self.all[self._next] = held
        self.numbers[self.id_of(held)] = self._next
        return self._next

    def key_of(self, body: bytes) -> str:
        """How a durable session names what is asked; a second time by another name."""
        base = sha256(body).hexdigest()[:12]
        taken = {held.key for held in self.all.values()}
        key, copy = base, 1
        while key in taken:
            copy += 1
            key = f"{base}.{copy}"
        return key

    def id_next(self, asked: Subscription) -> str:
        """The id that a durable session would subscribe to this under."""
        return f"{self._session}/{self.key_of(encode_subscription(asked))}"

    def id_of(self, held: Held) -> str:
        return f"{self._session}/{held.key}"

    def release(self, number: int) -> str | None:
        """Hold it no more; its id, if it was held."""
        held = self.all.pop(number, None)
        if held is None:
            return None
        name = self.id_of(held)
        self.numbers.pop(name, None)
        return name

    def clear(self) -> None:
        self.all.clear()
        self.numbers.clear()

    def frame(self, number: int, seq: int) -> bytes:
        """The SUB that asks for it, behind the last position where its past goes on."""
        held = self.all[number]
        pos = held.pos if held.since is not None and held.pos else None
        header = Packet(method="SUB", id=self.id_of(held), seq=seq, pos=pos, since=held.since)
        return encode_frame(join(encode(header), held.body))

    # --- how far each was told -----------------------------------------------------------

    def is_news(self, number: int, pos: int) -> bool:
        """Note a position; False if a durable session tells it again."""
        held = self.all[number]
        if self._durable and pos <= held.pos:
            return False
        held.pos = pos
        return True

    @property
    def newest(self) -> int:
        """The greatest position told so far."""
        return max((held.pos for held in self.all.values()), default=0)

    def restart(self) -> None:
        """Positions so far were about another history."""
        for held in self.all.values():
            held.pos = 0
