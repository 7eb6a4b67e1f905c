"""The ontologies that come with KBN."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import ontologies
from kbn.knowledge.assembly import Assembled, assemble
from kbn.knowledge.hierarchy.parts import INDIVIDUAL
from kbn.knowledge.request import Request, Source
from kbn.model.operators import Related, Semantic
from ontologies.nebraska import generate as nebraska
from ontologies.wine import generate as wine
from tests.knowledge.ask import ask


@cache
def made(name: str, reasoner: str = "none") -> Assembled:
    return assemble(Request((Source.read(ontologies.path(name)),)), reasoner=reasoner)


def known(name: str):
    return made(name).hierarchy


@pytest.mark.parametrize("name", ontologies.NAMES)
def test_each_is_consistent_and_binds_its_prefix(name):
    assert made(name).warnings == []
    assert known(name).prefixes.table[ontologies.NAMES[name]].startswith("https://kbn.example/")


@pytest.mark.parametrize("name", ontologies.NAMES)
def test_each_term_of_its_own_has_a_label(name):
    ours = known(name)
    for iri, thing in zip(ours.iris, ours.thing_of, strict=True):
        if iri.startswith("https://"):
            assert thing in ours.reasons.labels, iri


@pytest.mark.parametrize("name", ontologies.NAMES)
def test_reasonable_adds_nothing_to_our_own_rules(name):
    assert made(name, "reasonable").unheard == 0
    assert made(name, "reasonable").hierarchy.hash == known(name).hash


@pytest.mark.parametrize("name", ["wine", "events", "units"])
def test_owlrl_adds_nothing_to_our_own_rules(name):
    assert made(name, "owlrl").unheard == 0
    assert made(name, "owlrl").hierarchy.hash == known(name).hash


@pytest.mark.parametrize("name", ontologies.NAMES)
def test_each_has_a_readme_and_is_found_by_name(name):
    assert (ontologies.path(name).parent / "README.md").exists()


def test_another_name_is_none_of_ours():
    with pytest.raises(KeyError):
        ontologies.path("beer")


@pytest.mark.parametrize(("name", "generator"), [("wine", wine), ("nebraska", nebraska)])
def test_the_generator_writes_exactly_the_file_that_is_here(name, generator):
    assert ontologies.path(name).read_text(encoding="utf-8") == generator.turtle()


# --- wine ---------------------------------------------------------------------------------


def test_there_are_fifty_wines_and_more_red_and_white():
    red = known("wine").extent(Related("wine:hasColor"), "wine:Red")
    white = known("wine").extent(Semantic.IS_A, "wine:WhiteWine")
    assert len(red) + len(white) >= 50
    assert min(len(red), len(white)) >= 20
    assert not red & white


@pytest.mark.parametrize(
    "question",
    [
        "wine:ChiantiClassico is_a wine:ItalianWine",
        "wine:ChiantiClassico is_a wine:EuropeanWine",
        "wine:ChiantiClassico related wine:hasColor wine:Red",
        "wine:ChiantiClassico related wine:hasRegion wine:Italy",
        "wine:ChiantiClassico is_not_a wine:WhiteWine",
        "wine:Priorat related wine:madeFromGrape wine:Grenache",
        "wine:AhrSpaetburgunder is_a wine:PinotNoirWine",
        "wine:ItalianWine more_specific wine:Wine",
        "wine:hasColor more_specific wine:hasDescriptor",
        "wine:Riesling related wine:madeInto wine:MoselRiesling",
        "wine:Shiraz equivalent wine:Syrah",
        "wine:Red is_a wine:WineColor",
    ],
)
def test_wine_knows(question):
    assert ask(known("wine"), question)


def test_the_ten_wines_of_the_readme_are_five_red_and_five_white():
    text = (Path(wine.HERE) / "README.md").read_text(encoding="utf-8")
    named = text[text.index("Five red") :].split("`")[1::2]
    for names, colour in zip(named, ("Red", "White"), strict=True):
        assert len(names.split()) == 5
        for name in names.split():
            assert ask(known("wine"), f"wine:{name} related wine:hasColor wine:{colour}"), name


# --- Nebraska ---------------------------------------------------------------------------------


def test_there_are_93_counties_in_one_state():
    counties = known("nebraska").extent(Semantic.IS_A, "geo:County")
    assert len(counties) == 93
    assert known("nebraska").extent(Related("geo:isLocatedIn"), "geo:NE") == counties


@pytest.mark.parametrize(
    "question",
    [
        "geo:HallCountyNE related geo:isWestOf geo:HamiltonCountyNE",
        "geo:MerrickCountyNE related geo:isNorthOf geo:HamiltonCountyNE",
        "geo:HamiltonCountyNE related geo:isEastOf geo:HallCountyNE",
        "geo:HamiltonCountyNE related geo:isNorthOf geo:ClayCountyNE",
        "geo:HamiltonCountyNE related geo:isSouthWestOf geo:PolkCountyNE",
        "geo:HamiltonCountyNE related geo:isWestOf geo:YorkCountyNE",
        "geo:YorkCountyNE related geo:isNorthEastOf geo:ClayCountyNE",
        "geo:Hall related geo:isWestOf geo:Hamilton",
        "geo:Hall equivalent geo:HallCountyNE",
        "geo:YorkCountyNE related geo:touchesCornerOf geo:ClayCountyNE",
        "geo:BuffaloCountyNE related geo:isWestOf geo:HallCountyNE",
        'geo:HallCountyNE related geo:fips "31079"',
    ],
)
def test_nebraska_knows(question):
    assert ask(known("nebraska"), question)


@pytest.mark.parametrize(
    "question",
    [
        "geo:BuffaloCountyNE related geo:isWestOf geo:HamiltonCountyNE",
        "geo:HallCountyNE related geo:isNeighbourOf geo:YorkCountyNE",
        "geo:MerrickCountyNE related geo:isWestOf geo:HamiltonCountyNE",
        "geo:HallCountyNE related geo:isWestOf geo:HallCountyNE",
    ],
)
def test_directions_are_not_transitive_and_hold_next_door_only(question):
    assert not ask(known("nebraska"), question)


def test_every_pair_of_neighbours_has_one_direction_and_its_opposite_back():
    ours = known("nebraska")

    def pairs(name):
        thing = ours.thing(f"geo:is{name}Of")
        return set(ours.relations[thing])

    neighbours = set(ours.relations[ours.thing("geo:isNeighbourOf")])
    found = {name: pairs(name) for name in nebraska.DIRECTIONS}
    assert len(neighbours) == 496
    assert sum(map(len, found.values())) == 496
    assert set.union(*found.values()) == neighbours
    for at, name in enumerate(nebraska.DIRECTIONS):
        opposite = found[nebraska.DIRECTIONS[(at + 4) % 8]]
        assert {(b, a) for a, b in found[name]} == opposite


# --- units and events ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("units", "unit:MilePerHour is_a unit:SpeedUnit"),
        ("units", "unit:Kilometre related unit:sameQuantityAs unit:Mile"),
        ("units", 'unit:KilometrePerHour related unit:symbol "km/h"'),
        ("units", "unit:Mile related unit:factor 1609.344"),
        ("units", "unit:Millibar is_a unit:PressureUnit"),
        ("units", "unit:Mile is_not_a unit:SpeedUnit"),
        ("events", "ev:HeavyRain related ev:causes ev:Flood"),
        ("events", "ev:Thunderstorm related ev:leadsTo ev:LateDelivery"),
        ("events", "ev:Flood related ev:isCausedBy ev:Snowmelt"),
        ("events", "ev:Tsunami is_a ev:Hazard"),
        ("events", "ev:FloodKind more_specific ev:NaturalKind"),
    ],
)
def test_units_and_events_know(name, question):
    assert ask(known(name), question)


def test_causes_is_one_step_and_kinds_are_individuals():
    assert not ask(known("events"), "ev:Thunderstorm related ev:causes ev:Flood")
    thing = known("events").thing("ev:Flood")
    assert known("events").is_read_as(thing, INDIVIDUAL)
