"""The National Weather Service's alerts for a broker of one's own, once or again and again.

    python -m case_studies.weather.alerts FILE|URL --broker ka://127.0.0.1:1969 --every 60s

Every START and every END is published once. The service stops listing an alert when it is
over, so an end that was announced is remembered and said when its time comes; a start that
is withdrawn before its time is not said. What another run has published is a duplicate:
the broker acknowledges it and tells nobody again.

Exit code 0: published, or ended by Ctrl-C; 1: the broker refused something; 2: no alerts
could be read, or no broker reached. With ``--every`` that is said, and tried again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import kbn
from case_studies.weather import alerts
from case_studies.weather.bulletins import END, START, Bulletin, in_order
from kbn.errors import KbnError, RefusedError
from kbn.language.durations import read_duration

BROKER = "ka://127.0.0.1:1969"
Key = tuple[str, str]


@dataclass
class Relay:
    """What was said and what is to come, by an alert's id and its part."""

    said: set[Key] = field(default_factory=set)
    _coming: dict[Key, Bulletin] = field(default_factory=dict)

    def due(self, bulletins: Iterable[Bulletin], now: int | None) -> list[Bulletin]:
        """Those to publish now, in order; without ``now`` all that were not said before."""
        announced = {
            key: bulletin
            for key, bulletin in self._coming.items()
            if key[1] == END and (key[0], START) in self.said
        }
        announced |= {(b.alert.id, b.part): b for b in bulletins}
        self._coming = {key: b for key, b in announced.items() if key not in self.said}
        return in_order(b for b in self._coming.values() if now is None or b.at <= now)

    def done(self, bulletin: Bulletin) -> None:
        """It was published."""
        key = bulletin.alert.id, bulletin.part
        self.said.add(key)
        self._coming.pop(key, None)


def main(
    arguments: Sequence[str] | None = None, wait: Callable[[float], None] = time.sleep
) -> int:
    given = _parser().parse_args(arguments)
    relay, refused = Relay(), 0
    try:
        while True:
            try:
                refused += _round(given, relay)
            except (alerts.AlertsError, OSError) as error:
                hint = " (an address needs the network)" if _needs_network(given) else ""
                if not _goes_on(given, f"cannot read the alerts: {error}{hint}"):
                    return 2
            except KbnError as error:
                if not _goes_on(given, f"cannot publish: {error}"):
                    return 2
            if given.every is None:
                break
            wait(given.every)
    except KeyboardInterrupt:
        print(f"ended; {len(relay.said)} published in all")
    return 1 if refused else 0


def _round(given: argparse.Namespace, relay: Relay) -> int:
    """Read, publish what is new, say what became of it; returns how many were refused."""
    # A recording has come to its end; what is read again and again is the present.
    now = int(time.time() * 1000) if given.every or _needs_network(given) else None
    reading = alerts.read(alerts.fetch(given.place))
    old = sum((b.alert.id, b.part) in relay.said for b in reading.bulletins)
    parts: Counter[str] = Counter()
    refused: list[str] = []
    with kbn.connect_sync(given.broker, token=given.token) as client:
        for bulletin in relay.due(reading.bulletins, now):
            try:
                client.publish(bulletin.event)
            except RefusedError as error:
                refused.append(f"{bulletin.part} {bulletin.alert.id}: {error}")
            else:
                parts[bulletin.part] += 1
                relay.done(bulletin)
    print(
        f"{parts.total()} published ({parts[START]} starts, {parts[END]} ends), {old} published"
        f" before, {len(refused)} refused; {reading}",
        flush=True,
    )
    for line in refused:
        print(f"refused: {line}", file=sys.stderr, flush=True)
    return len(refused)


def _needs_network(given: argparse.Namespace) -> bool:
    return alerts.is_address(given.place)


def _goes_on(given: argparse.Namespace, trouble: str) -> bool:
    more = "" if given.every is None else f"; again in {given.every:g} s"
    print(trouble + more, file=sys.stderr, flush=True)
    return given.every is not None


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m case_studies.weather.alerts",
        description="Publish the National Weather Service's alerts to a broker.",
    )
    made.add_argument(
        "place", metavar="FILE|URL", help="alerts as JSON; a URL is asked over the network"
    )
    made.add_argument("--broker", default=BROKER, metavar="URL", help=f"where to ({BROKER})")
    made.add_argument("--token", help="who you are, by token")
    made.add_argument(
        "--every", type=_seconds, metavar="60s", help="again and again, until Ctrl-C"
    )
    return made


def _seconds(text: str) -> float:
    try:
        found = read_duration(text) / 1000
    except KbnError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if found <= 0:
        raise argparse.ArgumentTypeError("more than nothing")
    return found
