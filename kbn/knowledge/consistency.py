"""Contradictions, found in the closure and told with the triples that make them.

An inconsistent ontology still loads: the operators look things up and never conclude
everything from a contradiction. Cost: one pass over the disjoint pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice

from kbn.knowledge import vocabulary as w
from kbn.knowledge.closure import Closure
from kbn.knowledge.hierarchy.names import Prefixes
from kbn.knowledge.hierarchy.parts import Literal

#: So many are told; a broken file can have millions.
TOLD = 20
_ZERO = Literal("n", 0)


def contradictions(closed: Closure, prefixes: Prefixes) -> list[str]:
    """Sentences, each naming its triples; at most ``TOLD``."""
    found = list(islice(dict.fromkeys(_Check(closed, prefixes).all()), TOLD + 1))
    if len(found) > TOLD:
        found[TOLD:] = ["inconsistent: there are more such contradictions"]
    return found


class _Check:
    def __init__(self, closed: Closure, prefixes: Prefixes) -> None:
        self._closed = closed
        self._facts = closed.facts
        self._prefixes = prefixes

    def all(self) -> Iterator[str]:
        yield from self._classes()
        yield from self._nothing()
        yield from self._different()
        yield from self._properties()
        yield from self._none_allowed()

    def _say(self, *triples: tuple[int, int | str, int]) -> str:
        told = " and ".join(
            f"{self._name(s)} {p if isinstance(p, str) else self._name(p)} {self._name(o)}"
            for s, p, o in triples
        )
        return f"inconsistent: {told}"

    def _name(self, number: int) -> str:
        term = self._closed.table.terms[number]
        if isinstance(term, Literal):
            return repr(term.value)
        return "an unnamed class" if term.startswith("_:") else self._prefixes.shorten(term)

    def _classes(self) -> Iterator[str]:
        """cax-dw, cax-adc, cls-com, and the parts of a disjoint union."""
        facts = self._facts
        pairs = [(a, b, "owl:disjointWith") for a, b in facts.pairs(w.DISJOINT)]
        pairs += [(a, b, "owl:complementOf") for a, b in facts.pairs(w.COMPLEMENT)]
        groups = [
            members
            for each, members in self._closed.listed(w.MEMBERS)
            if facts.has(each, w.TYPE, w.ALL_DISJOINT)
        ]
        groups += [members for _, members in self._closed.listed(w.DISJOINT_UNION)]
        for members in groups:
            pairs += [(a, b, "owl:disjointWith") for a, b in combinations(members, 2)]
        for a, b, by in pairs:
            for s in sorted(facts.subjects(w.TYPE, a) & facts.subjects(w.TYPE, b)):
                yield self._say((s, "rdf:type", a), (s, "rdf:type", b), (a, by, b))

    def _nothing(self) -> Iterator[str]:
        for s in sorted(self._facts.subjects(w.TYPE, w.NOTHING)):
            yield self._say((s, "rdf:type", w.NOTHING))

    def _different(self) -> Iterator[str]:
        """eq-diff: after joining, two that are one have one number."""
        find = self._closed.table.find
        pairs = [(s, o) for s, p, o in self._closed.stated if p == w.DIFFERENT]
        for which in (w.MEMBERS, w.DISTINCT_MEMBERS):
            for each, members in self._closed.listed(which):
                if self._facts.has(each, w.TYPE, w.ALL_DIFFERENT):
                    twice = {m for m in members if members.count(m) > 1} if members else set()
                    pairs += [(m, m) for m in sorted(twice)]
        for s, o in pairs:
            if find(s) == find(o):
                yield self._say((s, "owl:differentFrom", o), (s, "owl:sameAs", o))

    def _properties(self) -> Iterator[str]:
        """prp-pdw, prp-irp, prp-asyp."""
        facts = self._facts
        for p, q in facts.pairs(w.PROPERTY_DISJOINT):
            for s, o in facts.pairs(p):
                if facts.has(s, q, o):
                    yield self._say((s, p, o), (s, q, o), (p, "owl:propertyDisjointWith", q))
        for p in sorted(facts.subjects(w.TYPE, w.IRREFLEXIVE)):
            for s, o in facts.pairs(p):
                if s == o:
                    yield self._say((s, p, s), (p, "rdf:type", w.IRREFLEXIVE))
        for p in sorted(facts.subjects(w.TYPE, w.ASYMMETRIC)):
            for s, o in facts.pairs(p):
                if s <= o and facts.has(o, p, s):
                    yield self._say((s, p, o), (o, p, s), (p, "rdf:type", w.ASYMMETRIC))

    def _none_allowed(self) -> Iterator[str]:
        """cls-maxc1."""
        facts, zero = self._facts, self._closed.table.number(_ZERO)
        for x, p in facts.pairs(w.ON_PROPERTY):
            if facts.has(x, w.MAX, zero):
                for s in sorted(facts.subjects(w.TYPE, x)):
                    for o in sorted(facts.objects(s, p))[:1]:
                        yield self._say((s, p, o), (x, "owl:maxCardinality", zero))
