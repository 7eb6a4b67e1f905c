"""The definition of the temporal operators: slow, obvious, read aloud.

X is the publication being matched, R the attribute the constraint names, Y any
stored event but X's own, F the subscription in braces.

- ``R during {F}``: some Y with F(Y), Y.start <= X.R, and Y.end >= X.R or Y still open;
- ``R after(L) {F}``: some Y with F(Y) and X.R - L <= Y.end < X.R;
- ``R filter(op, last L) {F}``: among the L most recent Y with F(Y), some with
  ``X.R op Y.R``. Most recent by start (by end where only that is known), then by
  the event's first publication. A Y without R keeps its place;
- ``relation(r ±t) {F}``: some Y with F(Y) to which X, merged, stands in Allen's
  relation r; an open Y ends at infinity.

F(Y) is decided once for each publication about Y, when it arrives: F on what is
known of Y by then, F's own temporal operators asked of the history before that
publication, Y's own event left out. The latest decision stands. An open Y counts
for ``during`` and relations only if it began at most ``max_open`` before X.R.

Cost: a pass over the whole history for every question. Nothing here may become
clever: the temporal memory, SQL and Spark are tested against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from kbn.matching.naive import matches, value_holds
from kbn.matching.world import NOTHING_KNOWN, Knowledge, World
from kbn.model.events import MergedEvent, merge
from kbn.model.filters import Constraint, Subscription
from kbn.model.notifications import Notification
from kbn.model.operators import After, Allen, During, Relation, Window
from kbn.model.publications import LogEntry
from kbn.model.values import Value


class NaiveHistory:
    """The accepted publications in the order of their numbers, and what follows from them."""

    def __init__(
        self,
        entries: Iterable[LogEntry] = (),
        knowledge: Knowledge = NOTHING_KNOWN.knowledge,
        max_open: int | None = None,
    ) -> None:
        self.entries: list[LogEntry] = []
        self.knowledge = knowledge
        self.max_open = max_open
        #: A decision never changes once made, so none is made twice.
        self._decided: dict[tuple[Subscription, int], bool] = {}
        for entry in entries:
            self.append(entry)

    def append(self, entry: LogEntry) -> None:
        """One more accepted publication. Raises ``ValueError`` if its number does not rise."""
        if self.entries and entry.seq <= self.entries[-1].seq:
            raise ValueError(f"number {entry.seq} comes after {self.entries[-1].seq}")
        self.entries.append(entry)

    def about(self, entry: LogEntry) -> AskedHistory:
        """The history as a publication finds it that arrives now, after all others."""
        return AskedHistory(self, len(self.entries), self._merged(len(self.entries), entry))

    def standing(self, inner: Subscription, before: int, without: str) -> list[MergedEvent]:
        """The events among the first ``before`` entries of which ``inner`` holds by its
        latest decision, each as merged by then, the event ``without`` left out."""
        events: dict[str, MergedEvent] = {}
        latest: dict[str, int] = {}
        for number, entry in enumerate(self.entries[:before]):
            if entry.uid != without:
                events[entry.uid] = merge(events.get(entry.uid), entry)
                latest[entry.uid] = number
        return [event for uid, event in events.items() if self.decided(inner, latest[uid])]

    def decided(self, inner: Subscription, number: int) -> bool:
        """What ``inner`` said of an event when the entry at this place arrived."""
        answer = self._decided.get((inner, number))
        if answer is None:
            event = self._merged(number, self.entries[number])
            world = World(self.knowledge, AskedHistory(self, number, event))
            answer = matches(inner, event.notification, world)
            self._decided[inner, number] = answer
        return answer

    def _merged(self, before: int, entry: LogEntry) -> MergedEvent:
        known: MergedEvent | None = None
        for earlier in self.entries[:before]:
            if earlier.uid == entry.uid:
                known = merge(known, earlier)
        return merge(known, entry)


class AskedHistory:
    """The history before one publication, asked about that publication."""

    def __init__(self, history: NaiveHistory, before: int, event: MergedEvent) -> None:
        self.history = history
        self.before = before
        #: X, with this publication merged in.
        self.event = event

    def candidates(self, inner: Subscription) -> list[MergedEvent]:
        """Every Y with F(Y)."""
        return self.history.standing(inner, self.before, self.event.id)

    def stored(self) -> int:
        """How many events there are, X's own left out."""
        return len({e.uid for e in self.history.entries[: self.before]} - {self.event.id})

    def holds(self, constraint: Constraint, notification: Notification) -> bool:
        """Whether the temporal constraint holds for this publication."""
        op, inner = constraint.op, constraint.inner
        assert inner is not None, "only temporal constraints are asked of the history"
        reference = notification[constraint.name]
        found = self.candidates(inner)
        if isinstance(op, Window):
            knowledge = self.history.knowledge
            recent = most_recent(found, op.limit)
            return any(compares(op, constraint.name, reference, y, knowledge) for y in recent)
        return any(self.admits(op, reference, y) for y in found)

    def admits(self, op: object, reference: Value, y: MergedEvent) -> bool:
        """Whether this one event satisfies a question about times."""
        if isinstance(reference, bool) or not isinstance(reference, int):
            return False
        if isinstance(op, After):
            return is_after(reference, op.limit, y)
        if y.end is None and self._open_too_long(reference, y):
            return False
        if isinstance(op, During):
            return is_during(reference, y)
        assert isinstance(op, Relation), f"{op!r} is temporal"
        return related(op.kind, op.tolerance, self.event, y)

    def _open_too_long(self, reference: int, y: MergedEvent) -> bool:
        most = self.history.max_open
        return most is not None and y.start is not None and reference - y.start > most


def is_during(reference: int, y: MergedEvent) -> bool:
    """Whether the moment lies within the event, its borders included."""
    return y.start is not None and y.start <= reference and (y.end is None or y.end >= reference)


def is_after(reference: int, limit: int, y: MergedEvent) -> bool:
    """Whether the event ended before the moment, by at most ``limit``."""
    return y.end is not None and reference - limit <= y.end < reference


def most_recent(events: Iterable[MergedEvent], limit: int) -> list[MergedEvent]:
    """The ``limit`` latest by their order, the latest first."""
    return sorted(events, key=lambda y: y.order, reverse=True)[:limit]


def compares(
    op: Window, name: str, reference: Value, y: MergedEvent, knowledge: Knowledge
) -> bool:
    """Whether ``X.R op Y.R``; without the attribute it does not."""
    if name not in y.notification:
        return False
    return value_holds(op.op, reference, y.notification[name], knowledge)


def related(kind: Allen, tolerance: int, x: MergedEvent, y: MergedEvent) -> bool:
    """Whether X stands in the relation to Y; a time that is not known satisfies none."""
    if x.start is None or x.end is None or y.start is None:
        return False
    return allen_holds(kind, tolerance, (x.start, x.end), interval(y))


def interval(y: MergedEvent) -> tuple[int, float]:
    """When a stored event began and ended; an open one ends at infinity."""
    assert y.start is not None, "an event without a start is in no relation"
    return (y.start, math.inf if y.end is None else y.end)


def allen_holds(kind: Allen, tolerance: int, x: tuple[int, int], y: tuple[int, float]) -> bool:
    """Allen's relation between two intervals, each of its comparisons relaxed alone."""

    def less(a: float, b: float) -> bool:
        return a < b + tolerance

    def same(a: float, b: float) -> bool:
        return a == b or abs(a - b) <= tolerance

    return RELATIONS[kind](less, same, *x, *y)


_Compare = Callable[[float, float], bool]

#: By kind: the comparisons, of X's start and end (a, b) with Y's (c, d).
RELATIONS: dict[Allen, Callable[[_Compare, _Compare, int, int, int, float], bool]] = {
    Allen.BEFORE: lambda less, same, a, b, c, d: less(b, c),
    Allen.AFTER: lambda less, same, a, b, c, d: less(d, a),
    Allen.MEETS: lambda less, same, a, b, c, d: same(b, c) and less(a, b) and less(c, d),
    Allen.MET_BY: lambda less, same, a, b, c, d: same(d, a) and less(a, b) and less(c, d),
    Allen.OVERLAPS: lambda less, same, a, b, c, d: less(a, c) and less(c, b) and less(b, d),
    Allen.OVERLAPPED_BY: lambda less, same, a, b, c, d: less(c, a) and less(a, d) and less(d, b),
    Allen.DURING: lambda less, same, a, b, c, d: less(c, a) and less(b, d),
    Allen.CONTAINS: lambda less, same, a, b, c, d: less(a, c) and less(d, b),
    Allen.STARTS: lambda less, same, a, b, c, d: same(a, c) and less(b, d),
    Allen.STARTED_BY: lambda less, same, a, b, c, d: same(a, c) and less(d, b),
    Allen.FINISHES: lambda less, same, a, b, c, d: same(b, d) and less(c, a),
    Allen.FINISHED_BY: lambda less, same, a, b, c, d: same(b, d) and less(a, c),
    Allen.EQUALS: lambda less, same, a, b, c, d: same(a, c) and same(b, d),
}
