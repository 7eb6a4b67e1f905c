"""Storm cells that move across the map, and the bulletins they cause. Pure: a seed, no clock.

A spotter warns for a county as a cell enters it and ends the warning a while after it
has left, so that neighbours' warnings overlap along a cell's way. The prediction centre
watches the country ahead of the cells from before the first to after the last.

Two cells go the ways of figure 7.4 whatever the seed: A from Hall into Hamilton and on
to York, later B from Merrick into Hamilton and on to Clay. The others come from the seed
and are drawn again when their way touches the counties around Hamilton, so that A and B
stand alone there.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from case_studies.weather.bulletins import END, START, WARNING, WATCH, Alert, Bulletin, in_order
from case_studies.weather.places import County, Point, counties, county_at, near

MINUTE = 60_000
#: How often a cell's place is looked at, and how long a warning outlasts its cell.
STEP, LINGERING = 2 * MINUTE, 12 * MINUTE
#: Kilometres in a degree of latitude.
DEGREE = 111.2
#: How long before the first cell the watch starts, and after the last it ends.
AHEAD = 20 * MINUTE


@dataclass(frozen=True, slots=True)
class Cell:
    """A storm that moves evenly: where it is born, where it goes, from when to when."""

    name: str
    type: str
    born: Point
    died: Point
    begins: int
    ends: int

    def at(self, moment: int) -> Point | None:
        """Where it is; None before and after its life."""
        if not self.begins <= moment <= self.ends:
            return None
        share = (moment - self.begins) / (self.ends - self.begins)
        (ax, ay), (bx, by) = self.born, self.died
        return ax + (bx - ax) * share, ay + (by - ay) * share

    def visits(self) -> list[tuple[int, int, County]]:
        """The counties on its way, each from when to when."""
        found: list[tuple[int, int, County]] = []
        for moment in range(self.begins, self.ends + 1, STEP):
            place = self.at(moment)
            county = None if place is None else county_at(place)
            if county is None:
                continue
            if found and found[-1][2] is county:
                found[-1] = (found[-1][0], moment, county)
            else:
                found.append((moment, moment, county))
        return found


def path_a(begin: int) -> Cell:
    """Eastward: Hall, Hamilton, York."""
    return Cell("A", "tstorm", (-98.55, 40.88), (-97.45, 40.86), begin, begin + 96 * MINUTE)


def path_b(begin: int) -> Cell:
    """Southward and a little east: Merrick, Hamilton, Clay or Fillmore."""
    return Cell("B", "tstorm", (-98.06, 41.22), (-97.70, 40.40), begin, begin + 96 * MINUTE)


def season(seed: int, begin: int, others: int = 6) -> list[Cell]:
    """The two cells of the study, and others of chance elsewhere."""
    chance = random.Random(seed)
    cells = [path_a(begin + AHEAD), path_b(begin + AHEAD + 130 * MINUTE)]
    quiet = near(near(frozenset({"Hamilton"})))
    while len(cells) < others + 2:
        cell = _drawn(chance, len(cells) - 1, begin)
        crossed = {county.name for _, _, county in cell.visits()}
        if len(crossed) >= 2 and not crossed & quiet:
            cells.append(cell)
    return cells


def _drawn(chance: random.Random, number: int, begin: int) -> Cell:
    """Mostly eastward, as storms go there, at 40 to 70 km/h."""
    born = (chance.uniform(-103.9, -96.2), chance.uniform(40.1, 42.9))
    bearing = chance.gauss(80, 30)
    minutes = chance.randrange(60, 150)
    reach = minutes / 60 * chance.uniform(40, 70) / DEGREE
    east = math.sin(math.radians(bearing)) / math.cos(math.radians(born[1]))
    died = (born[0] + reach * east, born[1] + reach * math.cos(math.radians(bearing)))
    begins = begin + AHEAD + chance.randrange(0, 120) * MINUTE
    kind = chance.choices(["tstorm", "tornado", "flood"], [6, 2, 1])[0]
    return Cell(f"s{number}", kind, born, died, begins, begins + minutes * MINUTE)


def warnings(cell: Cell, run: str) -> Iterator[Bulletin]:
    """What spotters say of a cell; ids are made of ``run``, the cell and the county."""
    for number, (entered, left, county) in enumerate(cell.visits()):
        alert = Alert(f"{run}-{cell.name}-{number}", cell.type, WARNING, (county,), "spotter")
        yield Bulletin(entered, START, alert)
        yield Bulletin(left + LINGERING, END, alert)


def watch(cells: list[Cell], run: str) -> list[Bulletin]:
    """What the prediction centre says: one watch for all the country the cells will cross."""
    crossed = {county.name for cell in cells for _, _, county in cell.visits()}
    area = tuple(counties()[name] for name in sorted(near(frozenset(crossed))))
    alert = Alert(f"{run}-watch", "tstorm", WATCH, area, "prediction centre")
    first = min(cell.begins for cell in cells) - AHEAD
    last = max(cell.ends for cell in cells) + AHEAD
    return [Bulletin(first, START, alert), Bulletin(last, END, alert)]


def bulletins(cells: list[Cell], run: str) -> list[Bulletin]:
    """Everything that is said, in order."""
    said = watch(cells, run)
    for cell in cells:
        said += warnings(cell, run)
    return in_order(said)
