"""The small things a hierarchy is made of: readings, literals, reasons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from kbn.knowledge.hierarchy.names import OWL, RDF, RDFS
from kbn.model.operators import Related, Semantic

SemanticOp: TypeAlias = Semantic | Related

#: How a thing may be read; flags, for one thing may be several (punning).
CLASS, PROPERTY, INDIVIDUAL = 1, 2, 4

#: These, as the property of ``related``, are operators under another name.
AS_OPERATOR: dict[str, Semantic] = {
    RDF + "type": Semantic.IS_A,
    RDFS + "subClassOf": Semantic.MORE_SPECIFIC,
    OWL + "sameAs": Semantic.EQUIVALENT,
}


class Literal(NamedTuple):
    """A literal's value: ``n`` a number, ``b`` a bool, ``s`` text, ``t`` anything else.

    Numbers are equal by value, and so are their hashes; text has lost its language.
    """

    sort: str
    value: str | int | float | bool


class Edge(NamedTuple):
    """One step of an explanation: ``lower`` is below ``upper`` because of ``rule``.

    ``via`` is the property that the rule went by, or -1.
    """

    lower: int
    upper: int
    rule: str
    via: int = -1


class Reasons(NamedTuple):
    """What explanations are made of; never asked by an operator.

    ``relations`` are the stated ones (property, subject, object); ``inverses`` are
    pairs of properties; ``traits`` says which properties are symmetric or transitive.
    """

    classes: tuple[Edge, ...] = ()
    properties: tuple[Edge, ...] = ()
    types: tuple[Edge, ...] = ()
    relations: frozenset[tuple[int, int, int]] = frozenset()
    inverses: tuple[tuple[int, int], ...] = ()
    traits: Mapping[int, tuple[str, ...]] = MappingProxyType({})
    labels: Mapping[int, str] = MappingProxyType({})


def write_reasons(reasons: Reasons) -> bytes:
    """JSON, with everything in an order of its own, so that equal reasons are equal bytes."""
    return json.dumps(
        {
            "classes": sorted(reasons.classes),
            "properties": sorted(reasons.properties),
            "types": sorted(reasons.types),
            "relations": sorted(reasons.relations),
            "inverses": sorted(reasons.inverses),
            "traits": sorted(reasons.traits.items()),
            "labels": sorted(reasons.labels.items()),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()


def read_reasons(data: bytes) -> Reasons:
    """What ``write_reasons`` wrote; nothing is no reason."""
    if not data:
        return Reasons()
    held = json.loads(data)
    return Reasons(
        tuple(Edge(*edge) for edge in held["classes"]),
        tuple(Edge(*edge) for edge in held["properties"]),
        tuple(Edge(*edge) for edge in held["types"]),
        frozenset((p, s, o) for p, s, o in held["relations"]),
        tuple((p, q) for p, q in held["inverses"]),
        {prop: tuple(traits) for prop, traits in held["traits"]},
        dict(held["labels"]),
    )
