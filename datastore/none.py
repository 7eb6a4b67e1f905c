"""``--store none``: nothing is kept, and every question has the answer of an empty history."""

from __future__ import annotations

from datastore.memory import MemoryStore, check_seqs
from datastore.store import Batch, Capabilities


class NoStore(MemoryStore):
    """Counts the seqs and remembers marks, sessions and nothing else, until the process ends.

    A backlog or a spool would need entries, so it has neither: what a durable session
    misses while it is away is lost.
    """

    capabilities = Capabilities("none", durable=False)

    def append(self, batch: Batch) -> None:
        with self._lock:
            check_seqs(self._last_seq, batch)
            if batch.entries:
                self._last_seq = batch.entries[-1].seq
            super().append(Batch(confirms=batch.confirms, marks=batch.marks))

    def info(self) -> dict[str, object]:
        return {**super().info(), "engine": "none"}
