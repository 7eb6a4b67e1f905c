"""Writes ``wine.ttl`` from the two tables: ``python -m ontologies.wine.generate``."""

from __future__ import annotations

import csv
from pathlib import Path

HERE = Path(__file__).parent
COLOURS = {"Red": "red", "White": "white", "Rose": "rosé"}
BODIES = {"Light": "light", "Medium": "medium", "Full": "full"}
#: A class of wines for each country, and for Europe above some of them.
PEOPLES = {
    "Europe": "EuropeanWine",
    "Italy": "ItalianWine",
    "France": "FrenchWine",
    "Spain": "SpanishWine",
    "Portugal": "PortugueseWine",
    "Germany": "GermanWine",
    "Austria": "AustrianWine",
    "Hungary": "HungarianWine",
    "UnitedStates": "AmericanWine",
    "Australia": "AustralianWine",
    "NewZealand": "NewZealandWine",
    "Argentina": "ArgentineWine",
    "Chile": "ChileanWine",
    "SouthAfrica": "SouthAfricanWine",
}
#: One grape under two names.
SYNONYMS = {"Garnacha": "Grenache", "Shiraz": "Syrah", "Spaetburgunder": "PinotNoir"}
#: Grapes that a class of wines is named after.
VARIETALS = (
    "CabernetSauvignon",
    "Chardonnay",
    "Merlot",
    "PinotNoir",
    "Riesling",
    "SauvignonBlanc",
)

HEAD = """\
# Written by generate.py from wines.csv and regions.csv: change those.
@prefix wine: <https://kbn.example/ontologies/wine#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .

<https://kbn.example/ontologies/wine> a owl:Ontology ;
    rdfs:label "Wines of the world"@en ;
    rdfs:comment "Colour, body, grape and region of some wines, for examples and tests."@en .

wine:Wine a owl:Class ; rdfs:label "wine"@en .
wine:Grape a owl:Class ; rdfs:label "grape"@en .
wine:Region a owl:Class ; rdfs:label "region"@en .
wine:WineColor a owl:Class ; rdfs:label "colour of wine"@en ;
    owl:oneOf ( wine:Red wine:White wine:Rose ) .
wine:WineBody a owl:Class ; rdfs:label "body of wine"@en ;
    owl:oneOf ( wine:Light wine:Medium wine:Full ) .

wine:hasDescriptor a owl:ObjectProperty ; rdfs:label "has descriptor"@en ; rdfs:domain wine:Wine .
wine:hasColor a owl:ObjectProperty, owl:FunctionalProperty ; rdfs:label "has colour"@en ;
    rdfs:subPropertyOf wine:hasDescriptor ; rdfs:range wine:WineColor .
wine:hasBody a owl:ObjectProperty, owl:FunctionalProperty ; rdfs:label "has body"@en ;
    rdfs:subPropertyOf wine:hasDescriptor ; rdfs:range wine:WineBody .
wine:madeFromGrape a owl:ObjectProperty ; rdfs:label "made from grape"@en ;
    rdfs:domain wine:Wine ; rdfs:range wine:Grape ; owl:inverseOf wine:madeInto .
wine:madeInto a owl:ObjectProperty ; rdfs:label "made into"@en .
wine:locatedIn a owl:ObjectProperty, owl:TransitiveProperty ; rdfs:label "located in"@en ;
    rdfs:domain wine:Region ; rdfs:range wine:Region .
wine:hasRegion a owl:ObjectProperty ; rdfs:label "has region"@en ;
    rdfs:comment "The region, and every one around it."@en ;
    rdfs:domain wine:Wine ; rdfs:range wine:Region ;
    owl:propertyChainAxiom ( wine:hasRegion wine:locatedIn ) .
"""


def rows(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def spaced(name: str) -> str:
    """``PinotNoir`` as ``Pinot Noir``."""
    return "".join(f" {c}" if c.isupper() and at else c for at, c in enumerate(name))


def defined(name: str, label: str, prop: str, value: str, above: str = "wine:Wine") -> str:
    return (
        f'wine:{name} a owl:Class ; rdfs:label "{label}"@en ; rdfs:subClassOf {above} ;\n'
        "    owl:equivalentClass [ a owl:Class ; owl:intersectionOf ( wine:Wine\n"
        f"        [ a owl:Restriction ; owl:onProperty wine:{prop} ;"
        f" owl:hasValue wine:{value} ] ) ] .\n"
    )


def turtle() -> str:
    wines, regions = rows("wines.csv"), rows("regions.csv")
    parts = [HEAD, "# Classes by what a wine has.\n"]
    for colour, word in COLOURS.items():
        parts.append(defined(f"{colour}Wine", f"{word} wine", "hasColor", colour))
    for body, word in BODIES.items():
        parts.append(defined(f"{body}BodiedWine", f"{word}-bodied wine", "hasBody", body))
    countries = {row["region"]: row for row in regions}
    for place, name in PEOPLES.items():
        above = PEOPLES.get(countries[place]["within"], "Wine")
        parts.append(
            defined(name, spaced(name)[:-5] + " wine", "hasRegion", place, f"wine:{above}")
        )
    for grape in VARIETALS:
        parts.append(defined(f"{grape}Wine", f"{spaced(grape)} wine", "madeFromGrape", grape))
    parts.append("wine:RedWine owl:disjointWith wine:WhiteWine, wine:RoseWine .\n")
    parts.append("wine:WhiteWine owl:disjointWith wine:RoseWine .\n")
    parts.append("\n# Colours, bodies, grapes, regions.\n")
    for colour, word in COLOURS.items():
        parts.append(f'wine:{colour} a wine:WineColor ; rdfs:label "{word}"@en .\n')
    for body, word in BODIES.items():
        parts.append(f'wine:{body} a wine:WineBody ; rdfs:label "{word}"@en .\n')
    for grape in sorted({grape for row in wines for grape in row["grapes"].split()}):
        same = f" ; owl:sameAs wine:{SYNONYMS[grape]}" if grape in SYNONYMS else ""
        parts.append(f'wine:{grape} a wine:Grape ; rdfs:label "{spaced(grape)}"{same} .\n')
    for row in regions:
        within = f" ; wine:locatedIn wine:{row['within']}" if row["within"] else ""
        parts.append(
            f'wine:{row["region"]} a wine:Region ; rdfs:label "{row["label"]}"{within} .\n'
        )
    parts.append("\n# Wines.\n")
    for row in wines:
        grapes = ", ".join(f"wine:{grape}" for grape in row["grapes"].split())
        parts.append(
            f'wine:{row["wine"]} a wine:Wine ; rdfs:label "{row["label"]}" ;\n'
            f"    wine:hasColor wine:{row['colour']} ; wine:hasBody wine:{row['body']} ;\n"
            f"    wine:madeFromGrape {grapes} ; wine:hasRegion wine:{row['region']} .\n"
        )
    return "".join(parts)


if __name__ == "__main__":
    (HERE / "wine.ttl").write_text(turtle(), encoding="utf-8")
