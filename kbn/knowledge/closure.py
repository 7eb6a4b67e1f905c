"""Everything that follows, to a fixpoint: the rules that the operators can see.

These are the rules of OWL 2 RL that end in a type, a subsumption, a relation or an
identity; the names in the comments are those of its specification. Reasoners leave
some of them out (each different ones), so they are applied here after any of them:
what an operator answers does not depend on which one ran.

Law: the facts are closed under every rule below. Cost: rounds of one pass over the
facts, as many as the longest way from cause to effect; the orders are closed by
components, not by rounds. Bounded by ``most``: then ``LimitError``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise, product

from kbn.errors import LimitError
from kbn.knowledge import vocabulary as w
from kbn.knowledge.facts import Facts, Table, Triple, transitive
from kbn.knowledge.hierarchy.names import is_vocabulary
from kbn.knowledge.hierarchy.parts import Literal
from kbn.knowledge.lists import read_lists

_ONE = Literal("n", 1)
#: What a reasoner says with other words of the vocabularies, no operator can ask.
_HEARD = (w.TYPE, w.SUBCLASS, w.SUBPROPERTY, w.EQUIVALENT_CLASS, w.EQUIVALENT_PROPERTY, w.SAME)
_MOST_KEYS = 10_000


class Closure:
    """The facts of an ontology and all that follows from them.

    Invariant after ``run``: no rule adds anything; ``up`` and ``property_up`` are the
    two orders closed, each node with itself; all numbers are canonical.
    """

    def __init__(self, stated: Iterable[Triple], *, most: int, max_list: int) -> None:
        self.table: Table = w.new_table()
        self.most = most
        self.facts = Facts(most)
        self.stated: list[tuple[int, int, int]] = []
        number = self.table.number
        for s, p, o in stated:
            self.stated.append((number(s), number(p), number(o)))
        for triple in self.stated:
            self.facts.add(*triple)
        self.lists = read_lists(self.facts, self.table, max_list)
        self.up: dict[int, frozenset[int]] = {}
        self.property_up: dict[int, frozenset[int]] = {}
        self.edges: dict[int, set[int]] = {}
        self.property_edges: dict[int, set[int]] = {}
        #: Why something has a type: the rule, and the property it went by.
        self.type_reasons: dict[tuple[int, int], tuple[str, int]] = {}
        self._grew = False
        self._joined = False

    def run(self) -> None:
        """Apply every rule until none adds anything."""
        while True:
            self._grew = False
            self._order()
            for rule in (
                *(self._same, self._relations, self._traits, self._chains, self._domains),
                *(self._one_of, self._types, self._intersections, self._restrictions),
                *(self._at_most_one, self._functional, self._keys, self._restriction_order),
            ):
                rule()
            if self._joined:
                self._joined = False
                self._renumber()
            elif not self._grew:
                return

    def hear(self, said: Iterable[Triple]) -> int:
        """Take what a reasoner found; how much of it was new. ``run`` again if any was."""
        news = 0
        number, find = self.table.number, self.table.find
        for subject, predicate, obj in said:
            s, p, o = find(number(subject)), find(number(predicate)), find(number(obj))
            if self.table.is_literal(s) or not self._is_news(s, p, o):
                continue
            news += self._add(s, p, o)
        return news

    def _is_news(self, s: int, p: int, o: int) -> bool:
        """Whether an operator could see it, and the orders do not say it already."""
        if p not in _HEARD:
            return not self._is_word(p)
        if s == o or self._is_word(o) or (p != w.TYPE and self._is_word(s)):
            return False
        if p == w.TYPE:
            # To some reasoners everything is a Thing, also what is no individual.
            return not self._is_top(o)
        if p in (w.SUBCLASS, w.EQUIVALENT_CLASS):
            return o not in self.up.get(s, ())
        if p in (w.SUBPROPERTY, w.EQUIVALENT_PROPERTY):
            return o not in self.property_up.get(s, ())
        return True

    def _is_word(self, number: int) -> bool:
        term = self.table.terms[number]
        return isinstance(term, str) and (is_vocabulary(term) or number == w.THING)

    # --- telling -----------------------------------------------------------------------

    def _add(self, s: int, p: int, o: int) -> bool:
        new = self.facts.add(s, p, o)
        self._grew = self._grew or new
        return new

    def _add_type(self, s: int, c: int, rule: str, via: int = -1) -> None:
        if not self.table.is_literal(s) and self._add(s, w.TYPE, c):
            self.type_reasons.setdefault((s, c), (rule, via))

    def _join_all(self, things: Iterable[int]) -> None:
        for a, b in pairwise(things):
            self._joined = self.table.join(a, b) or self._joined

    def _renumber(self) -> None:
        find = self.table.find
        self.facts = self.facts.renumbered(self.table)
        self.lists = {find(head): [find(m) for m in held] for head, held in self.lists.items()}

    def listed(self, p: int) -> list[tuple[int, list[int]]]:
        """Subjects of ``p`` with the members of their list."""
        return [(s, self.lists[o]) for s, o in self.facts.pairs(p) if o in self.lists]

    # --- the two orders -----------------------------------------------------------------

    def _order(self) -> None:
        """scm-sco, scm-eqc, cax-eqc, scm-int, scm-uni, scm-cls; scm-spo, scm-eqp, prp-eqp."""
        facts = self.facts
        edges: dict[int, set[int]] = defaultdict(set)
        for lower, upper in facts.pairs(w.SUBCLASS):
            edges[lower].add(upper)
        for one, other in facts.pairs(w.EQUIVALENT_CLASS):
            edges[one].add(other)
            edges[other].add(one)
        for whole, parts in self.listed(w.INTERSECTION):
            edges[whole].update(parts)
        for which in (w.UNION, w.DISJOINT_UNION):
            for whole, parts in self.listed(which):
                for part in parts:
                    edges[part].add(whole)
        self.edges = {c: set(above) for c, above in edges.items()}
        classes = self.classes()
        impossible = any(w.NOTHING in above for c, above in edges.items() if c != w.NOTHING)
        for c in classes:
            edges[c].add(w.THING)
        if impossible:
            edges[w.NOTHING].update(classes)
        self.up = _reflexive(transitive(dict(edges), self.most, "the order of the classes"))
        edges = defaultdict(set)
        for lower, upper in facts.pairs(w.SUBPROPERTY):
            edges[lower].add(upper)
        for one, other in facts.pairs(w.EQUIVALENT_PROPERTY):
            edges[one].add(other)
            edges[other].add(one)
        self.property_edges = dict(edges)
        closed = transitive(dict(edges), self.most, "the order of the properties")
        self.property_up = _reflexive(closed)

    def classes(self) -> set[int]:
        """Typed so, or in class position; words of the vocabularies left out."""
        return self._positions(
            w.CLASS_TYPES, w.CLASS_SUBJECTS, w.CLASS_OBJECTS, (w.INTERSECTION, w.UNION)
        )

    def properties(self) -> set[int]:
        """Typed so, in property position, or used as a predicate."""
        found = self._positions(
            w.PROPERTY_TYPES, w.PROPERTY_SUBJECTS, w.PROPERTY_OBJECTS, (w.CHAIN, w.KEY)
        )
        used = (p for p in self.facts.properties() if self.facts.of(p))
        return found | {p for p in used if not self._is_word(p)}

    def _positions(
        self,
        types: tuple[int, ...],
        subjects: tuple[int, ...],
        objects: tuple[int, ...],
        lists: tuple[int, ...],
    ) -> set[int]:
        facts = self.facts
        found: set[int] = set()
        for c in types:
            found.update(facts.subjects(w.TYPE, c))
        for p in subjects:
            found.update(facts.of(p))
        for p in objects:
            found.update(facts.turned(p))
        for p in lists:
            for _, members in self.listed(p):
                found.update(members)
        if w.CLASS in types:
            for _, members in self.listed(w.DISJOINT_UNION):
                found.update(members)
        return {n for n in found if not self.table.is_literal(n) and not self._is_word(n)}

    # --- relations ------------------------------------------------------------------------

    def _same(self) -> None:
        """eq-sym, eq-trans, eq-rep: what is the same becomes one."""
        for pair in self.facts.pairs(w.SAME):
            self._join_all(pair)

    def _relations(self) -> None:
        """prp-spo1, prp-eqp, prp-inv."""
        facts = self.facts
        for p in facts.properties():
            above = self.property_up.get(p, frozenset()) - {p}
            if above:
                for s, o in facts.pairs(p):
                    for q in above:
                        self._add(s, q, o)
        for p, q in facts.pairs(w.INVERSE):
            for one, other in ((p, q), (q, p)):
                for s, o in facts.pairs(one):
                    if not self.table.is_literal(o):
                        self._add(o, other, s)

    def _traits(self) -> None:
        """prp-symp, prp-trp."""
        facts = self.facts
        for p in list(facts.subjects(w.TYPE, w.SYMMETRIC)):
            for s, o in facts.pairs(p):
                if not self.table.is_literal(o):
                    self._add(o, p, s)
        for p in list(facts.subjects(w.TYPE, w.TRANSITIVE)):
            edges = {s: tuple(objects) for s, objects in facts.of(p).items()}
            for s, reached in transitive(dict(edges), self.most, "a transitive property").items():
                for o in reached:
                    self._add(s, p, o)

    def _chains(self) -> None:
        """prp-spo2: a chain of properties makes another."""
        for p, links in self.listed(w.CHAIN):
            if not links:
                continue
            ends = {s: set(objects) for s, objects in self.facts.of(links[0]).items()}
            for link in links[1:]:
                step = self.facts.of(link)
                ends = {
                    s: {far for near in reached for far in step.get(near, ())}
                    for s, reached in ends.items()
                }
            for s, reached in ends.items():
                for o in reached:
                    self._add(s, p, o)

    # --- types ------------------------------------------------------------------------------

    def _domains(self) -> None:
        """prp-dom, prp-rng."""
        facts = self.facts
        for p, c in facts.pairs(w.DOMAIN):
            for s in list(facts.of(p)):
                self._add_type(s, c, "the domain of", p)
        for p, c in facts.pairs(w.RANGE):
            for o in list(facts.turned(p)):
                self._add_type(o, c, "the range of", p)

    def _one_of(self) -> None:
        """cls-oo."""
        for c, members in self.listed(w.ONE_OF):
            for member in members:
                self._add_type(member, c, "one of its members")

    def _types(self) -> None:
        """cax-sco, cax-eqc, cls-int2, cls-uni: a type brings all above it."""
        for s, types in list(self.facts.of(w.TYPE).items()):
            missing = {d for c in types for d in self.up.get(c, ())} - types
            for c in missing:
                if c != w.THING:
                    self._add(s, w.TYPE, c)

    def _is_top(self, c: int) -> bool:
        return c == w.THING or c in self.up.get(w.THING, ())

    def _intersections(self) -> None:
        """cls-int1: what is in every part is in the whole."""
        for whole, parts in self.listed(w.INTERSECTION):
            needed = [part for part in parts if not self._is_top(part)]
            if needed:
                held = [self.facts.subjects(w.TYPE, part) for part in needed]
                for s in set.intersection(*map(set, held)):
                    self._add_type(s, whole, *self._defining(s, needed))

    def _defining(self, s: int, parts: Iterable[int]) -> tuple[str, int]:
        """The part of a definition that says most: one that went by a property."""
        for part in parts:
            rule, via = self.type_reasons.get((s, part), ("", -1))
            if via >= 0:
                return rule, via
        return "in every part of its definition", -1

    def _restrictions(self) -> None:
        """cls-svf, cls-avf, cls-hv."""
        facts = self.facts
        for x, p in facts.pairs(w.ON_PROPERTY):
            for y in list(facts.objects(x, w.SOME)):
                if self._is_top(y):
                    owners = set(facts.of(p))
                else:
                    fillers = facts.subjects(w.TYPE, y)
                    owners = {u for v in fillers for u in facts.subjects(p, v)}
                for u in owners:
                    self._add_type(u, x, "by its", p)
            for y in list(facts.objects(x, w.ALL)):
                members = facts.subjects(w.TYPE, x)
                for v in {v for u in members for v in facts.objects(u, p)}:
                    self._add_type(v, y, "as every value of", p)
            for y in list(facts.objects(x, w.VALUE)):
                for u in list(facts.subjects(w.TYPE, x)):
                    self._add(u, p, y)
                for u in list(facts.subjects(p, y)):
                    self._add_type(u, x, "by its", p)

    def _restriction_order(self) -> None:
        """scm-hv, scm-svf, scm-avf: restrictions that say more are below those that say less."""
        facts = self.facts
        for kind in (w.VALUE, w.SOME, w.ALL):
            held = [
                (x, p, y) for x, p in facts.pairs(w.ON_PROPERTY) for y in facts.objects(x, kind)
            ]
            by_property, by_filler = defaultdict(list), defaultdict(list)
            for x, p, y in held:
                by_property[p].append((x, y))
                by_filler[y].append((x, p))
            for x, p, y in held:
                if kind != w.VALUE:
                    above = self.up.get(y, frozenset([y]))
                    for other, filler in by_property[p]:
                        if other != x and (filler in above or self._is_top(filler)):
                            self._below(x, other)
                for other, q in by_filler[y]:
                    if other != x and q in self.property_up.get(p, frozenset([p])):
                        self._below(*((other, x) if kind == w.ALL else (x, other)))

    def _below(self, lower: int, upper: int) -> None:
        if upper not in self.up.get(lower, ()):
            self._add(lower, w.SUBCLASS, upper)

    # --- identity -----------------------------------------------------------------------------

    def _at_most_one(self) -> None:
        """cls-maxc2, cls-maxqc3, cls-maxqc4."""
        facts, one = self.facts, self.table.number(_ONE)
        for x, p in facts.pairs(w.ON_PROPERTY):
            plain = facts.has(x, w.MAX, one)
            kinds = facts.objects(x, w.ON_CLASS) if facts.has(x, w.MAX_QUALIFIED, one) else set()
            if not plain and not kinds:
                continue
            for u in list(facts.subjects(w.TYPE, x)):
                values = facts.objects(u, p)
                if plain or any(self._is_top(c) for c in kinds):
                    self._join_all(values)
                for c in kinds:
                    self._join_all([v for v in values if facts.has(v, w.TYPE, c)])

    def _functional(self) -> None:
        """prp-fp, prp-ifp."""
        facts = self.facts
        for p in list(facts.subjects(w.TYPE, w.FUNCTIONAL)):
            for values in facts.of(p).values():
                self._join_all(values)
        for p in list(facts.subjects(w.TYPE, w.INVERSE_FUNCTIONAL)):
            for owners in facts.turned(p).values():
                self._join_all(owners)

    def _keys(self) -> None:
        """prp-key: things of a class that agree in every part of its key are the same."""
        facts = self.facts
        for c, parts in self.listed(w.KEY):
            if not parts:
                continue
            first: dict[tuple[int, ...], int] = {}
            for s in list(facts.subjects(w.TYPE, c)):
                values = [facts.objects(s, p) for p in parts]
                for at, key in enumerate(product(*values)):
                    if at >= _MOST_KEYS:
                        raise LimitError(
                            f"a thing has more than {_MOST_KEYS:,} values of one key",
                            limit="max_closure",
                            allowed=_MOST_KEYS,
                        )
                    self._join_all((first.setdefault(key, s), s))


def _reflexive(reached: dict[int, frozenset[int]]) -> dict[int, frozenset[int]]:
    return {node: above | {node} for node, above in reached.items()}
