"""The past that was asked for, read from the log entry by entry.

``matching``: publications that a subscription matches as of their own arrival.
``about``: for a child broker's memory, every publication about an event that
matches, as merged; at the first match what was told of the event before comes
first, and whatever follows comes too. The same rules as live. ``standing``: the
events of which a filter holds in the end, by the latest decision about each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kbn.matching.naive import matches
from kbn.matching.world import Knowledge, World
from kbn.model.events import MergedEvent, merge
from kbn.model.filters import Constraint, Subscription
from kbn.model.operators import During
from kbn.model.publications import LogEntry
from kbn.model.time import END_TIME
from kbn.temporal.memory import inner_hash
from kbn.temporal.replay import Replay


def matching(
    entries: Iterable[LogEntry],
    asked: Subscription,
    world: World,
    *,
    after: int,
    since: int,
    max_open: int | None = None,
) -> Iterator[LogEntry]:
    """Entries behind ``after`` that arrived at ``since`` or later and match."""
    replay = Replay({0: asked}, world.knowledge, max_open)
    for entry in entries:
        if replay.feed(entry) and entry.seq > after and entry.arrived >= since:
            yield entry


def standing(
    entries: Iterable[LogEntry],
    asked: Subscription,
    knowledge: Knowledge,
    max_open: int | None = None,
) -> set[str]:
    """The ids of the events whose latest decision is true."""
    # As an inner filter it is decided of every event, as merged, and asked of nobody.
    replay = Replay(
        {0: Subscription.of(Constraint(END_TIME, During(), asked))}, knowledge, max_open
    )
    name = inner_hash(asked)
    held: set[str] = set()
    for entry in entries:
        for decision in replay.learn(entry)[0]:
            if decision.inner == name:
                (held.add if decision.holds else held.discard)(decision.event)
    return held


def about(
    entries: Iterable[LogEntry], asked: Subscription, world: World, *, after: int, since: int
) -> Iterator[LogEntry]:
    """All publications about events that match as merged and were told of since then."""
    # An event, its other publication, whether it matched, whether it was told here: what
    # matched before ``after`` or ``since`` is known to whoever asks, and must be followed.
    open_events: dict[str, tuple[MergedEvent, LogEntry, bool, bool]] = {}
    for entry in entries:
        known = open_events.pop(entry.uid, None)
        event = merge(None if known is None else known[0], entry)
        holds = matches(asked, event.notification, world)
        matched = known is not None and known[2]
        told = known is not None and known[3]
        wanted = entry.seq > after and entry.arrived >= since
        if (holds or matched) and wanted:
            if known is not None and not told:
                yield known[1]
            yield entry
        if not event.final:
            open_events[entry.uid] = (event, entry, matched or holds, holds and wanted)
