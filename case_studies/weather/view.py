"""The study while it runs: a map in the terminal, the bulletins, and who was told."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from case_studies.pace import Pace
from case_studies.weather.bulletins import START, WARNING, Bulletin
from case_studies.weather.places import TOWNS, county_at
from case_studies.weather.storms import Cell

COLUMNS, ROWS = 74, 20
WEST, EAST, SOUTH, NORTH = -104.1, -95.25, 39.95, 43.05
STYLES = {"tstorm": "on dark_orange3", "tornado": "on red3", "flood": "on dodger_blue2"}
WATCHED, LAND = "on grey27", "on grey15"
TOWN_STYLES = {"York": "bold bright_cyan", "Geneva": "bold bright_magenta", "Aurora": "bold white"}


def clock(moment: int) -> str:
    """Hours and minutes of a told moment, in UTC."""
    return datetime.fromtimestamp(moment / 1000, UTC).strftime("%H:%M")


@cache
def raster() -> tuple[tuple[str | None, ...], ...]:
    """The county under each character of the map."""
    return tuple(
        tuple(
            county.name if (county := county_at(_place(column, row))) else None
            for column in range(COLUMNS)
        )
        for row in range(ROWS)
    )


def _place(column: int, row: int) -> tuple[float, float]:
    return (
        WEST + (column + 0.5) * (EAST - WEST) / COLUMNS,
        NORTH - (row + 0.5) * (NORTH - SOUTH) / ROWS,
    )


def _square(place: tuple[float, float]) -> tuple[int, int]:
    east, north = place
    column = int((east - WEST) / (EAST - WEST) * COLUMNS)
    return column, int((NORTH - north) / (NORTH - SOUTH) * ROWS)


class Lines:
    """For a pipe: a line a bulletin and a line a notification."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def said(self, bulletin: Bulletin) -> None:
        self._console.print(_line(bulletin), soft_wrap=True)

    def told(self, town: str, bulletin: Bulletin) -> None:
        self._console.print(_notice(town, bulletin), soft_wrap=True)


def _line(bulletin: Bulletin, *, brief: bool = False) -> Text:
    style = "" if bulletin.alert.severity == WARNING else "dim"
    words = f"{clock(bulletin.at)} {bulletin.part:5} {bulletin.alert}"
    return Text(words if brief else f"{words}  ({bulletin.alert.source})", style=style)


def _notice(town: str, bulletin: Bulletin, *, brief: bool = False) -> Text:
    who = (f"→ {town}", TOWN_STYLES.get(town, "bold"))
    told = ": " if brief else " is told: "
    return Text.assemble(f"{clock(bulletin.at)} ", who, told, str(bulletin.alert))


class Map:
    """For a person: drawn anew several times a second. Use it in ``with``."""

    def __init__(self, console: Console, pace: Pace, cells: Sequence[Cell] = ()) -> None:
        self._pace, self._cells = pace, cells
        self._warned: dict[str, Bulletin] = {}
        self._last: deque[Bulletin] = deque(maxlen=7)
        self._told: deque[tuple[str, Bulletin]] = deque(maxlen=7)
        self._live = Live(console=console, get_renderable=self.drawn, refresh_per_second=8)

    def __enter__(self) -> Map:
        self._live.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._live.__exit__(None, None, None)

    def said(self, bulletin: Bulletin) -> None:
        self._last.append(bulletin)
        if bulletin.part == START:
            self._warned[bulletin.alert.id] = bulletin
        else:
            self._warned.pop(bulletin.alert.id, None)

    def told(self, town: str, bulletin: Bulletin) -> None:
        self._told.append((town, bulletin))

    def drawn(self) -> Group:
        """The whole screen."""
        below = Table.grid()
        below.add_column(width=COLUMNS // 2)
        below.add_column(width=COLUMNS - COLUMNS // 2 + 4)
        below.add_row(
            Panel(_stack([_line(b, brief=True) for b in self._last]), title="bulletins", height=9),
            Panel(
                _stack([_notice(*t, brief=True) for t in self._told]),
                title="who was told",
                height=9,
            ),
        )
        title = f"Nebraska, {clock(self._pace.now())} UTC"
        return Group(Panel(self._map(), title=title, width=COLUMNS + 4), below)

    def _map(self) -> Text:
        styles: dict[str, str] = {}
        for bulletin in self._warned.values():
            warning = bulletin.alert.severity == WARNING
            for county in bulletin.alert.counties:
                if warning or county.name not in styles:
                    styles[county.name] = STYLES[bulletin.alert.type] if warning else WATCHED
        marks = {_square(town.place): (town.name[0], TOWN_STYLES[town.name]) for town in TOWNS}
        for cell in self._cells:
            place = cell.at(self._pace.now())
            if place is not None:
                marks.setdefault(_square(place), ("●", "bold bright_yellow"))
        made = Text(no_wrap=True)
        for row, line in enumerate(raster()):
            for column, name in enumerate(line):
                mark, over = marks.get((column, row), ("", ""))
                ground = "" if name is None else styles.get(name, LAND)
                border = name is not None and column and line[column - 1] not in (None, name)
                made.append(mark or ("▏" if border else " "), f"{over or 'grey42'} {ground}")
            made.append("\n")
        return made


def _stack(lines: Sequence[Text]) -> Text:
    return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)
