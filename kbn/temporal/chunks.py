"""A log cut into chunks that are replayed side by side, each after a warm-up.

Law: the entries of a chunk, after those before it that ``is_warm`` admits, get from a
replay exactly the deliveries that they get after all entries before it.

A chunk is (after, upto] of the numbers. Every temporal constraint, at its place in the
nesting, is an ``Ask``. Somebody asks it: entries of the chunk, or decisions about events
that an ask further out looks at. Of those who ask, two least values are known from the
data: the moment they ask about, and their number. So an event can count only if its
content may fit and, by operator,

- AFTER: it ended no earlier than that moment, less the limit;
- DURING and relations: no earlier than that moment, less the tolerance, or it was still
  open at that number (an END may arrive late and be back-dated), begun within ``max_open``;
- FILTER: it is no earlier than the L-th latest of the complete events before that number
  that surely match. These stand for ever, so nothing earlier enters the window.

All entries of such an event come together, and those of events that the chunk goes on
telling about; what is decided of events that no ask looks at does not matter. Not
bounded, so not cut: ``relation(after)``, and FILTER over a filter with temporal operators.

The conditions are made of ``&``, ``|`` and comparisons only: a row may hold values, or
columns of any engine that has these. Its bounds are minima, so they can be had from any
number of pieces. Cost: one look at the data per level of nesting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from kbn.model.filters import Constraint, Filter, Subscription, needs_history
from kbn.model.operators import After, Allen, Relation, Window
from kbn.model.time import START_TIME
from kbn.model.values import LONG_MAX, LONG_MIN

#: What stands for the number of an END that did not come.
NEVER = LONG_MAX


class Ask(NamedTuple):
    """A temporal constraint at its place; ``parent`` is the number of the one around it."""

    number: int
    #: 1 for the constraints of the subscriptions themselves.
    depth: int
    parent: int | None
    constraint: Constraint
    #: The alternative in which it stands: only what may match it asks.
    asker: Filter

    @property
    def inner(self) -> Subscription:
        assert self.constraint.inner is not None, "an ask is temporal"
        return self.constraint.inner

    @property
    def window(self) -> int | None:
        """How many events FILTER looks at; None for the other operators."""
        op = self.constraint.op
        return op.limit if isinstance(op, Window) else None

    @property
    def spans(self) -> bool:
        """Whether events count that are still open."""
        return not isinstance(self.constraint.op, After | Window)

    @property
    def back(self) -> int:
        """How long before the moment asked about an event may have ended."""
        op = self.constraint.op
        if isinstance(op, After):
            return op.limit
        return op.tolerance if isinstance(op, Relation) else 0

    @property
    def by_start(self) -> bool:
        """Whether the least moment asked about is the asker's start; else it is its end."""
        return isinstance(self.constraint.op, Relation) or self.constraint.name == START_TIME


class Chunk(NamedTuple):
    """The numbers after < seq <= upto."""

    after: int
    upto: int


class Reach(NamedTuple):
    """How far back one ask looks, for one chunk."""

    #: Events whose known times are all earlier do not count, unless they are open.
    least: int
    #: The least number of those who ask.
    first: int
    #: Open events that began earlier do not count: ``max_open``.
    begun: int = LONG_MIN


class Bucket(NamedTuple):
    """What is known of a stretch of numbers up to ``last``; by the numbers of asks."""

    last: int
    entries: int
    #: The least moment that its entries ask about; None: none of them asks.
    moments: Mapping[int, int | None]
    #: For FILTER: how many complete events in it surely match, and their least place.
    sure: Mapping[int, tuple[int, int | None]]


def asks_of(subscriptions: Iterable[Subscription]) -> list[Ask] | None:
    """Every temporal constraint, outer ones first; None if one looks back without bound."""
    found: list[Ask] = []
    waiting: list[tuple[int, int | None, Subscription]] = [(1, None, s) for s in subscriptions]
    for depth, parent, asked in waiting:  # grows while it is walked
        for asker, constraint in _temporal(asked):
            one = Ask(len(found), depth, parent, constraint, asker)
            if not _is_bounded(one):
                return None
            found.append(one)
            waiting.append((depth + 1, one.number, one.inner))
    return found


def _temporal(asked: Subscription) -> Iterator[tuple[Filter, Constraint]]:
    for asker in asked:
        for constraint in asker:
            if constraint.inner is not None:
                yield asker, constraint


def _is_bounded(ask: Ask) -> bool:
    op = ask.constraint.op
    if isinstance(op, Window):
        return not needs_history(ask.inner)
    return not (isinstance(op, Relation) and op.kind is Allen.AFTER)


def cut(buckets: Sequence[Bucket], count: int, after: int = 0) -> list[Chunk]:
    """Up to ``count`` chunks of about as many entries each, ending where buckets end."""
    inside = [bucket for bucket in buckets if bucket.last > after]
    total = sum(bucket.entries for bucket in inside)
    made: list[Chunk] = []
    seen = 0
    for bucket in inside:
        seen += bucket.entries
        if seen * count >= total * (len(made) + 1) or bucket is inside[-1]:
            made.append(Chunk(made[-1].upto if made else after, bucket.last))
            if len(made) == count:
                break
    if made and inside:
        made[-1] = Chunk(made[-1].after, inside[-1].last)
    return made


def outer_reach(
    ask: Ask, chunk: Chunk, buckets: Sequence[Bucket], max_open: int | None = None
) -> Reach | None:
    """How far back an outermost ask looks; None: no entry of the chunk asks it."""
    inside = [bucket for bucket in buckets if chunk.after < bucket.last <= chunk.upto]
    moment = _least(bucket.moments.get(ask.number) for bucket in inside)
    return reach(ask, (moment, chunk.after + 1), buckets, max_open)


def reach(
    ask: Ask,
    least: tuple[int | None, int | None],
    buckets: Sequence[Bucket],
    max_open: int | None = None,
) -> Reach | None:
    """How far back an ask looks, by the least moment asked about and the least number."""
    moment, first = least
    if first is None:
        return None
    if ask.window is not None:
        return Reach(_window_start(ask, first, buckets), first)
    if moment is None:
        return None
    begun = LONG_MIN if max_open is None else moment - max_open
    return Reach(max(moment - ask.back, LONG_MIN), first, max(begun, LONG_MIN))


def _window_start(ask: Ask, first: int, buckets: Sequence[Bucket]) -> int:
    assert ask.window is not None, "only FILTER has a window"
    counted, least = 0, LONG_MAX
    for bucket in reversed(buckets):
        if bucket.last < first:
            count, place = bucket.sure.get(ask.number, (0, None))
            if place is not None:
                counted, least = counted + count, min(least, place)
                if counted >= ask.window:
                    return least
    return LONG_MIN


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def is_looked_at(row: Any, ask: Ask, reached: Reach) -> Any:
    """Whether the event of a row may count for those who ask.

    A row has ``seq``, and of its event, by all its entries: the number of its ``last``,
    that of its END (``ended``, or ``NEVER``), its first and last known times (``earliest``,
    ``latest``), and ``may(subscription)``, false only if no merge of its entries matches by
    content.
    """
    found = row.latest >= reached.least
    if ask.spans:
        found = found | (row.ended > reached.first) & (row.earliest >= reached.begun)
    return row.may(ask.inner) & found


def is_warm(row: Any, chunk: Chunk, reaches: Mapping[int, Reach], asks: Sequence[Ask]) -> Any:
    """Whether an entry is part of the warm-up of a chunk."""
    told = (row.last > chunk.after) & (row.last <= chunk.upto)
    looked = (is_looked_at(row, asks[number], held) for number, held in reaches.items())
    return (row.seq <= chunk.after) & reduce(or_, looked, told)


def is_asking(row: Any, ask: Ask, chunk: Chunk, around: Reach | None, asks: Sequence[Ask]) -> Any:
    """Whether a decision about the row's event may ask this, an ask within another.

    ``around`` is the reach of the ask around it.
    """
    found = (row.seq > chunk.after) & (row.seq <= chunk.upto)
    if around is not None:
        assert ask.parent is not None, "outermost asks are asked by entries"
        found = found | is_standing(row, chunk, around) & is_looked_at(
            row, asks[ask.parent], around
        )
    return row.may(Subscription((ask.asker,))) & found


def is_standing(row: Any, chunk: Chunk, around: Reach) -> Any:
    """Whether what was decided when this entry came still stood when it was asked for."""
    return (row.seq <= chunk.after) & ((row.seq == row.last) | (row.last >= around.first))


#: The least moment and number of the rows that ``is_asking`` admits, for some asks at once.
Minima = Callable[
    [Sequence[tuple[Ask, Chunk, Reach | None]]], Sequence[tuple[int | None, int | None]]
]


def reaches_of(
    asks: Sequence[Ask],
    chunks: Sequence[Chunk],
    buckets: Sequence[Bucket],
    minima: Minima,
    *,
    silent: frozenset[int] = frozenset(),
    max_open: int | None = None,
) -> list[dict[int, Reach]]:
    """By chunk, the reach of each ask that is asked at all.

    ``silent`` asks are nobody's: what stands inside them is decided all the same.
    """
    made: list[dict[int, Reach]] = [{} for _ in chunks]
    deepest = max((ask.depth for ask in asks), default=0)
    for depth in range(1, deepest + 1):
        level = [ask for ask in asks if ask.depth == depth and ask.number not in silent]
        if depth == 1:
            found = [
                (held, ask, outer_reach(ask, chunk, buckets, max_open))
                for held, chunk in zip(made, chunks, strict=True)
                for ask in level
            ]
        else:
            wanted = [
                (held, ask, chunk)
                for held, chunk in zip(made, chunks, strict=True)
                for ask in level
            ]
            asked = [(ask, chunk, held.get(ask.parent or 0)) for held, ask, chunk in wanted]
            found = [
                (held, ask, reach(ask, least, buckets, max_open))
                for (held, ask, _), least in zip(wanted, minima(asked), strict=True)
            ]
        for held, ask, reached in found:
            if reached is not None:
                held[ask.number] = reached
    return made
