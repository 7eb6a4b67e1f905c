"""Verbs that talk to a running broker: pub, sub, subs, who, drops."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbn.cli.lasting import Lasting

if TYPE_CHECKING:
    import ssl
    from typing import TextIO

    from kbn.client.aio import Client
    from kbn.client.options import Told
    from kbn.model import Notification

Broker = Annotated[
    str,
    typer.Option("--broker", envvar="KBN_BROKER", metavar="URL", help="The broker to talk to."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Token = Annotated[
    str | None, typer.Option("--token", envvar="KBN_TOKEN", help="Who you are, by token.")
]
User = Annotated[
    str | None,
    typer.Option("--user", envvar="KBN_USER", help="Who you are; the password is KBN_PASSWORD."),
]
Ca = Annotated[
    Path | None, typer.Option("--ca", envvar="KBN_CA", help="The authority behind ka+senps://.")
]
DEFAULT = "ka://127.0.0.1:1969"


def told(token: str | None, user: str | None, ca: Path | None) -> Told:
    """The client's options for these flags."""
    options: Told = {"reconnect": False}
    if token is not None:
        options["token"] = token
    if user is not None:
        options["user"] = user
        options["password"] = os.environ.get("KBN_PASSWORD") or typer.prompt(
            "password", hide_input=True, err=True
        )
    if ca is not None:
        options["tls"] = _trust(ca)
    return options


def _trust(ca: Path) -> ssl.SSLContext:
    import ssl

    try:
        context = ssl.create_default_context(cafile=str(ca))
        cert = os.environ.get("KBN_CERT")
        if cert:
            context.load_cert_chain(cert, os.environ.get("KBN_KEY"))
    except (OSError, ssl.SSLError) as error:
        raise typer.BadParameter(f"cannot use {ca}: {error}") from None
    return context


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
    broker: Broker = DEFAULT,
    token: Token = None,
    user: User = None,
    ca: Ca = None,
    as_json: AsJson = False,
) -> None:
    """Publish one event, or a file of them; returns once the broker acknowledged."""
    import asyncio

    from kbn.client.aio import connect
    from kbn.language import parse_event

    if event is not None and file is not None:
        raise typer.BadParameter("give either EVENT or --file")
    lasting = Lasting.of(start, end, instant, at, event_id, bare)
    options = told(token, user, ca)
    if lasting is not None:
        if file is not None:
            raise typer.BadParameter("--file is for events as they are: give one EVENT")
        if event is None and end is None:
            raise typer.BadParameter("give an EVENT")
        made = asyncio.run(lasting.publish(broker, options, parse_event(event or "")))
        typer.echo(json.dumps({"id": made}) if as_json else made)
        return
    if event is not None:
        parsed = parse_event(event)

        async def publish() -> str:
            async with connect(broker, **options) as client:
                return await client.publish(parsed)

        uid = asyncio.run(publish())
        typer.echo(json.dumps({"id": uid}) if as_json else uid)
        return
    source = Path("-") if file is None else file
    if file is None and sys.stdin.isatty():
        raise typer.BadParameter("give an EVENT, --file, or events on standard input")

    async def publish_all() -> int:
        async with connect(broker, **options) as client:
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
            raise RefusedError(error.code, f"line {number}: {error}") from None


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
    broker: Broker = DEFAULT,
    token: Token = None,
    user: User = None,
    ca: Ca = None,
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

        options = told(token, user, ca)
        options["reconnect"] = True
        if durable is not None:
            options["name"], options["durable"] = durable, True
        async with (
            connect(broker, **options) as client,
            client.subscribe(subscription, since=first) as stream,
        ):
            if not as_json and sys.stderr.isatty():
                typer.echo(f"subscribed at {client.identity}; Ctrl-C ends", err=True)
            if durable is not None:
                # One name, one filter: what was asked under it before is asked no more.
                await client.drop_unclaimed()
                if client.lost:
                    typer.echo(f"kbn: warning: {client.lost} were lost meanwhile", err=True)
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


def _show(notification: Notification, as_json: bool) -> None:
    from kbn.language import event_to_json, print_event

    if as_json:
        typer.echo(json.dumps(event_to_json(notification), ensure_ascii=False))
    else:
        typer.echo(print_event(notification))
    sys.stdout.flush()


def who(
    broker: Broker = DEFAULT,
    token: Token = None,
    user: User = None,
    ca: Ca = None,
    as_json: AsJson = False,
) -> None:
    """Show what the broker tells about itself."""

    async def ask(client: Client) -> list[Notification]:
        return [await client.who()]

    (row,) = ask_broker(broker, told(token, user, ca), ask)
    if as_json:
        typer.echo(json.dumps(row, ensure_ascii=False))
        return
    for name, value in row.items():
        typer.echo(f"{name:24} {_words(value)}")


def drops(
    broker: Broker = DEFAULT,
    token: Token = None,
    user: User = None,
    ca: Ca = None,
    as_json: AsJson = False,
) -> None:
    """Show what was dropped, by subscriber and reason."""

    async def ask(client: Client) -> list[Notification]:
        return await client.drops()

    rows = ask_broker(broker, told(token, user, ca), ask)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    if not rows:
        typer.echo("nothing was dropped")
        return
    reasons = list(dict.fromkeys(r for row in rows for r in row if r not in _ROW))
    _table(
        ["subscriber", *reasons],
        [[row["subscriber"], *(row.get(reason, 0) for reason in reasons)] for row in rows],
    )


_ROW = ("number", "subscriber")


def subs(
    tree: Annotated[
        bool, typer.Option("--tree", help="As the covering order: each below one that covers it.")
    ] = False,
    broker: Broker = DEFAULT,
    token: Token = None,
    user: User = None,
    ca: Ca = None,
    as_json: AsJson = False,
) -> None:
    """Show every subscription the broker holds, as it was received."""

    async def ask(client: Client) -> list[Notification]:
        return await client.subscriptions()

    rows = ask_broker(broker, told(token, user, ca), ask)
    if tree:
        _show_tree(rows, as_json)
        return
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    if not rows:
        typer.echo("no subscriptions")
        return
    columns = ["subscriber", "subscription", "target", "queued", "suspended"]
    if any("unknown" in row for row in rows):
        columns.append("unknown")
    _table(columns, [[row.get(name, "-") for name in columns] for row in rows])


def _show_tree(rows: list[dict[str, Any]], as_json: bool) -> None:
    from kbn.covering.order import covering_tree
    from kbn.language import parse_subscription

    shown = {i: (row, parse_subscription(row["subscription"])) for i, row in enumerate(rows)}
    parents = covering_tree([asked for _, asked in shown.values()])
    if as_json:
        for i, (row, _) in shown.items():
            above = parents[i]
            said = {**row, "covered_by": None if above is None else rows[above]["number"]}
            typer.echo(json.dumps(said, ensure_ascii=False))
        return
    children: dict[int | None, list[int]] = {}
    for i, above in enumerate(parents):
        children.setdefault(above, []).append(i)

    def show(i: int, depth: int) -> None:
        row = rows[i]
        typer.echo(f"{'  ' * depth}{row['subscription']}   [{row['subscriber']}]")
        for child in children.get(i, []):
            show(child, depth + 1)

    for root in children.get(None, []):
        show(root, 0)


def ask_broker(broker: str, options: Told, question: Any) -> list[dict[str, Any]]:
    """The rows a question to a running broker is answered with, in the JSON form."""
    import asyncio

    from kbn.client.aio import connect
    from kbn.language import event_to_json

    async def ask() -> list[Notification]:
        async with connect(broker, **options) as client:
            rows: list[Notification] = await question(client)
            return rows

    return [dict(event_to_json(row)) for row in asyncio.run(ask())]


def _words(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    return str(value)


def _table(columns: list[str], rows: list[list[object]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_words(cell)) for cell in row))
    # A pipe has no width: nothing is folded there, so that grep finds whole lines.
    Console(width=None if sys.stdout.isatty() else 10_000).print(table)
