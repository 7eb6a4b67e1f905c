"""What waits to be written to one link: bounded, in order, every loss with a name.

Law: every delivery pushed is in exactly one of three places: taken (handed to
the transport), waiting, or dropped with a reason. Answers (``ACK``, ``ERR``,
``INF``, ``PONG``) are never dropped; a peer that asks and does not read is
stopped by not reading from it. Cost: O(1) a frame.

A *keeping* outbox holds what it handed out until the peer confirms its
position, so that a reconnecting peer misses nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol


class Receiver(Protocol):
    """Who a delivery is for; losses are counted under its id."""

    id: str


class Item(NamedTuple):
    """One frame: its bytes, whom it tells (nobody: an answer), and its position if kept."""

    frame: bytes
    receivers: Sequence[Receiver]
    pos: int


#: Called with the receivers of a lost frame and the reason.
Lost = Callable[[Sequence[Receiver], str], None]


class Outbox:
    """Frames for one link. Past ``high_water`` bytes of waiting deliveries it is full;
    past ``hard`` (the same, unless given) the oldest are dropped."""

    __slots__ = (
        "_lost",
        "_unconfirmed",
        "_waiting",
        "answers",
        "hard",
        "high_water",
        "keeping",
        "last_pos",
        "lost_frames",
        "size",
        "waiting_ids",
    )

    def __init__(
        self, high_water: int, lost: Lost, *, keeping: bool = False, hard: int | None = None
    ) -> None:
        self.high_water = high_water
        self.hard = high_water if hard is None else hard
        self.keeping = keeping
        #: Bytes of all waiting and unconfirmed frames, answers included.
        self.size = 0
        #: Bytes of waiting answers alone.
        self.answers = 0
        #: How many (publication, subscriber) pairs wait.
        self.waiting_ids = 0
        #: The newest position given out; positions only rise.
        self.last_pos = 0
        #: Frames lost since the peer was last told.
        self.lost_frames = 0
        self._lost = lost
        self._waiting: deque[Item] = deque()
        self._unconfirmed: deque[Item] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        return self.size - self.answers > self.high_water

    def answer(self, frame: bytes) -> None:
        """Queue an answer; it keeps its place among the deliveries."""
        self._waiting.append(Item(frame, (), 0))
        self.size += len(frame)
        self.answers += len(frame)

    def deliver(self, frame: bytes, receivers: Sequence[Receiver]) -> None:
        """Queue a delivery; past the hard bound the oldest deliveries go."""
        self._waiting.append(Item(frame, receivers, self.last_pos))
        self.size += len(frame)
        self.waiting_ids += len(receivers)
        if self.size - self.answers > self.hard:
            self._shrink("backlog" if self.keeping else "queue_full")

    def next_pos(self) -> int:
        """A new position for the next delivery."""
        self.last_pos += 1
        return self.last_pos

    def take(self, most: int) -> list[bytes]:
        """Hand out waiting frames of about ``most`` bytes in all, at least one."""
        taken: list[bytes] = []
        room = most
        waiting = self._waiting
        while waiting and room > 0:
            item = waiting.popleft()
            taken.append(item.frame)
            room -= len(item.frame)
            if not item.receivers:
                self.answers -= len(item.frame)
                self.size -= len(item.frame)
                continue
            self.waiting_ids -= len(item.receivers)
            if self.keeping:
                self._unconfirmed.append(item)
            else:
                self.size -= len(item.frame)
        return taken

    def confirm(self, pos: int) -> None:
        """The peer has everything up to ``pos``."""
        kept = self._unconfirmed
        while kept and kept[0].pos <= pos:
            self.size -= len(kept.popleft().frame)

    def rewind(self, pos: int) -> int:
        """The peer came back and has everything up to ``pos``: the rest waits again.

        Returns how many deliveries it will hear of again.
        """
        self.confirm(pos)
        again = [item for item in self._waiting if item.receivers and item.pos > pos]
        self._waiting = deque(self._unconfirmed)
        self._waiting.extend(again)
        redelivered = sum(len(item.receivers) for item in self._unconfirmed)
        self._unconfirmed.clear()
        self.size = sum(len(item.frame) for item in self._waiting)
        self.answers = 0
        self.waiting_ids = sum(len(item.receivers) for item in self._waiting)
        return redelivered

    def forget_answers(self) -> None:
        """The connection is gone: answers die with it, deliveries may stay."""
        kept = deque(item for item in self._waiting if item.receivers)
        self._waiting = kept
        self.size -= self.answers
        self.answers = 0

    def drop_all(self, reason: str) -> None:
        """Nobody will come for these."""
        for item in self._waiting:
            if item.receivers:
                self._lost(item.receivers, reason)
        self.clear()

    def clear(self) -> None:
        """Forget everything: it is lost and counted, or kept elsewhere."""
        self._waiting.clear()
        self._unconfirmed.clear()
        self.size = self.answers = self.waiting_ids = 0

    def _shrink(self, reason: str) -> None:
        """Drop the oldest deliveries until a quarter of the room is free again.

        A quarter at once, so that a stuck peer costs one pass in many and not
        one a publication.
        """
        goal = self.high_water * 3 // 4
        unconfirmed = self._unconfirmed
        while unconfirmed and self.size - self.answers > goal:
            item = unconfirmed.popleft()
            self.size -= len(item.frame)
            self.lost_frames += 1  # delivered once already, no longer guaranteed
        if self.size - self.answers <= goal:
            return
        kept: deque[Item] = deque()
        for item in self._waiting:
            if not item.receivers or self.size - self.answers <= goal:
                kept.append(item)
                continue
            self.size -= len(item.frame)
            self.waiting_ids -= len(item.receivers)
            self.lost_frames += 1
            self._lost(item.receivers, reason)
        self._waiting = kept
