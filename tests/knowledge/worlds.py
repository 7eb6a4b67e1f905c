"""Random ontologies, small and tangled, straight from triples."""

from __future__ import annotations

import random

from kbn.knowledge.builder import build
from kbn.knowledge.closure import Closure
from kbn.knowledge.facts import Triple
from kbn.knowledge.hierarchy import Hierarchy
from kbn.knowledge.hierarchy.names import OWL, RDF, RDFS, STANDARD, Prefixes
from kbn.knowledge.hierarchy.parts import Literal
from kbn.model.operators import Related, Semantic

X = "http://x/"
PREFIXES = Prefixes({**STANDARD, "x": X, "y": X})
TYPE, SUB, SUBP = RDF + "type", RDFS + "subClassOf", RDFS + "subPropertyOf"
TRAITS = ("SymmetricProperty", "TransitiveProperty", "FunctionalProperty")
LITERALS = (Literal("n", 1), Literal("n", 2.5), Literal("b", True), Literal("s", "text"))
#: Values and operands that are no terms, beside the terms of a world.
STRANGERS = ("x:unknown", "http://y/z", "text", 1, 2.5, 1.0, True, None, "", "owl:Thing")
OPERATORS = (
    *Semantic,
    *(Related(f"x:p{n}") for n in range(4)),
    *(Related("rdf:type"), Related("x:unknown"), Related("rdfs:subClassOf")),
)


def random_triples(draw: random.Random, size: int = 8) -> list[Triple]:
    """Classes c0…, individuals i0…, properties p0…, with every kind of axiom now and then."""

    def some(letter: str, most: int = size) -> str:
        return f"{X}{letter}{draw.randrange(most)}"

    triples: list[Triple] = []
    for _ in range(draw.randrange(2 * size)):
        triples.append((some("c"), SUB, some("c")))
    for _ in range(draw.randrange(size)):
        triples.append((some("i"), TYPE, some("c")))
    for _ in range(draw.randrange(size)):
        triples.append((some("i"), some("p", 4), some("i")))
    for _ in range(draw.randrange(3)):
        triples.append((some("i"), some("p", 4), draw.choice(LITERALS)))
    rare: list[Triple] = [
        (some("c"), OWL + "equivalentClass", some("c")),
        (some("p", 4), OWL + "equivalentProperty", some("p", 4)),
        (some("p", 4), SUBP, some("p", 4)),
        (some("p", 4), OWL + "inverseOf", some("p", 4)),
        (some("p", 4), TYPE, OWL + draw.choice(TRAITS)),
        (some("i"), OWL + "sameAs", some("i")),
        (some("c"), OWL + "sameAs", some("c")),
        (some("p", 4), RDFS + "domain", some("c")),
        (some("p", 4), RDFS + "range", some("c")),
        # Punning: a class that is an individual, a property that is a class.
        (some("c"), TYPE, some("c")),
        (some("p", 4), SUB, some("c")),
        (some("c"), SUBP, some("p", 4)),
        (some("c"), some("p", 4), some("i")),
    ]
    triples += [axiom for axiom in rare if draw.random() < 0.25]
    return triples or [(some("c"), SUB, some("c"))]


def random_hierarchy(draw: random.Random, size: int = 8) -> Hierarchy:
    closed = Closure(random_triples(draw, size), most=100_000, max_list=100)
    closed.run()
    return build(closed, PREFIXES, {})


def class_tree(classes: int, individuals: int, seed: int = 1) -> Hierarchy:
    """A tree of ``classes``, each below an earlier one, with individuals at random places."""
    draw = random.Random(seed)
    triples: list[Triple] = [
        (f"{X}c{n}", SUB, f"{X}c{draw.randrange(n)}") for n in range(1, classes)
    ]
    triples += [(f"{X}i{n}", TYPE, f"{X}c{draw.randrange(classes)}") for n in range(individuals)]
    closed = Closure(triples, most=5_000_000, max_list=100)
    closed.run()
    return build(closed, PREFIXES, {})


def terms(known: Hierarchy) -> list[str]:
    """Every term in one of its spellings, some twice."""
    return [PREFIXES.shorten(iri) for iri in known.iris] + list(known.iris[:3])
