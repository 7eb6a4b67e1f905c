"""Ontologies from a few words of Turtle, and questions in the language itself."""

from __future__ import annotations

from kbn.knowledge.assembly import Assembled, assemble
from kbn.knowledge.hierarchy import Hierarchy
from kbn.knowledge.request import Request, Source
from kbn.language import parse_subscription
from kbn.matching.naive import value_holds
from kbn.model.operators import Related, Semantic

HEAD = """\
@prefix : <http://x/> . @prefix x: <http://x/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""


def source(turtle: str, name: str = "test.ttl") -> Source:
    return Source(name, (HEAD + turtle).encode(), "turtle")


def assembled(turtle: str, reasoner: str = "none", **options: object) -> Assembled:
    request = Request((source(turtle),), **options)  # type: ignore[arg-type]
    return assemble(request, reasoner=reasoner)


def hierarchy(turtle: str, reasoner: str = "none", **options: object) -> Hierarchy:
    return assembled(turtle, reasoner, **options).hierarchy


def ask(known: Hierarchy, question: str) -> bool:
    """``x:i is_a x:C``; the left side is a value, the rest a constraint."""
    value, _, rest = question.partition(" ")
    op, _, operand = rest.rpartition(" ")
    if not (operand[0] in '"-0123456789' or operand in ("true", "false", "null")):
        operand = f'"{operand}"'
    (constraint,) = next(iter(parse_subscription(f"v {op} {operand}")))
    assert isinstance(constraint.op, Semantic | Related)
    left = int(value) if value.isdigit() else value
    return value_holds(constraint.op, left, constraint.value, known)
