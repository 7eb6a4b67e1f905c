"""``kbn who``, ``kbn drops``, ``kbn subs``: what a running broker tells about itself."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbn.cli.connecting import AsJson, There, talks

if TYPE_CHECKING:
    from kbn.client.aio import Client
    from kbn.model import Notification


@talks
def who(
    *,
    there: There,
    as_json: AsJson = False,
) -> None:
    """Show what the broker tells about itself."""

    async def ask(client: Client) -> list[Notification]:
        return [await client.who()]

    (row,) = there.ask(ask)
    if as_json:
        typer.echo(json.dumps(row, ensure_ascii=False))
        return
    for name, value in row.items():
        typer.echo(f"{name:24} {_words(value)}")


@talks
def drops(
    *,
    there: There,
    as_json: AsJson = False,
) -> None:
    """Show what was dropped, by subscriber and reason."""

    async def ask(client: Client) -> list[Notification]:
        return await client.drops()

    rows = there.ask(ask)
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


@talks
def subs(
    tree: Annotated[
        bool, typer.Option("--tree", help="As the covering order: each below one that covers it.")
    ] = False,
    *,
    there: There,
    as_json: AsJson = False,
) -> None:
    """Show every subscription the broker holds, as it was received."""

    async def ask(client: Client) -> list[Notification]:
        return await client.subscriptions()

    rows = there.ask(ask)
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
