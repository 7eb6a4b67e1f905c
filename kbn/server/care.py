"""What a history needs now and then: old events forgotten.

It runs in the writer's own thread, between two transactions. The temporal memory
lives on the loop: it is asked there, while the writer waits, so that memory and disk
forget the same events (see ``kbn.temporal.leaving``).
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Protocol, TypeVar

from datastore.store import Retention, Store
from kbn.errors import StoreError
from kbn.model.events import merge_all
from kbn.server.config import Config
from kbn.temporal.engine import TemporalEngine

T = TypeVar("T")


class Ask(Protocol):
    """Has a question answered on the loop, and waits. Raises ``StoreError`` if it is over."""

    def __call__(self, question: Callable[..., T], *arguments: object) -> T: ...


@dataclass(frozen=True, slots=True)
class Care:
    """The bounds; times in milliseconds, None and 0 keep everything."""

    #: Milliseconds between two rounds.
    every: int = 30_000
    age: int = 0
    count: int = 0
    size: int = 0
    #: Seconds a new inner filter may take to be filled from the log.
    fill: float = 60.0

    @classmethod
    def of(cls, config: Config) -> Care:
        times, kept = config.times, config.retention
        return cls(
            int(times.care * 1000),
            int(kept.age * 1000),
            kept.count,
            kept.size,
            times.fill,
        )

    def retain(self, store: Store, now: int, engine: TemporalEngine, ask: Ask) -> int:
        """Forget what is too old or too much; how many events went."""
        if not (self.age or self.count or self.size):
            return 0
        before = now - self.age if self.age else None
        policy = Retention(before, self.count or None, self.size or None)
        leaving = engine.leaving
        try:
            gone = store.retain(policy, spare=lambda events: ask(engine.let_go, events))
        except BaseException:
            ask(leaving.stayed, _still_there(store, leaving.events))
            raise
        ask(leaving.gone)
        for name, most in ask(leaving.lacking):
            _refill(store, engine, ask, name, most)
        return gone


def _still_there(store: Store, events: Set[str]) -> Set[str]:
    try:
        return store.entries_of(events).keys()
    except StoreError:
        return events


def _refill(store: Store, engine: TemporalEngine, ask: Ask, name: str, most: int) -> None:
    """Read the latest events of an inner filter, some more than its widest window counts."""
    most += most // 4 + 64
    heads = store.decisions(name, most)
    entries = store.entries_of(decision.event for decision in heads)
    events = [merge_all(told) for told in entries.values()]
    ask(engine.refill, name, events, len(heads) < most)
