"""Storms over Nebraska, and three towns that are told only of those that come their way.

Exit code 0: everybody was told what they asked for; 1: somebody was not; 2: a wrong question.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from case_studies import options
from case_studies.pace import Pace
from case_studies.review import Review, backtest, review
from case_studies.served import BrokerDiedError, served
from case_studies.weather import alerts, lead, picture, storms
from case_studies.weather.broadcast import Broadcast, broadcast
from case_studies.weather.bulletins import Bulletin
from case_studies.weather.subscribers import ASKED, LOOSER, WISHES, in_lines
from case_studies.weather.view import Lines, Map

#: When the storms of a seed begin: an evening in June, 19:00 UTC.
EVENING = 1_780_513_200_000
#: Told time at speed 1: ten minutes in a second.
RATE = 600
#: What York might have asked instead.
OTHER = "York, looser"


@dataclass
class Forecast:
    """What will be said, and why."""

    bulletins: list[Bulletin]
    cells: list[storms.Cell] = field(default_factory=list)
    #: What each town should hear, where the story fixes it: cells by name.
    should: Mapping[str, list[str]] | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    asked = options.parser("weather", (__doc__ or "").splitlines()[0])
    asked.add_argument(
        "--alerts",
        metavar="FILE|URL",
        help="the National Weather Service's alerts as JSON, not storms of a seed; "
        "'sample' is one made by hand",
    )
    given = asked.parse_args(arguments)
    console = Console(highlight=False)
    if given.data_dir is not None and any(given.data_dir.glob("*")):
        return _wrong(f"{given.data_dir} is not empty, and this story needs a history of its own")
    try:
        forecast = _from_alerts(given.alerts, console) if given.alerts else _from_seed(given.seed)
    except (alerts.AlertsError, OSError) as error:
        return _wrong(f"cannot read the alerts: {error}")
    if not forecast.bulletins:
        return _wrong("there is no watch or warning for a county of Nebraska in it")
    with tempfile.TemporaryDirectory(prefix="kbn-weather-") as folder:
        data_dir = given.data_dir or Path(folder)
        try:
            with served(data_dir, knows=["nebraska"]) as url:
                console.print(f"a broker that knows the counties of Nebraska listens on {url}")
                for town, subscription in ASKED.items():
                    wish = in_lines(subscription)
                    console.print(f"{town} asks\n{wish}", soft_wrap=True, markup=False)
                console.print()
                done = _shown(url, forecast, given.speed, console)
        except BrokerDiedError as error:
            return _wrong(str(error))
        found = review(data_dir, {**ASKED, OTHER: LOOSER})
        ahead = lead.in_words(lead.minutes(forecast.bulletins, done.told))
        notes = _report(console, done, found, ahead)
        tested = backtest(data_dir, {"York": ASKED["York"], OTHER: LOOSER}, not given.no_spark)
        console.print(str(tested), soft_wrap=True)
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / ("weather-alerts.svg" if given.alerts else "weather.svg")
    drawn = picture.draw(forecast.bulletins, done.told, forecast.cells, WISHES, notes)
    path.write_text(drawn, encoding="utf-8")
    console.print(f"\nthe picture: {path}")
    return 0 if _judge(console, forecast, done, found) and tested.agreed else 1


def _wrong(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2


def _from_seed(seed: int) -> Forecast:
    cells = storms.season(seed, EVENING)
    should = {"York": ["A"], "Geneva": ["B"], "Aurora": ["A", "B"]}
    return Forecast(storms.bulletins(cells, f"storm{seed}"), cells, should)


def _from_alerts(place: str, console: Console) -> Forecast:
    if place == "sample":
        place = str(Path(__file__).with_name("sample_alerts.json"))
    # What an address answers is the present: ends that are announced are not reached yet.
    now = int(time.time() * 1000) if alerts.is_address(place) else None
    reading = alerts.read(alerts.fetch(place), now)
    console.print(str(reading), soft_wrap=True)
    return Forecast(reading.bulletins)


def _shown(url: str, forecast: Forecast, speed: float, console: Console) -> Broadcast:
    """Run it, with a map where somebody looks and lines where nobody does."""
    pace = Pace(forecast.bulletins[0].at, speed * RATE)
    watcher: Map | Lines
    with contextlib.ExitStack() as stack:
        if console.is_terminal and speed:
            watcher = stack.enter_context(Map(console, pace, forecast.cells))
        else:
            watcher = Lines(console)
        return asyncio.run(broadcast(url, forecast.bulletins, ASKED, pace, watcher))


def _report(console: Console, done: Broadcast, found: Review, ahead: str) -> list[str]:
    """In words: who was told, and what a looser wish would have brought."""
    console.print(f"\n{done.published} bulletins were published, {len(done.refused)} refused")
    for town, heard in done.told.items():
        what = "; ".join(f"{b.part} {b.alert}" for b in heard) or "nothing"
        console.print(f"  {town} was told {len(heard)}: {what}", soft_wrap=True)
    if ahead:
        console.print(f"\n{ahead}")
    more = found.only(OTHER, "York")
    notes = [
        f"York was told {_times(found.told['York'])}. Had it asked for storms from any side, it",
        f"would have been told {_times(found.told[OTHER])}: {len(more)} more, of storms that pass"
        " it by.",
    ]
    console.print("\n" + " ".join(notes), soft_wrap=True)
    return notes


def _times(entries: Sequence[object]) -> str:
    return "once" if len(entries) == 1 else f"{len(entries)} times"


def _judge(console: Console, forecast: Forecast, done: Broadcast, found: Review) -> bool:
    """Live and replayed must agree, and paths A and B must go where the study says."""
    right = not done.refused
    for town, heard in done.told.items():
        live = [b.alert.id for b in heard]
        again = [entry.uid for entry in found.told[town]]
        if live != again:
            console.print(f"[red]{town} heard {live}; the history read again says {again}")
            right = False
        if forecast.should is not None:
            paths = [alert.split("-")[1] for alert in live]
            if paths != forecast.should[town]:
                console.print(f"[red]{town} heard of {paths}, not of {forecast.should[town]}")
                right = False
    if right:
        console.print("what was told live is what the history read again says")
        if forecast.should is not None:
            console.print("path A reached York and not Geneva, path B Geneva and not York,")
            console.print("Aurora was told of both")
    return right


if __name__ == "__main__":
    sys.exit(main())
