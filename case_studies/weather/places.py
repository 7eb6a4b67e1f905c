"""The map: 93 counties with their outlines, and the three towns of the study.

Outlines are facts of the United States Census Bureau's cartographic boundaries (public
domain), computed from the us-atlas 3.0.1 package; see ``ontologies/nebraska``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import ontologies
from ontologies.nebraska.generate import County as Row
from ontologies.nebraska.generate import term

Point = tuple[float, float]
#: How bulletins name the state.
STATE = "geo:NE"


@dataclass(frozen=True, slots=True)
class County:
    """A county, named as the ontology names it; places are (longitude, latitude)."""

    name: str
    fips: str
    term: str
    centre: Point
    outline: tuple[tuple[Point, ...], ...]
    touching: frozenset[str]

    def __contains__(self, place: Point) -> bool:
        """Whether a place lies inside: an odd number of borders to the east of it."""
        east, north = place
        inside = False
        for ring in self.outline:
            for (ax, ay), (bx, by) in zip(ring, ring[1:] + ring[:1], strict=True):
                if (ay > north) != (by > north):
                    crossing = ax + (north - ay) * (bx - ax) / (by - ay)
                    inside ^= east < crossing
        return inside


@dataclass(frozen=True, slots=True)
class Town:
    """Where somebody listens."""

    name: str
    place: Point


TOWNS = (
    Town("York", (-97.592, 40.868)),
    Town("Geneva", (-97.595, 40.527)),
    Town("Aurora", (-98.004, 40.867)),
)


@cache
def counties() -> dict[str, County]:
    """All of them, by name."""
    path = ontologies.path("nebraska").with_name("counties.json")
    rows: list[dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))
    return {county.name: county for county in map(_county, rows)}


def _county(row: dict[str, object]) -> County:
    said: Row = row  # type: ignore[assignment]
    rings: list[list[list[float]]] = row["outline"]  # type: ignore[assignment]
    return County(
        name=said["name"],
        fips=said["fips"],
        term=term(said),
        centre=(said["lon"], said["lat"]),
        outline=tuple(tuple((x, y) for x, y in ring) for ring in rings),
        touching=frozenset([*said["neighbours"], *said["corners"]]),
    )


@cache
def by_fips() -> dict[str, County]:
    """By the five digits of the census."""
    return {county.fips: county for county in counties().values()}


@cache
def by_term() -> dict[str, County]:
    """By the name in bulletins."""
    return {county.term: county for county in counties().values()}


def county_at(place: Point) -> County | None:
    """The county a place lies in; None outside the state."""
    return next((county for county in counties().values() if place in county), None)


def near(names: frozenset[str]) -> frozenset[str]:
    """Counties with all that touch them."""
    table = counties()
    return names.union(*(table[name].touching for name in names))
