"""``kbn pub`` and ``kbn sub``: what people say to a running broker, and hear from it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbn.cli.connecting import AsJson, There, talks
from kbn.cli.history import MERGED, is_merged
from kbn.cli.lasting import Lasting

if TYPE_CHECKING:
    from typing import TextIO

    from kbn.client.aio import Client
    from kbn.model import Notification, Subscription


@talks
def pub(
    event: Annotated[
        str | None,
        typer.Argument(metavar="EVENT", help="Such as 'price=79.5 symbol=\"IBM\"'; or stdin."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="A file with one JSON event per line; - is stdin."),
    ] = None,
    start: Annotated[
        bool, typer.Option("--start", help="Publish the start of an event; prints its id.")
    ] = False,
    end: Annotated[
        str | None,
        typer.Option("--end", metavar="ID", help="Publish the end; EVENT is told beside."),
    ] = None,
    instant: Annotated[
        bool, typer.Option("--instant", help="Publish an event of one moment; prints its id.")
    ] = False,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="When: ISO 8601, or ms since 1970; else now."),
    ] = None,
    event_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The event's id; else a new one.")
    ] = None,
    bare: Annotated[
        bool, typer.Option("--bare", help="With --end: do not repeat what the start said.")
    ] = False,
    *,
    there: There,
    as_json: AsJson = False,
) -> None:
    """Publish one event, or a file of them; returns once the broker acknowledged."""
    import asyncio

    from kbn.client.aio import connect
    from kbn.language import parse_event

    if event is not None and file is not None:
        raise typer.BadParameter("give either EVENT or --file")
    lasting = Lasting.of(start, end, instant, at, event_id, bare)
    options = there.options()
    if lasting is not None:
        if file is not None:
            raise typer.BadParameter("--file is for events as they are: give one EVENT")
        if event is None and end is None:
            raise typer.BadParameter("give an EVENT")
        made = asyncio.run(lasting.publish(there.broker, options, parse_event(event or "")))
        typer.echo(json.dumps({"id": made}) if as_json else made)
        return
    if event is not None:
        parsed = parse_event(event)

        async def publish() -> str:
            async with connect(there.broker, **options) as client:
                return await client.publish(parsed)

        uid = asyncio.run(publish())
        typer.echo(json.dumps({"id": uid}) if as_json else uid)
        return
    source = Path("-") if file is None else file
    if file is None and sys.stdin.isatty():
        raise typer.BadParameter("give an EVENT, --file, or events on standard input")

    async def publish_all() -> int:
        async with connect(there.broker, **options) as client:
            with _lines(source) as stream:
                return await client.publish_many(_progress(_events(stream), as_json))

    count = asyncio.run(publish_all())
    typer.echo(json.dumps({"published": count}) if as_json else f"{count} published")


def _lines(path: Path) -> TextIO:
    if str(path) == "-":
        return sys.stdin
    try:
        return path.open(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot read {path}: {error.strerror}") from None


def _events(stream: TextIO) -> Iterator[Notification]:
    """JSON objects or the text form, one event a line."""
    from kbn.errors import KbnError, RefusedError
    from kbn.language import loads_event, parse_event

    for number, line in enumerate(stream, 1):
        text = line.strip()
        if not text:
            continue
        try:
            yield loads_event(text) if text.startswith("{") else parse_event(text)
        except KbnError as error:
            problem = MERGED if is_merged(text) else error
            raise RefusedError(error.code, f"line {number}: {problem}") from None


def _progress(events: Iterator[Notification], quiet: bool) -> Iterator[Notification]:
    if quiet or not sys.stderr.isatty():
        yield from events
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} published"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("publishing", total=None)
        for event in events:
            progress.advance(task)
            yield event


@talks
def sub(
    asked: Annotated[str, typer.Argument(metavar="FILTER", help="What to subscribe to.")],
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="Stop after so many notifications.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="24h|TIME", help="First what came since then, stored."),
    ] = None,
    durable: Annotated[
        str | None,
        typer.Option("--durable", metavar="NAME", help="Have kept under a name what you miss."),
    ] = None,
    *,
    there: There,
    as_json: AsJson = False,
) -> None:
    """Print every notification that matches, as it comes; with --since first the past.

    With --durable the broker keeps what matches while you are away, until you come back
    under the same name with the same filter.
    """
    import asyncio

    from kbn.cli.times import read_since
    from kbn.language import parse_subscription

    subscription = parse_subscription(asked)
    first = read_since(since)

    async def listen() -> None:
        from kbn.client.aio import connect

        options = there.options()
        options["reconnect"] = True
        options["on_connected"] = _line_watch(missing=durable is None and first is None)
        if durable is not None:
            options["name"], options["durable"] = durable, True
        async with (
            connect(there.broker, **options) as client,
            client.subscribe(subscription, since=first) as stream,
        ):
            if not as_json and sys.stderr.isatty():
                typer.echo(f"subscribed at {client.identity}; Ctrl-C ends", err=True)
            if durable is not None:
                # One name, one filter: what was asked under it before is asked no more.
                await client.drop_unclaimed()
                if client.lost:
                    typer.echo(f"kbn: warning: {client.lost} were lost meanwhile", err=True)
            await _warn_of_unknown_terms(client, subscription)
            heard = 0
            async for notification in stream:
                _show(notification, as_json)
                stream.done()
                heard += 1
                if heard == count:
                    return

    try:
        asyncio.run(listen())
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _line_watch(*, missing: bool) -> Callable[[bool], None]:
    """Says on standard error when the broker is away, and when it is back."""

    def tell(connected: bool) -> None:
        said = "connected again" if connected else "connection lost, trying again"
        if connected and missing:
            said += "; what came meanwhile was not told; see --durable"
        typer.echo(f"kbn: {said}", err=True)

    return tell


async def _warn_of_unknown_terms(client: Client, asked: Subscription) -> None:
    """A misspelt term is no error, since an ontology may come later; but nothing matches it."""
    from kbn.errors import RefusedError
    from kbn.language import print_subscription
    from kbn.model.filters import needs_ontology
    from kbn.model.values import members_of

    if not needs_ontology(asked):
        return
    try:
        rows = await client.subscriptions()
    except RefusedError:
        # Not everybody may look at that.
        return
    text = print_subscription(asked)
    for row in rows:
        if row["subscription"] == text and "unknown" in row:
            terms = ", ".join(map(str, members_of(row["unknown"])))
            typer.echo(
                f"kbn: warning: the broker's ontology does not know {terms}: nothing matches"
                " that; `kbn ontology list --broker URL` shows its prefixes",
                err=True,
            )
            return


def _show(notification: Notification, as_json: bool) -> None:
    from kbn.language import event_to_json, print_event

    if as_json:
        typer.echo(json.dumps(event_to_json(notification), ensure_ascii=False))
    else:
        typer.echo(print_event(notification))
    sys.stdout.flush()
