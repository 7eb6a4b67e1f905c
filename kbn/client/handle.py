"""An event that lasts as long as a block of code.

    async with c.event(kind="storm", region="west") as e:
        ...
        e.update(strength=9)

START is published on entering and END on leaving, also when the block fails: the
event is over either way.
"""

from __future__ import annotations

from typing import Protocol

from kbn.client.events import Plain, Publishable, as_notification
from kbn.client.moments import Moment, milliseconds, now
from kbn.client.telling import ended, said, started
from kbn.model import Notification


class Publisher(Protocol):
    """What a handle asks of its client."""

    def new_id(self) -> str: ...

    async def publish(self, event: Publishable | None = None, /, **attributes: Plain) -> str: ...


class EventHandle:
    """One event: ``id`` and ``start`` are known once it is entered."""

    def __init__(
        self,
        client: Publisher,
        told: Notification,
        event_id: str | None,
        at: Moment | None,
    ) -> None:
        self._client = client
        self._told = told
        self._at = None if at is None else milliseconds(at)
        self._ends: int | None = None
        self.id = event_id or client.new_id()
        self.start: int | None = None
        self._open = False

    def update(
        self, event: Publishable | None = None, /, *, at: Moment | None = None, **attributes: Plain
    ) -> None:
        """What the END will say beside, or instead; ``at`` is when it ends, if not on leaving."""
        more = said(as_notification(event, attributes), {})
        self._told = Notification({**self._told.attributes, **more.attributes})
        if at is not None:
            self._ends = milliseconds(at)

    async def begin(self) -> EventHandle:
        """Publish the START."""
        moment = now() if self._at is None else self._at
        await self._client.publish(started(self._told, self.id, moment))
        self.start, self._open = moment, True
        return self

    async def finish(self) -> None:
        """Publish the END, once."""
        if not self._open or self.start is None:
            return
        # A clock that was set back must not end an event before it began.
        moment = max(now(), self.start) if self._ends is None else self._ends
        await self._client.publish(ended(self._told, self.id, moment))
        self._open = False

    async def __aenter__(self) -> EventHandle:
        return await self.begin()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.finish()
