"""Writes ``nebraska.ttl`` from ``counties.json``: ``python -m ontologies.nebraska.generate``.

The direction of a neighbour is the planar angle between the two centroids, the
difference of longitudes shortened by the cosine of the mean latitude, in eight
sectors of 45° centred on north. Sectors are half open, so the way back is always
the opposite sector. Counties that touch only in a corner are neighbours as well.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TypedDict

HERE = Path(__file__).parent
#: Clockwise from north; four on, and it is the opposite.
DIRECTIONS = ("North", "NorthEast", "East", "SouthEast", "South", "SouthWest", "West", "NorthWest")

HEAD = """\
# Written by generate.py from counties.json: change that.
# Facts of the United States Census Bureau's cartographic boundaries (public domain),
# computed from the us-atlas 3.0.1 package.
@prefix geo: <https://kbn.example/ontologies/geo#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .

<https://kbn.example/ontologies/geo> a owl:Ontology ;
    rdfs:label "The counties of Nebraska"@en ;
    rdfs:comment "Neighbours, and the direction of each. No direction is transitive."@en .

geo:Place a owl:Class ; rdfs:label "place"@en .
geo:State a owl:Class ; rdfs:label "state"@en ; rdfs:subClassOf geo:Place .
geo:County a owl:Class ; rdfs:label "county"@en ; rdfs:subClassOf geo:Place .

geo:isLocatedIn a owl:ObjectProperty ; rdfs:label "is located in"@en ;
    rdfs:domain geo:Place ; rdfs:range geo:Place .
geo:isNeighbourOf a owl:ObjectProperty, owl:SymmetricProperty ; rdfs:label "is a neighbour of"@en ;
    rdfs:domain geo:Place ; rdfs:range geo:Place .
geo:sharesBorderWith a owl:ObjectProperty, owl:SymmetricProperty ;
    rdfs:label "shares a border with"@en ; rdfs:subPropertyOf geo:isNeighbourOf .
geo:touchesCornerOf a owl:ObjectProperty, owl:SymmetricProperty ;
    rdfs:label "touches a corner of"@en ; rdfs:subPropertyOf geo:isNeighbourOf .
geo:fips a owl:DatatypeProperty ; rdfs:label "FIPS code"@en ; rdfs:domain geo:County .
geo:latitude a owl:DatatypeProperty ; rdfs:label "latitude of the centroid, degrees"@en .
geo:longitude a owl:DatatypeProperty ; rdfs:label "longitude of the centroid, degrees"@en .
"""


class County(TypedDict):
    """A row of the table."""

    fips: str
    name: str
    lat: float
    lon: float
    neighbours: list[str]
    corners: list[str]


def counties() -> list[County]:
    table: list[County] = json.loads((HERE / "counties.json").read_text(encoding="utf-8"))
    return table


def direction(here: County, there: County) -> str:
    """Where ``here`` lies, seen from ``there``."""
    shrink = math.cos(math.radians((here["lat"] + there["lat"]) / 2))
    east = (here["lon"] - there["lon"]) * shrink
    north = here["lat"] - there["lat"]
    clockwise = math.degrees(math.atan2(east, north)) % 360
    return DIRECTIONS[int((clockwise + 22.5) % 360 // 45)]


def term(county: County) -> str:
    return f"geo:{short(county)}CountyNE"


def short(county: County) -> str:
    return county["name"].replace(" ", "")


def turtle() -> str:
    table = {county["name"]: county for county in counties()}
    parts = [HEAD]
    for at, name in enumerate(DIRECTIONS):
        words = "".join(f"-{c.lower()}" if c.isupper() and i else c for i, c in enumerate(name))
        parts.append(
            f'geo:is{name}Of a owl:ObjectProperty ; rdfs:label "is {words.lower()} of"@en ;\n'
            "    rdfs:subPropertyOf geo:isNeighbourOf ;"
            f" owl:inverseOf geo:is{DIRECTIONS[(at + 4) % 8]}Of .\n"
        )
    parts.append(
        '\ngeo:Nebraska a geo:State ; rdfs:label "Nebraska" .\n'
        'geo:NE owl:sameAs geo:Nebraska ; rdfs:label "NE" .\n'
    )
    for county in table.values():
        parts.append(
            f'\n{term(county)} a geo:County ; rdfs:label "{county["name"]} County" ;\n'
            f'    geo:fips "{county["fips"]}" ; geo:isLocatedIn geo:Nebraska ;\n'
            f'    geo:latitude "{county["lat"]}"^^xsd:double ;'
            f' geo:longitude "{county["lon"]}"^^xsd:double'
        )
        for how, names in (
            ("sharesBorderWith", county["neighbours"]),
            ("touchesCornerOf", county["corners"]),
        ):
            for name in names:
                other = table[name]
                parts.append(
                    f" ;\n    geo:{how} {term(other)} ;"
                    f" geo:is{direction(county, other)}Of {term(other)}"
                )
        parts.append(f" .\ngeo:{short(county)} owl:sameAs {term(county)} .\n")
    return "".join(parts)


if __name__ == "__main__":
    (HERE / "nebraska.ttl").write_text(turtle(), encoding="utf-8")
