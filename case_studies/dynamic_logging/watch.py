"""An operator's screen: errors of a log, and INFO from three failed logins until calm."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from typing import Unpack

import kbn
from case_studies.dynamic_logging.controller import Changed, Controller, Levels
from case_studies.dynamic_logging.following import CALM
from case_studies.dynamic_logging.handler import NAMES
from kbn.client.options import DEFAULT_URL, Told
from kbn.language.durations import read_duration

#: Seconds between looks at the clock.
GLANCE = 0.25


class Lines:
    """A screen of plain lines."""

    def shown(self, record: kbn.Delivery) -> None:
        level = record["log_level"]
        name = NAMES[level] if isinstance(level, int) and 0 < level < len(NAMES) else str(level)
        said = f"{record.get('log_logger')}: {record.get('log_message')}"
        print(f"{_clock(record.at)} {name:8} {said}", flush=True)

    def changed(self, change: Changed) -> None:
        print(f"{_clock(change.at)} --- from now on: {NAMES[change.level]}", flush=True)


def _clock(moment: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment / 1000))


async def watch(url: str = DEFAULT_URL, calm: float = CALM, **told: Unpack[Told]) -> None:
    """Print what an operator is shown, until cancelled; ``told`` is what ``kbn.connect`` takes."""

    def now() -> int:
        return int(time.time() * 1000)

    async with (
        kbn.connect(url, **told) as client,
        Controller(client, Lines(), Levels(int(calm * 1000)), now) as controller,
    ):
        while True:
            await asyncio.sleep(GLANCE)
            controller.passed()


def main(arguments: Sequence[str] | None = None) -> int:
    asked = argparse.ArgumentParser(
        prog="python -m case_studies.dynamic_logging.watch",
        description="Errors of a log, and INFO from three failed logins until calm.",
    )
    asked.add_argument("--broker", default=os.environ.get("KBN_BROKER", DEFAULT_URL))
    asked.add_argument("--calm", type=_seconds, default=CALM, help="as 10s, 5min (10s)")
    asked.add_argument("--token", help="who you are, where the broker asks")
    given = asked.parse_args(arguments)
    try:
        asyncio.run(watch(given.broker, given.calm, token=given.token))
    except kbn.KbnError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _seconds(text: str) -> float:
    try:
        return read_duration(text) / 1000
    except kbn.KbnError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
