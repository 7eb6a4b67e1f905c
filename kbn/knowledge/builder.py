"""From the closure to the hierarchy: who is known, numbered in the order of names.

Law: the same closure gives the same hierarchy, whatever reasoner ran and in
whatever order the triples came. Unnamed nodes and the vocabularies' own words took
part in the reasoning and are left behind here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kbn.knowledge import vocabulary as w
from kbn.knowledge.closure import Closure
from kbn.knowledge.hierarchy import Hierarchy
from kbn.knowledge.hierarchy.names import Prefixes, is_vocabulary
from kbn.knowledge.hierarchy.pairs import Pairs
from kbn.knowledge.hierarchy.parts import (
    CLASS,
    INDIVIDUAL,
    PROPERTY,
    Edge,
    Literal,
    Reasons,
)


def build(closed: Closure, prefixes: Prefixes, labels: Mapping[str, str]) -> Hierarchy:
    """The hierarchy of a closure that has run."""
    return _Builder(closed).build(prefixes, labels)


class _Builder:
    """``thing[n]`` is the number in the hierarchy of what n was in the closure."""

    def __init__(self, closed: Closure) -> None:
        self.closed = closed
        self.table = closed.table
        self.facts = closed.facts
        groups: dict[int, list[str]] = defaultdict(list)
        mentioned = {number for triple in closed.stated for number in triple} | {w.THING}
        for number in mentioned:
            term = self.table.terms[number]
            if isinstance(term, str) and self.table.is_named(number):
                groups[self.table.find(number)].append(term)
        ordered = sorted(groups.items(), key=lambda item: min(item[1]))
        self.thing = {canon: at for at, (canon, _) in enumerate(ordered)}
        self.names = sorted((iri, self.thing[canon]) for canon, held in ordered for iri in held)
        self.classes = closed.classes() | {w.THING}
        self.properties = closed.properties()
        self.individuals = self._individuals()

    def build(self, prefixes: Prefixes, labels: Mapping[str, str]) -> Hierarchy:
        relations, literals = self._relations()
        return Hierarchy(
            iris=[iri for iri, _ in self.names],
            thing_of=[thing for _, thing in self.names],
            kinds=self._kinds(),
            class_up=self._order(self.classes, self.closed.up),
            property_up=self._order(self.properties, self.closed.property_up),
            types=self._types(),
            relations={p: Pairs(pairs) for p, pairs in relations.items()},
            literals=list(literals),
            prefixes=prefixes,
            reasons=self._reasons(literals, labels),
        )

    def _word(self, number: int) -> bool:
        term = self.table.terms[number]
        return isinstance(term, str) and is_vocabulary(term)

    def _individuals(self) -> set[int]:
        """A type of its own, owl:NamedIndividual or owl:Thing stated, or part of a relation."""
        found: set[int] = set()
        for s, types in self.facts.of(w.TYPE).items():
            if any(not self._word(c) or c == w.NAMED_INDIVIDUAL for c in types):
                found.add(s)
        for p in self.facts.properties():
            if not self._word(p):
                found.update(self.facts.of(p))
                found.update(o for o in self.facts.turned(p) if not self.table.is_literal(o))
        return found

    def _kinds(self) -> bytes:
        kinds = bytearray(len(self.thing))
        for members, flag in (
            (self.classes, CLASS),
            (self.properties, PROPERTY),
            (self.individuals, INDIVIDUAL),
        ):
            for number in members:
                if number in self.thing:
                    kinds[self.thing[number]] |= flag
        return bytes(kinds)

    def _order(self, members: set[int], up: Mapping[int, frozenset[int]]) -> Pairs:
        thing = self.thing
        return Pairs(
            (thing[lower], thing[upper])
            for lower in members
            if lower in thing
            for upper in up.get(lower, frozenset()) | {lower}
            if upper in thing
        )

    def _types(self) -> Pairs:
        thing, top = self.thing, self.closed.up.get(w.THING, frozenset()) | {w.THING}
        return Pairs(
            (thing[s], thing[c])
            for s in self.individuals
            if s in thing
            for c in self.facts.objects(s, w.TYPE) | top
            if c in thing
        )

    def _relations(self) -> tuple[dict[int, list[tuple[int, int]]], dict[Literal, int]]:
        found: dict[int, list[tuple[int, int]]] = {}
        values = {
            term
            for p in self.facts.properties()
            if p in self.thing
            for o in self.facts.turned(p)
            if isinstance(term := self.table.terms[o], Literal)
        }
        ordered = sorted(values, key=lambda held: (held.sort, str(held.value)))
        literals = {held: len(self.thing) + at for at, held in enumerate(ordered)}
        for p in self.facts.properties():
            if p in self.thing:
                pairs = [
                    (self.thing[s], target)
                    for s, o in self.facts.pairs(p)
                    if s in self.thing and (target := self._target(o, literals)) is not None
                ]
                if pairs:
                    found[self.thing[p]] = pairs
        return found, literals

    def _target(self, o: int, literals: Mapping[Literal, int]) -> int | None:
        term = self.table.terms[o]
        return literals.get(term) if isinstance(term, Literal) else self.thing.get(o)

    # --- for explanations -----------------------------------------------------------------

    def _reasons(self, literals: Mapping[Literal, int], labels: Mapping[str, str]) -> Reasons:
        find, thing = self.table.find, self.thing
        stated = [(find(s), find(p), find(o)) for s, p, o in self.closed.stated]
        relations = frozenset(
            (thing[p], thing[s], target)
            for s, p, o in stated
            if p in thing and s in thing and (target := self._target(o, literals)) is not None
        )
        types = [(s, c, "", -1) for s, p, c in stated if p == w.TYPE]
        types += [
            (find(s), find(c), rule, thing.get(find(via), -1) if via >= 0 else -1)
            for (s, c), (rule, via) in self.closed.type_reasons.items()
        ]
        traits: dict[int, tuple[str, ...]] = {}
        for word, trait in ((w.SYMMETRIC, "symmetric"), (w.TRANSITIVE, "transitive")):
            for p in self.facts.subjects(w.TYPE, word):
                if p in thing:
                    traits[thing[p]] = (*traits.get(thing[p], ()), trait)
        return Reasons(
            classes=self._steps(self.closed.edges),
            properties=self._steps(self.closed.property_edges),
            types=tuple(
                dict.fromkeys(
                    Edge(thing[s], thing[d], rule, via)
                    for s, c, rule, via in types
                    if s in thing
                    for d in self._next_named(c, self.closed.edges)
                )
            ),
            relations=relations,
            inverses=tuple(
                (thing[p], thing[q])
                for p, q in self.facts.pairs(w.INVERSE)
                if p in thing and q in thing
            ),
            traits=traits,
            labels={held: labels[iri] for iri, held in reversed(self.names) if iri in labels},
        )

    def _steps(self, edges: Mapping[int, set[int]]) -> tuple[Edge, ...]:
        """Stated steps between named things; those over unnamed classes are one step."""
        return tuple(
            Edge(self.thing[lower], self.thing[upper], "")
            for lower, ahead in edges.items()
            if lower in self.thing
            for upper in sorted({n for a in ahead for n in self._next_named(a, edges)} - {lower})
        )

    def _next_named(self, start: int, edges: Mapping[int, Iterable[int]]) -> set[int]:
        found: set[int] = set()
        seen, waiting = {start}, [start]
        while waiting:
            node = waiting.pop()
            if node in self.thing:
                if node != w.THING or start == w.THING:
                    found.add(node)
                continue
            for after in edges.get(node, ()):
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return found
