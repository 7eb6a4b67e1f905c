"""``kbn ontology diff``: what follows from one ontology and not from another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbn.cli.connecting import AsJson, There, may_talk
from kbn.cli.knowing import DATA_DIR, known_from
from kbn.cli.portraying import SHOWN, few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbn.client.aio import Client
    from kbn.knowledge.hierarchy import Hierarchy
    from kbn.model import Notification, Subscription


@may_talk
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A file, or a data directory.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="A file, or a data directory.")],
    subscriptions: Annotated[
        Path | None,
        typer.Option(help="Filters, one a line, as text or JSON: which match differently?"),
    ] = None,
    *,
    there: There,
    as_json: AsJson = False,
) -> None:
    """Compare two ontologies by what follows from them: exit 0 the same, 1 different."""
    from kbn.knowledge.difference import affected, differences

    before, after = _side(old), _side(new)
    found = differences(before, after)
    asked = list(_read_subscriptions(subscriptions))
    if there.url is not None:
        asked += _live_subscriptions(there)
    touched = affected(asked, before, after)
    same = all(each.empty for each in found.values()) and not touched
    if as_json:
        said = {
            "same": same,
            **{
                about: {"added": each.added, "removed": each.removed}
                for about, each in found.items()
            },
            "subscriptions": [
                {
                    "subscription": one.subscription,
                    "constraints": [part._asdict() for part in one.parts],
                    "unknown": one.unknown,
                }
                for one in touched
            ],
        }
        typer.echo(json.dumps(said, ensure_ascii=False))
        raise typer.Exit(0 if same else 1)
    for about, each in found.items():
        for mark, statements in (("+", each.added), ("-", each.removed)):
            for statement in statements[:SHOWN]:
                typer.echo(f"{mark} {statement}")
            if len(statements) > SHOWN:
                typer.echo(f"{mark} and {len(statements) - SHOWN} more {about}")
    for one in touched:
        typer.echo(f"would match differently: {one.subscription}")
        for part in one.parts:
            for mark, terms in (("+", part.gained), ("-", part.lost)):
                if terms:
                    typer.echo(f"  {part.constraint}  {mark} {few(terms)}")
        for unknown in one.unknown:
            typer.echo(f"  {unknown} is no longer known")
    if same:
        typer.echo("the same")
    raise typer.Exit(0 if same else 1)


def _side(given: str) -> Hierarchy:
    from kbn.errors import NoOntologyError

    is_data = Path(given).is_dir()
    known = known_from(None, Path(given)) if is_data else known_from([given], DATA_DIR)
    if known is None:
        raise NoOntologyError("diff")
    return known


def _read_subscriptions(path: Path | None) -> Iterator[Subscription]:
    from kbn.errors import OntologyError
    from kbn.language import loads_subscription, parse_subscription

    if path is None:
        return
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise OntologyError(f"cannot be read: {error.strerror}", source=str(path)) from None
    for line in lines:
        if line.strip():
            read = loads_subscription if line.lstrip().startswith("{") else parse_subscription
            yield read(line)


def _live_subscriptions(there: There) -> Iterator[Subscription]:
    """What is subscribed to at a running broker, each once."""
    from kbn.language import parse_subscription

    async def ask(client: Client) -> list[Notification]:
        return await client.subscriptions()

    rows = there.ask(ask)
    for text in dict.fromkeys(str(row["subscription"]) for row in rows):
        yield parse_subscription(text)
