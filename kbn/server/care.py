"""What a history needs now and then: old events forgotten.

It runs in the writer's own thread, between two transactions.
"""

from __future__ import annotations

from dataclasses import dataclass

from datastore.store import Retention, Store
from kbn.server.config import Config


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

    def retain(self, store: Store, now: int) -> int:
        """Forget what is too old or too much; how many events went."""
        if not (self.age or self.count or self.size):
            return 0
        before = now - self.age if self.age else None
        return store.retain(Retention(before, self.count or None, self.size or None))
