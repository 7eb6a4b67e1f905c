"""``kbn history``: the stored events that match, read beside a running broker."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Annotated

import typer

from kbn.cli.knowing import OntologyFiles, knowledge_for
from kbn.cli.places import DEFAULT_DATA_DIR, DataDir, StoreUrl, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datastore.store import StoredEvent


def history(
    asked: Annotated[
        str, typer.Argument(metavar="[FILTER]", help="What to ask, as text; everything if empty.")
    ] = "",
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="24h|TIME", help="Heard of since then: an age or ISO."),
    ] = None,
    only_open: Annotated[
        bool, typer.Option("--open", help="Only events that have not ended.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=0, metavar="N", help="Only the N latest.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per event.")
    ] = False,
    ontology: OntologyFiles = None,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Print stored events by start time, merged from their parts: exit 0 if any, 1 if none.

    A temporal filter is read from the whole log: those events of which it holds in the end.
    """
    from itertools import islice

    from datastore.query import Order, Query, Window
    from kbn.language import parse_subscription
    from kbn.matching.world import NOTHING_KNOWN
    from kbn.model.filters import needs_history
    from kbn.temporal.lookback import standing

    window = Window(arrived_from=_moment(since), only_open=only_open)
    order = Order.START if limit is None else Order.START_DESCENDING
    subscription = parse_subscription(asked)
    known = knowledge_for([subscription], ontology, data_dir)
    any_found = False
    found: Iterator[StoredEvent]
    with opened(store, data_dir, read_only=True) as held:
        if needs_history(subscription):
            ids = standing(held.log(), subscription, known["knowledge"] or NOTHING_KNOWN.knowledge)
            everything = held.events(Query(window=window, order=order))
            found = islice((event for event in everything if event.uid in ids), limit)
        else:
            query = Query(subscription, window, order, limit, **known)
            found = held.events(query)
        if limit is not None:
            found = reversed(deque(found))
        for event in found:
            any_found = True
            typer.echo(event_json(event) if as_json else event_line(event))
    raise typer.Exit(0 if any_found else 1)


def _moment(since: str | None) -> int | None:
    """Milliseconds since the epoch of an age (24h) or an ISO time (UTC if it says none)."""
    import time
    from datetime import UTC, datetime

    from kbn.errors import ValueRangeError
    from kbn.language.durations import read_duration

    if since is None:
        return None
    try:
        return int(time.time() * 1000) - read_duration(since)
    except ValueRangeError:
        pass
    try:
        when = datetime.fromisoformat(since)
    except ValueError:
        raise typer.BadParameter(
            f"{since!r} is neither an age such as 24h (a whole number and ms, s, min, h or d)"
            " nor a time such as 2026-11-18T10:00:00"
        ) from None
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def event_json(event: StoredEvent) -> str:
    from kbn.language import event_to_json

    said = {
        "id": event.uid,
        "start": event.start,
        "end": event.end,
        "first_seq": event.first_seq,
        "last_seq": event.last_seq,
        "inserted": event.inserted,
        "updated": event.updated,
        "event": event_to_json(event.notification),
    }
    return json.dumps(said, ensure_ascii=False)


#: What is wrong with such a line where an event is wanted.
MERGED = (
    "this is not an event, but what `kbn history --json` tells of one; `kbn history FILTER` asks"
    " a history, `kbn store export` and `import` move it"
)


def is_merged(line: str) -> bool:
    """Whether a line was printed by ``event_json``, or by another verb over history."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and isinstance(said.get("event"), dict) and "id" in said


def event_line(event: StoredEvent) -> str:
    from kbn.language import print_event

    span = _iso(event.start)
    if event.end != event.start:
        span += f" … {_iso(event.end)}"
    return f"{span}  {event.uid}  {print_event(event.notification)}"


def _iso(ms: int | None) -> str:
    from datetime import UTC, datetime, timedelta

    if ms is None:
        return "?"
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
