"""The two laws of accounting, as counters.

    received = refused + duplicate + expired + unmatched + matched    (publications)
    matches  = delivered + queued + dropped                           (publication, subscriber)

``queued`` is not a counter: it is what the outboxes hold. ``dropped`` is kept by
reason in all, and by subscriber and reason for a bounded number of names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kbn.broker.outbox import Outbox, Receiver

REASONS = ("suspended", "queue_full", "too_large", "unreachable", "ttl", "backlog")
#: Beyond this many names, further ones share the name "(others)".
MAX_NAMES = 10_000
OTHERS = "(others)"


class Accounting:
    """Counters of one broker since it started."""

    def __init__(self) -> None:
        self.received = 0
        #: Accepted and on the way to the disk: their fate is not known yet.
        self.pending = 0
        self.refused = 0
        self.duplicate = 0
        self.expired = 0
        self.unmatched = 0
        self.matched = 0
        self.matches = 0
        self.delivered = 0
        self.redelivered = 0
        self.dropped: Counter[str] = Counter()
        self.dropped_by: dict[str, Counter[str]] = {}
        self.errors: Counter[str] = Counter()
        self.malformed_legacy = 0
        self.packets_in: Counter[str] = Counter()
        self.spooled_dropped = 0

    def lost(self, receivers: Sequence[Receiver], reason: str) -> None:
        """Deliveries that will not happen, and why."""
        self.dropped[reason] += len(receivers)
        for receiver in receivers:
            self.name_loss(receiver.id, reason, 1)

    def name_loss(self, name: str, reason: str, count: int) -> None:
        """Keep a loss under the name of who suffered it."""
        if name not in self.dropped_by and len(self.dropped_by) >= MAX_NAMES:
            name = OTHERS
        self.dropped_by.setdefault(name, Counter())[reason] += count

    def balance(self, outboxes: Iterable[Outbox]) -> dict[str, int]:
        """What is unaccounted for, by law; all zero unless there is a bug."""
        queued = sum(outbox.waiting_ids for outbox in outboxes)
        told = self.refused + self.duplicate + self.expired + self.unmatched + self.matched
        sent = self.delivered - self.redelivered + queued + sum(self.dropped.values())
        return {
            "publications": self.received - self.pending - told,
            "deliveries": self.matches - sent,
        }
