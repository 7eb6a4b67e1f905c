"""``kbn pub --start|--end|--instant``: an event that lasts, told in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from kbn.cli.times import read_at

if TYPE_CHECKING:
    from kbn.client.options import Told
    from kbn.model import Notification


@dataclass(frozen=True, slots=True)
class Lasting:
    """What the flags ask for; ``end`` is the id of the event that ends."""

    start: bool
    end: str | None
    at: int | None
    event_id: str | None
    bare: bool

    @classmethod
    def of(
        cls,
        start: bool,
        end: str | None,
        instant: bool,
        at: str | None,
        event_id: str | None,
        bare: bool,
    ) -> Lasting | None:
        """None if no flag asks for a part; ``BadParameter`` if they contradict each other."""
        parts = start + instant + (end is not None)
        if parts > 1:
            raise typer.BadParameter("give one of --start, --end and --instant")
        if not parts:
            if at is not None or event_id is not None or bare:
                raise typer.BadParameter(
                    "--at, --id and --bare go with --start, --end or --instant"
                )
            return None
        if end is not None and event_id is not None:
            raise typer.BadParameter("--end says the id itself")
        if bare and end is None:
            raise typer.BadParameter("--bare goes with --end")
        return cls(start, end, read_at(at), event_id, bare)

    async def publish(self, broker: str, options: Told, event: Notification) -> str:
        """Publish the part; returns the event's id."""
        from kbn.client.aio import connect

        async with connect(broker, **options) as client:
            if self.end is not None:
                await client.end(self.end, event, at=self.at, repeat=not self.bare)
                return self.end
            publish = client.start if self.start else client.instant
            return await publish(event, id=self.event_id, at=self.at)
