"""The service, its handler and the operator's controller against one broker, step by step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import kbn
from case_studies.dynamic_logging.controller import Changed, Controller, Levels
from case_studies.dynamic_logging.handler import KbnHandler, Ticks
from case_studies.dynamic_logging.script import Step
from case_studies.dynamic_logging.service import log, perform, serving
from case_studies.pace import Pace


class Viewer(Protocol):
    """Who watches the story."""

    def said(self, line: kbn.Delivery) -> None:
        """A log line that the operator is shown."""

    def turned(self, change: Changed) -> None:
        """The operator's level changed."""


@dataclass
class Told:
    """What the operator was shown and how the level went; passes everything on to a viewer."""

    viewer: Viewer | None = None
    lines: list[kbn.Delivery] = field(default_factory=list)
    changes: list[Changed] = field(default_factory=list)

    @property
    def ids(self) -> set[str]:
        """The records that were shown."""
        return {str(line["PUB_ID"]) for line in self.lines}

    def shown(self, record: kbn.Delivery) -> None:
        self.lines.append(record)
        if self.viewer is not None:
            self.viewer.said(record)

    def changed(self, change: Changed) -> None:
        self.changes.append(change)
        if self.viewer is not None:
            self.viewer.turned(change)


async def play(
    url: str,
    steps: Sequence[Step],
    pace: Pace,
    calm: int,
    viewer: Viewer | None = None,
) -> Told:
    """Run the service and perform the steps at their times; returns when all is quiet again.

    ``calm`` is in told milliseconds.
    """
    told = Told(viewer)
    handler = KbnHandler(url, clock=pace.seconds, ticks=Ticks())
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(handler)
    try:
        async with (
            kbn.connect(url, name="operator") as client,
            Controller(client, told, Levels(calm), pace.now) as controller,
        ):
            with serving() as base:
                for step in steps:
                    await _wait(pace, controller, pace.start + step.at)
                    await asyncio.to_thread(perform, base, step)
                    await asyncio.to_thread(handler.flush, 30.0)
                    await controller.settle()
            await _wait(pace, controller, None)
    finally:
        log.removeHandler(handler)
        await asyncio.to_thread(handler.close)
    return told


async def _wait(pace: Pace, controller: Controller, moment: int | None) -> None:
    """Until the moment, waking the controller when its calm period ends; None: until it has."""
    while (wakes := controller.wakes) is not None and (moment is None or wakes <= moment):
        await pace.until(wakes)
        await controller.settle()
    if moment is not None:
        await pace.until(moment)
