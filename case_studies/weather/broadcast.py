"""The study over a broker: publishers say bulletins at their times, towns hear what they asked.

Every publisher and every town is a client of its own. A bulletin is said when the one
before it was acknowledged, so the broker's order is that of the bulletins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Protocol

import kbn
from case_studies.pace import Pace
from case_studies.weather.bulletins import END, START, Bulletin
from kbn.errors import RefusedError

#: Said last, and asked for by everybody: what was matched before arrives before it.
OVER = "broadcast_over"


class Watcher(Protocol):
    """Who looks on."""

    def said(self, bulletin: Bulletin) -> None:
        """A bulletin is about to be published."""

    def told(self, town: str, bulletin: Bulletin) -> None:
        """A town was told of it."""


@dataclass
class Broadcast:
    """What became of it: who was told what, and what a broker would not take."""

    told: dict[str, list[Bulletin]] = field(default_factory=dict)
    published: int = 0
    refused: list[tuple[Bulletin, str]] = field(default_factory=list)


async def broadcast(
    url: str,
    bulletins: Sequence[Bulletin],
    asked: Mapping[str, str],
    pace: Pace,
    watcher: Watcher | None = None,
) -> Broadcast:
    """Say all bulletins; returns when every town has heard everything it is told."""
    done = Broadcast({town: [] for town in asked})
    by_part = {(b.alert.id, b.part): b for b in bulletins}
    async with AsyncExitStack() as stack:
        listeners = []
        for town, subscription in asked.items():
            client = await stack.enter_async_context(kbn.connect(url, name=town.lower()))
            stream = await client.subscribe(f"({subscription}) or {OVER} any").ready()
            listeners.append(asyncio.create_task(_listen(town, stream, by_part, done, watcher)))
        publishers = {
            source: await stack.enter_async_context(kbn.connect(url))
            for source in sorted({b.alert.source for b in bulletins})
        }
        for bulletin in bulletins:
            await pace.until(bulletin.at)
            if watcher is not None:
                watcher.said(bulletin)
            try:
                await publishers[bulletin.alert.source].publish(bulletin.event)
            except RefusedError as error:
                done.refused.append((bulletin, str(error)))
                continue
            done.published += 1
        last = await stack.enter_async_context(kbn.connect(url))
        await last.publish({OVER: True})
        await asyncio.gather(*listeners)
    return done


async def _listen(
    town: str,
    stream: kbn.Stream,
    by_part: Mapping[tuple[str, str], Bulletin],
    done: Broadcast,
    watcher: Watcher | None,
) -> None:
    async for heard in stream:
        if OVER in heard:
            return
        kind = heard["KBN_PUB_TYPE"]
        part = START if isinstance(kind, kbn.Bag) and START in kind else END
        bulletin = by_part[str(heard["PUB_ID"]), part]
        done.told[town].append(bulletin)
        if watcher is not None:
            watcher.told(town, bulletin)
