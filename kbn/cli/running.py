"""What ``kbn explain --sub`` asks of a running broker."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kbn.cli.connecting import There

SubscriberId = Annotated[
    str | None,
    typer.Option("--sub", metavar="ID", help="A subscriber of a running broker, not FILTER."),
]
EventId = Annotated[
    str | None,
    typer.Option("--event-id", metavar="ID", help="With --sub: an event of its history."),
]


def explained_there(subscriber: str, event_id: str, there: There) -> list[dict[str, Any]]:
    """What the broker says of an event in its history, publication by publication."""
    import asyncio

    from kbn.client.aio import connect

    async def ask() -> list[dict[str, Any]]:
        async with connect(there.broker, **there.options()) as client:
            return await client.explain(subscriber, event_id)

    return asyncio.run(ask())


def held_subscription(subscriber: str, there: There) -> str:
    """All a subscriber asked for, as one text; ``RefusedError`` if nobody has that id."""
    from kbn.errors import RefusedError

    rows = there.ask(lambda client: client.subscriptions())
    mine = [str(row["subscription"]) for row in rows if row["subscriber"] == subscriber]
    if not mine:
        raise RefusedError(
            "unsupported", f"nobody subscribes as '{subscriber}': `kbn subs` lists who does"
        )
    return mine[0] if len(mine) == 1 else " or ".join(f"({text})" for text in mine)
