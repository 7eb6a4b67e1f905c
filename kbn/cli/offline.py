"""Verbs that need no broker: match, explain, covers, parse."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbn.cli.connecting import AsJson, There, talks
from kbn.cli.history import MERGED, is_merged
from kbn.cli.knowing import DATA_DIR, DataDir, OntologyFiles, known_from
from kbn.cli.places import number_of
from kbn.cli.running import EventId, SubscriberId, explained_there, held_subscription

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kbn.matching.world import World
    from kbn.model import Notification, Subscription

FilterText = Annotated[str, typer.Argument(metavar="FILTER", help="What to ask, as text.")]
EventText = Annotated[
    str | None, typer.Option("--event", help="One event, such as 'price=79.5 symbol=\"IBM\"'.")
]
EventsFile = Annotated[
    Path | None, typer.Option("--events", help="A file with one JSON event per line; - for stdin.")
]


class Form(StrEnum):
    """The three forms of a filter."""

    TEXT = "text"
    SENP = "senp"
    JSON = "json"


def match(
    asked: FilterText,
    *,
    event: EventText = None,
    events: EventsFile = None,
    ontology: OntologyFiles = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Say whether events match a filter: exit 0 if one does, 1 if none."""
    from kbn.language import parse_event, parse_subscription
    from kbn.matching.naive import matches

    subscription = parse_subscription(asked)
    world = _world(subscription, ontology, data_dir)
    _one_of(event, events)
    if event is not None:
        found = matches(subscription, parse_event(event), world)
        typer.echo(json.dumps({"match": found}) if as_json else "match" if found else "no match")
        raise typer.Exit(0 if found else 1)
    kept: list[str] = []
    total = 0
    for line, notification, found_by in _worlds(subscription, events, world):
        total += 1
        if found_by is not None and matches(subscription, notification, found_by):
            kept.append(line)
            if not as_json:
                typer.echo(line)
    if as_json:
        said = {"matched": len(kept), "total": total, "events": [json.loads(k) for k in kept]}
        typer.echo(json.dumps(said, ensure_ascii=False))
    else:
        typer.echo(f"{len(kept)} of {number_of(total, 'event')} match")
    raise typer.Exit(0 if kept else 1)


@talks
def explain(
    asked: Annotated[
        str | None, typer.Argument(metavar="[FILTER]", help="What to ask, as text; or --sub.")
    ] = None,
    *,
    event: EventText = None,
    events: EventsFile = None,
    sub: SubscriberId = None,
    event_id: EventId = None,
    there: There,
    ontology: OntologyFiles = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Show every constraint, both values and why it held or not: exit 0 match, 1 no match.

    With --sub ID the filter is what that subscriber of a running broker asked for; with
    --event-id too, the event is one of its history, which counts as it was on arrival.
    """
    from kbn.language import event_to_json, parse_event, parse_subscription
    from kbn.matching.explain import explain as explain_match

    if (asked is None) == (sub is None):
        raise typer.BadParameter("give either FILTER or --sub")
    if event_id is not None:
        if sub is None or event is not None or events is not None:
            raise typer.BadParameter("--event-id goes with --sub, and with no other event")
        parts = explained_there(sub, event_id, there)
        for said in parts:
            _show_explanation(said, as_json)
        raise typer.Exit(0 if any(said["match"] for said in parts) else 1)
    if sub is not None:
        asked = held_subscription(sub, there)
    assert asked is not None
    subscription = parse_subscription(asked)
    world = _world(subscription, ontology, data_dir)
    _one_of(event, events)
    told: Iterable[tuple[str, Notification, World | None]]
    if event is not None:
        told = [("", parse_event(event), world)]
    else:
        told = _worlds(subscription, events, world, explained=True)
    found = False
    for line, notification, found_by in told:
        if found_by is None:
            typer.echo(f"kbn: warning: told before, skipped: {line}", err=True)
            continue
        explanation = explain_match(subscription, notification, found_by)
        found = found or explanation.holds
        said = {"event": event_to_json(notification), **explanation.to_json()}
        _show_explanation(said, as_json)
    raise typer.Exit(0 if found else 1)


def _show_explanation(said: dict[str, Any], as_json: bool) -> None:
    """Print an explanation in its JSON form: as it is, or line by line for people."""
    from kbn.language import event_from_json, print_event

    if as_json:
        typer.echo(json.dumps(said, ensure_ascii=False))
        return
    verdict = "match" if said["match"] else "no match"
    typer.echo(f"{print_event(event_from_json(said['event']))}: {verdict}")
    alternatives = said["alternatives"]
    for number, alternative in enumerate(alternatives, 1):
        if len(alternatives) > 1:
            typer.echo(f"  alternative {number}: {'yes' if alternative['holds'] else 'no'}")
        if not alternative["constraints"]:
            typer.echo("  yes  the empty filter matches every event")
        for constraint in alternative["constraints"]:
            mark = "yes" if constraint["holds"] else "no "
            typer.echo(f"  {mark}  {constraint['constraint']}")
            typer.echo(f"       {constraint['why']}")


def covers(
    asked: Annotated[str, typer.Argument(metavar="F", help="The filter that may be wider.")],
    other: Annotated[str, typer.Argument(metavar="G", help="The filter that may be narrower.")],
    ontology: OntologyFiles = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Say whether everything that matches G matches F: exit 0 yes, 1 no (or not provable)."""
    from kbn.covering import covers as is_covered
    from kbn.language import parse_subscription
    from kbn.model.filters import needs_ontology

    f, g = parse_subscription(asked), parse_subscription(other)
    # Without an ontology semantic constraints compare by equality alone.
    semantic = needs_ontology(f) or needs_ontology(g)
    found = is_covered(f, g, known_from(ontology, data_dir) if semantic else None)
    typer.echo(json.dumps({"covers": found}) if as_json else "yes" if found else "no")
    raise typer.Exit(0 if found else 1)


def parse(
    asked: FilterText,
    to: Annotated[Form, typer.Option("--to", help="The form to print.")] = Form.TEXT,
    as_json: AsJson = False,
) -> None:
    """Read a filter and print it as text, as SENP or as JSON."""
    from kbn.language import (
        parse_subscription,
        print_subscription,
        subscription_to_json,
        warnings,
    )
    from senp import encode_subscription

    subscription = parse_subscription(asked)
    noticed = warnings(subscription)
    for warning in noticed:
        typer.echo(f"kbn: warning: {warning}", err=True)
    text = print_subscription(subscription)
    on_wire = encode_subscription(subscription).decode("ascii")
    form = subscription_to_json(subscription)
    if as_json:
        whole = {"text": text, "senp": on_wire, "json": form, "warnings": noticed}
        typer.echo(json.dumps(whole, ensure_ascii=False))
        return
    as_text = json.dumps(form, ensure_ascii=False, separators=(",", ":"))
    typer.echo({Form.TEXT: text, Form.SENP: on_wire, Form.JSON: as_text}[to])


def _world(subscription: Subscription, ontology: list[str] | None, data_dir: Path) -> World:
    """What one event alone is matched in: the ontologies given, and an empty history."""
    from kbn.errors import NoOntologyError
    from kbn.matching.world import EMPTY_HISTORY, World
    from kbn.model.filters import needs_ontology

    known = None
    if needs_ontology(subscription):
        known = known_from(ontology, data_dir)
        if known is None:
            raise NoOntologyError("a semantic operator")
    if known is None:
        return World(history=EMPTY_HISTORY)
    return World(known, EMPTY_HISTORY)


def _worlds(
    subscription: Subscription, events: Path | None, alone: World, *, explained: bool = False
) -> Iterator[tuple[str, Notification, World | None]]:
    """The lines of a file, each with the history of those before it; None: told before."""
    from kbn.model.filters import needs_history

    if not needs_history(subscription):
        for _, line, notification in _read_events(events):
            yield line, notification, alone
        return
    from kbn.cli.recording import ExplainedRecording, Recording

    recording = (ExplainedRecording if explained else Recording)(subscription, alone.knowledge)
    for number, line, notification in _read_events(events):
        admitted = recording.admit(notification, number)
        if admitted is None:
            yield line, notification, None
        else:
            yield line, notification, recording.world(admitted)
            recording.keep(admitted)


def _one_of(event: str | None, events: Path | None) -> None:
    if (event is None) == (events is None):
        raise typer.BadParameter("give either --event or --events")


def _read_events(path: Path | None) -> Iterator[tuple[int, str, Notification]]:
    """The lines of a JSONL file with their events; a bad line is named by its number."""
    from kbn.errors import JsonFormError
    from kbn.language import loads_event

    if path is None:
        return
    try:
        stream = sys.stdin.buffer if str(path) == "-" else path.open("rb")
    except OSError as error:
        raise typer.BadParameter(f"cannot read {path}: {error.strerror}") from None
    with stream:
        for number, raw in enumerate(stream, 1):
            try:
                # Some editors begin a file with a byte order mark.
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if line:
                    yield number, line, loads_event(line)
            except UnicodeDecodeError:
                raise JsonFormError(f"line {number}: this is not UTF-8", path="$") from None
            except JsonFormError as error:
                problem = MERGED if is_merged(line) else error.problem
                raise JsonFormError(f"line {number}: {problem}", path=error.path) from None
