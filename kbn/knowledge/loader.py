"""Files to triples, with rdflib: the prefixes they declare, the imports they ask for.

``owl:imports`` is answered by the files loaded and by a local catalogue; what neither
has is left out with a warning. rdflib binds no prefixes of its own here: a term is
known by what the files say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from math import isnan
from pathlib import Path
from typing import TypeAlias

import rdflib
from rdflib.namespace import NamespaceManager
from rdflib.plugins.parsers.jsonld import to_rdf

from kbn.errors import KbnError, LimitError, OntologyError
from kbn.knowledge.facts import Term, Triple
from kbn.knowledge.hierarchy.names import OWL, RDF, RDFS, SKOS, XSD
from kbn.knowledge.hierarchy.parts import Literal
from kbn.knowledge.request import Limits, Request, Source
from kbn.knowledge.screening import screen

Node: TypeAlias = rdflib.term.Node
RdfTriple: TypeAlias = tuple[Node, Node, Node]

_IMPORTS = rdflib.URIRef(OWL + "imports")
_TYPE = rdflib.URIRef(RDF + "type")
_ONTOLOGY = rdflib.URIRef(OWL + "Ontology")
_LABEL = rdflib.URIRef(RDFS + "label")
_NUMBERS = {
    XSD + name
    for name in (
        *("integer", "long", "int", "short", "byte", "decimal", "double", "float"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
}
#: SKOS read as an order and an equivalence of classes: predicate, ours, turned round.
_AS_CLASSES = {
    SKOS + "broader": (RDFS + "subClassOf", False),
    SKOS + "broaderTransitive": (RDFS + "subClassOf", False),
    SKOS + "narrower": (RDFS + "subClassOf", True),
    SKOS + "narrowerTransitive": (RDFS + "subClassOf", True),
    SKOS + "exactMatch": (OWL + "equivalentClass", False),
}


@dataclass
class Loaded:
    """All triples of all files, and what else the files said."""

    triples: list[RdfTriple] = field(default_factory=list)
    declared: list[tuple[str, str, str]] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class _Listening(NamespaceManager):
    """Hears every prefix a parser binds, also those rdflib would rename."""

    def __init__(self, graph: rdflib.Graph) -> None:
        super().__init__(graph, bind_namespaces="none")
        self.heard: list[tuple[str, str]] = []

    def bind(
        self,
        prefix: str | None,
        namespace: object,
        override: bool = True,
        replace: bool = False,
    ) -> None:
        self.heard.append((prefix or "", str(namespace)))
        super().bind(prefix, namespace, override=override, replace=replace)


class _Bounded(rdflib.Graph):
    """A graph that stops its parser when there is too much.

    It counts for itself: the store would count all its triples every time.
    """

    most = 0
    added = 0

    def add(self, triple: tuple[Node, Node, Node]) -> _Bounded:
        super().add(triple)
        self.added += 1
        if self.added > self.most:
            raise LimitError(
                f"more than {self.most:,} triples", limit="max_triples", allowed=self.most
            )
        return self


def load(request: Request) -> Loaded:
    """Raises ``OntologyError``, ``LimitError`` or ``UnsupportedError``, naming the file."""
    loaded = Loaded()
    catalogue = {iri: Path(path) for iri, path in request.catalogue}
    waiting = list(request.sources)
    present: set[str] = set()
    wanted: dict[str, str] = {}
    while waiting:
        source = waiting.pop(0)
        graph, heard = _parse(source, request.limits.max_triples)
        loaded.declared.extend((source.name, prefix, space) for prefix, space in heard)
        loaded.triples.extend(graph)
        if source.skos:
            loaded.triples.extend(_skos(graph))
        if len(loaded.triples) > request.limits.max_triples:
            most = request.limits.max_triples
            raise LimitError(
                f"{source.name}: more than {most:,} triples", limit="max_triples", allowed=most
            )
        present.update(str(s) for s in graph.subjects(_TYPE, _ONTOLOGY))
        for imported in graph.objects(None, _IMPORTS):
            iri = str(imported)
            if iri not in wanted and iri in catalogue:
                waiting.append(_imported(source.name, iri, catalogue[iri], request.limits))
                present.add(iri)
            wanted.setdefault(iri, source.name)
        _take_labels(graph, loaded.labels)
    for iri, name in wanted.items():
        if iri not in present and iri.rstrip("#/") not in {p.rstrip("#/") for p in present}:
            loaded.warnings.append(
                f"{name} imports <{iri}>, which is not in the catalogue: left out, nothing is"
                " fetched"
            )
    return loaded


def _parse(source: Source, most: int) -> tuple[rdflib.Graph, list[tuple[str, str]]]:
    graph = _Bounded("SimpleMemory", bind_namespaces="none")
    graph.most = most
    listening = _Listening(graph)
    graph.namespace_manager = listening
    try:
        screen(source.data, source.format)
        base = f"file:///{source.name}"
        if source.format == "json-ld":
            # rdflib's own parser would go round by a graph that hears no prefixes.
            to_rdf(json.loads(source.data), graph, base)
        else:
            graph.parse(data=source.data, format=source.format, publicID=base)
    except LimitError as error:
        raise LimitError(
            f"{source.name}: {error}", limit=error.limit, allowed=error.allowed
        ) from None
    except KbnError as error:
        raise type(error)(f"{source.name}: {error}") from None
    except RecursionError:
        raise LimitError(
            f"{source.name}: nested too deeply", limit="max_nesting", allowed=1000
        ) from None
    except MemoryError:
        raise
    except Exception as error:
        # Each of rdflib's parsers raises what it likes; the first line says where.
        said = str(error).strip() or type(error).__name__
        first = " ".join(said.split())[:300]
        raise OntologyError(f"no {source.format}: {first}", source=source.name) from None
    for triple in graph:
        for node in triple:
            if isinstance(node, rdflib.URIRef) and any(c <= " " for c in node):
                raise OntologyError(
                    f"the IRI <{str(node)[:80]!r}> has blanks in it", source=source.name
                )
    return graph, listening.heard


def _imported(name: str, iri: str, path: Path, limits: Limits) -> Source:
    try:
        return Source.read(path, limits=limits)
    except OntologyError as error:
        raise OntologyError(f"imports <{iri}>, but {error}", source=name) from None


def _take_labels(graph: rdflib.Graph, labels: dict[str, str]) -> None:
    """One label each: without a language, else English, else whichever comes first."""

    def rank(label: rdflib.Literal) -> tuple[int, str, str]:
        order = {None: 0, "en": 1}.get(label.language, 2)
        return order, label.language or "", str(label)

    found: dict[str, rdflib.Literal] = {}
    for subject, label in graph.subject_objects(_LABEL):
        if isinstance(subject, rdflib.URIRef) and isinstance(label, rdflib.Literal):
            held = found.get(str(subject))
            if held is None or rank(label) < rank(held):
                found[str(subject)] = label
    for iri, chosen in found.items():
        labels.setdefault(iri, str(chosen))


def _skos(triples: Iterable[RdfTriple]) -> Iterator[RdfTriple]:
    for s, p, o in triples:
        ours = _AS_CLASSES.get(str(p))
        if ours is not None:
            predicate, turned = ours
            yield (o, rdflib.URIRef(predicate), s) if turned else (s, rdflib.URIRef(predicate), o)


def neutral(triple: RdfTriple) -> Triple:
    """A triple without rdflib."""
    s, p, o = triple
    return _term(s), _term(p), _term(o)


def _term(node: Node) -> Term:
    if isinstance(node, rdflib.URIRef):
        return str(node)
    if isinstance(node, rdflib.Literal):
        return literal(str(node), str(node.datatype) if node.datatype else None)
    return f"_:{node}"


def literal(text: str, datatype: str | None) -> Literal:
    """The value: numbers as numbers, plain and tagged text as text, the rest as written."""
    if datatype is None or datatype in (XSD + "string", RDF + "langString"):
        return Literal("s", text)
    if datatype == XSD + "boolean" and text.strip() in ("true", "false", "1", "0"):
        return Literal("b", text.strip() in ("true", "1"))
    if datatype in _NUMBERS:
        try:
            number: int | float = int(text)
        except ValueError:
            try:
                # A decimal is compared as the double that a subscriber would write.
                number = float(Decimal(text.strip().replace("INF", "Infinity")))
            except InvalidOperation:
                return Literal("t", f"{text}^^{datatype}")
            if isnan(number):
                return Literal("t", f"{text}^^{datatype}")
            number = int(number) if number.is_integer() else number
        return Literal("n", number)
    return Literal("t", f"{text}^^{datatype}")
