"""Triples of small integers, and the table that numbers their terms.

A term is an IRI (text), a blank node (text that starts with ``_:``) or a literal's
value. Terms that are the same are joined; triples then speak of one of them.
Cost: a triple is two set entries, for it is looked up from both ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from kbn.errors import LimitError
from kbn.knowledge.hierarchy.names import is_vocabulary
from kbn.knowledge.hierarchy.parts import Literal

Term: TypeAlias = str | Literal
Triple: TypeAlias = tuple[Term, Term, Term]


class Table:
    """Numbers terms, and remembers which were joined.

    Invariant: ``find`` of a joined term is the first of them that was numbered; terms
    of the vocabularies are numbered first, so that they stay themselves.
    """

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self._numbers: dict[Term, int] = {}
        self._parent: list[int] = []

    def number(self, term: Term) -> int:
        """The number of a term, a new one if it is new."""
        found = self._numbers.get(term)
        if found is None:
            found = self._numbers[term] = len(self.terms)
            self.terms.append(term)
            self._parent.append(found)
        return found

    def is_literal(self, number: int) -> bool:
        return isinstance(self.terms[number], Literal)

    def is_named(self, number: int) -> bool:
        """An IRI that can be asked about."""
        term = self.terms[number]
        return isinstance(term, str) and not term.startswith("_:") and not is_vocabulary(term)

    def find(self, number: int) -> int:
        parent = self._parent
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    def join(self, a: int, b: int) -> bool:
        """Make two terms one; whether they were two. Literals are never joined."""
        a, b = self.find(a), self.find(b)
        if a == b or self.is_literal(a) or self.is_literal(b):
            return False
        self._parent[max(a, b)] = min(a, b)
        return True


class Facts:
    """A set of triples. Raises ``LimitError`` when it grows beyond ``most``."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0
        self._forth: dict[int, dict[int, set[int]]] = {}
        self._back: dict[int, dict[int, set[int]]] = {}

    def add(self, s: int, p: int, o: int) -> bool:
        """Whether it is new."""
        forth = self._forth.get(p)
        if forth is None:
            forth = self._forth[p] = defaultdict(set)
            self._back[p] = defaultdict(set)
        objects = forth[s]
        if o in objects:
            return False
        objects.add(o)
        self._back[p][o].add(s)
        self.count += 1
        if self.count > self.most:
            raise LimitError(
                f"more than {self.most:,} triples follow from this ontology",
                limit="max_closure",
                allowed=self.most,
            )
        return True

    def has(self, s: int, p: int, o: int) -> bool:
        return o in self.objects(s, p)

    def objects(self, s: int, p: int) -> set[int]:
        return self._forth.get(p, {}).get(s, _NONE)

    def subjects(self, p: int, o: int) -> set[int]:
        return self._back.get(p, {}).get(o, _NONE)

    def of(self, p: int) -> dict[int, set[int]]:
        """Subjects to objects. Copy what you keep while you add."""
        return self._forth.get(p, {})

    def turned(self, p: int) -> dict[int, set[int]]:
        """Objects to subjects."""
        return self._back.get(p, {})

    def pairs(self, p: int) -> list[tuple[int, int]]:
        """All of one property, as they are now."""
        return [(s, o) for s, objects in self.of(p).items() for o in objects]

    def properties(self) -> list[int]:
        return list(self._forth)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        for p, forth in self._forth.items():
            for s, objects in forth.items():
                for o in objects:
                    yield s, p, o

    def renumbered(self, table: Table) -> Facts:
        """The same facts about what is left after joining."""
        made = Facts(self.most)
        for s, p, o in self:
            made.add(table.find(s), table.find(p), table.find(o))
        return made


_NONE: set[int] = set()


def transitive(
    edges: dict[int, Iterable[int]], most: int, what: str = "an order"
) -> dict[int, frozenset[int]]:
    """All that can be reached from each node in one step or more.

    By strongly connected components, so that cycles cost nothing extra. Raises
    ``LimitError`` when more than ``most`` pairs would be reached.
    """
    reached: dict[int, frozenset[int]] = {}
    held = 0
    for component in components(edges):
        out: set[int] = set()
        cyclic = len(component) > 1
        ahead = {after for node in component for after in edges.get(node, ())}
        done = [after for after in ahead if after in reached]
        cyclic = cyclic or len(done) < len(ahead)
        # What is in ``out`` brought all it reaches: the widest first saves the others.
        for after in sorted(done, key=lambda node: -len(reached[node])):
            if after not in out:
                out.add(after)
                out |= reached[after]
        if cyclic:
            out.update(component)
        frozen = frozenset(out)
        for node in component:
            reached[node] = frozen
        # A component shares one set here, but not in the arrays made of it later.
        held += len(frozen) * len(component)
        if held > most:
            raise LimitError(
                f"{what} has more than {most:,} pairs", limit="max_closure", allowed=most
            )
    return reached


def components(edges: dict[int, Iterable[int]]) -> Iterator[list[int]]:
    """Strongly connected components, the reached before the reaching (Tarjan, unrolled)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in list(edges):
        if root in order:
            continue
        work = [(root, iter(tuple(edges.get(root, ()))))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, ahead = work[-1]
            for after in ahead:
                if after not in order:
                    order[after] = low[after] = len(order)
                    stack.append(after)
                    on_stack.add(after)
                    work.append((after, iter(tuple(edges.get(after, ())))))
                    break
                if after in on_stack:
                    low[node] = min(low[node], order[after])
            else:
                work.pop()
                if work:
                    below = work[-1][0]
                    low[below] = min(low[below], low[node])
                if low[node] == order[node]:
                    found = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        found.append(member)
                        if member == node:
                            break
                    yield found
