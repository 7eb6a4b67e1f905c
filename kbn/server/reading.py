"""Reading the log for those who ask: the past of a subscription, and why an event matched.

Runs in a reader's thread; the store is asked piece by piece.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from datastore.store import Store
from kbn.broker.instructions import Recall
from kbn.errors import RefusedError
from kbn.language import event_to_json
from kbn.matching.explain import explain
from kbn.matching.world import NOTHING_KNOWN, Knowledge, World
from kbn.model.filters import Subscription, needs_history
from kbn.model.publications import LogEntry
from kbn.temporal.asof import as_of
from kbn.temporal.lookback import about, matching

#: Entries a reader takes from the log at a time.
PIECE = 500


def explained(
    store: Store,
    asked: Sequence[Subscription],
    event_id: str,
    knowledge: Knowledge = NOTHING_KNOWN.knowledge,
    max_open: int | None = None,
) -> list[str]:
    """One line of JSON for each publication about the event and each subscription.

    Raises ``RefusedError`` if the history has no such event.
    """
    about_it = store.entries(event_id)
    if not about_it:
        raise RefusedError("temporal_missing", f"the history has no event '{event_id}'")
    lines = []
    for subscription in asked:
        log: Iterable[LogEntry] = about_it
        if needs_history(subscription):
            log = store.log(0, about_it[-1].seq, batch=PIECE)
        for entry, history in as_of(log, subscription, event_id, knowledge, max_open):
            found = explain(subscription, entry.notification, World(knowledge, history))
            said = {"pos": entry.seq, "event": event_to_json(entry.notification)}
            lines.append(json.dumps({**said, **found.to_json()}, ensure_ascii=False))
    return lines


def past_of(
    store: Store, asked: Recall, world: World, max_open: int | None
) -> Iterator[list[tuple[LogEntry, tuple[str, ...]]]]:
    """What a ``Recall`` is to be told, piece by piece."""
    if asked.session is not None:
        yield from _backlog(store, asked, asked.session)
        return
    assert asked.asked is not None
    from_seq = 0
    if not asked.history and not needs_history(asked.asked):
        # Content needs no history: begin where it is wanted.
        first = store.first_seq_since(asked.since)
        if first is None:
            return
        from_seq = max(first, asked.after + 1)
    log = store.log(from_seq, asked.upto, batch=PIECE)
    after, since = asked.after, asked.since
    if asked.history:
        found = about(log, asked.asked, world, after=after, since=since)
    else:
        found = matching(log, asked.asked, world, after=after, since=since, max_open=max_open)
    for piece in pieces(found):
        yield [(entry, ()) for entry in piece]


def _backlog(
    store: Store, asked: Recall, session: str
) -> Iterator[list[tuple[LogEntry, tuple[str, ...]]]]:
    after = asked.after
    while rows := store.backlog(session, after, PIECE):
        piece = [(row.entry, row.receivers) for row in rows if row.entry.seq <= asked.upto]
        if not piece:
            return
        yield piece
        after = piece[-1][0].seq


def pieces(entries: Iterator[LogEntry]) -> Iterator[list[LogEntry]]:
    while piece := list(islice(entries, PIECE)):
        yield piece
