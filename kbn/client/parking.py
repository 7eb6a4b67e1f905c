"""Deliveries for subscriptions of a durable session that nobody here has made yet.

A broker tells a durable session what it missed as soon as it is back, before the
program has subscribed again. Bounded as a stream is: when it is full the client
stops reading. They are not confirmed before somebody has read them.
"""

from __future__ import annotations

from kbn.client.events import Delivery


class Parking:
    """By subscriber id, in the order they came."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: dict[str, list[Delivery]] = {}
        self._count = 0
        #: What is not claimed is not wanted: its subscription is ended.
        self.dropping = False
        self._forgotten: set[str] = set()

    @property
    def full(self) -> bool:
        return self._count >= self._limit

    def put(self, name: str, delivery: Delivery) -> bool:
        """Keep one; False if it is kept already, told again after a reconnect."""
        kept = self._kept.setdefault(name, [])
        if kept and kept[-1].pos >= delivery.pos:
            return False
        kept.append(delivery)
        self._count += 1
        return True

    def take(self, name: str) -> list[Delivery]:
        """Somebody subscribed under this id: what waited for them."""
        self._forgotten.discard(name)
        kept = self._kept.pop(name, [])
        self._count -= len(kept)
        return kept

    def take_all(self) -> list[tuple[str, list[Delivery]]]:
        """Everything, with its id."""
        return [(name, self.take(name)) for name in list(self._kept)]

    def forget(self, name: str) -> bool:
        """Nobody wants what comes under this id; True the first time."""
        known = name in self._forgotten
        self._forgotten.add(name)
        return not known

    def clear(self) -> None:
        self._kept.clear()
        self._count = 0
