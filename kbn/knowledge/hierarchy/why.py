"""Why an operator holds, or not, in words: ``ChiantiClassico → ItalianWine``.

The answer comes from the closed relations; this file only looks for the stated
steps that lead there. Where the steps are not all stated (a restriction, a key),
the arrow goes straight to the end, and says by which rule if that is known.
Cost: one walk over the stated edges, for people only.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kbn.knowledge.hierarchy.names import local_name
from kbn.knowledge.hierarchy.parts import (
    AS_OPERATOR,
    CLASS,
    INDIVIDUAL,
    PROPERTY,
    Edge,
    SemanticOp,
)
from kbn.model.operators import Related, Semantic
from kbn.model.values import Bag, Scalar, Value

if TYPE_CHECKING:
    from kbn.knowledge.hierarchy.terms import Hierarchy

Steps = Mapping[int, list[Edge]]


class Paths:
    """Explanations under one hierarchy."""

    def __init__(self, known: Hierarchy) -> None:
        self._known = known
        reasons = known.reasons
        self._classes = _from_below(reasons.classes)
        self._properties = _from_below(reasons.properties)
        self._types = _from_below(reasons.types)

    def why(self, op: SemanticOp, value: Value, operand: Value) -> str:
        known = self._known
        for side in (value, operand) if not isinstance(op, Related) else (value,):
            if known.thing(side) is None:
                return f"{_shown(side)} is not known to the ontology"
        v = known.thing(value)
        assert v is not None
        assert not isinstance(value, Bag)
        assert not isinstance(operand, Bag)
        if isinstance(op, Related):
            reading = AS_OPERATOR.get(known.prefixes.expand(op.property))
            if reading is None:
                return self._related(op, v, operand)
            op = reading
        c = known.thing(operand)
        if c is None:
            return f"{_shown(operand)} is not known to the ontology"
        return self._term(op, v, c, holds=known.holds(op, value, operand))

    def _term(self, op: Semantic, v: int, c: int, *, holds: bool) -> str:
        if op in (Semantic.IS_A, Semantic.IS_NOT_A):
            return self._type(v, c)
        if op is Semantic.MORE_SPECIFIC:
            return self.order(v, c) if holds else self._no_order(v, c)
        if op is Semantic.LESS_SPECIFIC:
            return self.order(c, v) if holds else self._no_order(c, v)
        return self._same(v, c)

    def _type(self, v: int, c: int) -> str:
        known = self._known
        if not known.is_read_as(v, INDIVIDUAL):
            return f"{self.name(v)} is {self.readings(v)}, not an individual"
        if not known.types.has(v, c):
            types = [self.name(t) for t in self.nearest_types(v)]
            return f"{self.name(v)} is {_listed(types)}; no path leads to {self.name(c)}"
        return self.type_path(v, c)

    def type_path(self, v: int, c: int) -> str:
        """The steps from an individual to a class it belongs to."""
        known = self._known
        best: list[Edge] | None = None
        for edge in self._types.get(v, ()):
            if known.class_up.has(edge.upper, c):
                rest = self._walk(self._classes, edge.upper, c)
                if rest is not None and (best is None or len(rest) + 1 < len(best)):
                    best = [edge, *rest]
        return self._arrows(v, best or [Edge(v, c, "")])

    def order(self, v: int, c: int) -> str:
        """The steps from a class or property to one above it."""
        if v == c:
            return f"{self.name(v)} itself"
        known = self._known
        as_class = known.class_up.has(v, c)
        steps = self._walk(self._classes if as_class else self._properties, v, c)
        return self._arrows(v, steps or [Edge(v, c, "")])

    def _no_order(self, v: int, c: int) -> str:
        known = self._known
        for reading in (CLASS, PROPERTY):
            if known.is_read_as(v, reading) and known.is_read_as(c, reading):
                return f"no path leads from {self.name(v)} up to {self.name(c)}"
        left, right = self.readings(v), self.readings(c)
        return (
            f"{self.name(v)} is {left} and {self.name(c)} {right}: not two classes or properties"
        )

    def _same(self, v: int, c: int) -> str:
        known = self._known
        if v == c:
            names = known.names_of[v]
            return f"one thing{': ' + ' = '.join(map(local_name, names)) if names[1:] else ''}"
        if known.equivalent(v, c):
            return f"each is below the other: {self.order(v, c)}, {self.order(c, v)}"
        return f"nothing says that {self.name(v)} and {self.name(c)} are the same"

    def _related(self, op: Related, v: int, operand: Scalar) -> str:
        known = self._known
        p = known.thing(op.property)
        if p is None:
            return f"the property {_shown(op.property)} is not known to the ontology"
        o = known.target(operand)
        if o is None:
            return f"{_shown(operand)} is neither known nor the value of a property"
        relation = known.relations.get(p)
        if relation is None or not relation.has(v, o):
            others = relation.rights(v) if relation else []
            if not others:
                return f"{self.name(v)} has no {self.name(p)}"
            return f"{self.name(v)} {self.name(p)} only {_listed([self.name(x) for x in others])}"
        return self.relation_path(p, v, o)

    def relation_path(self, p: int, s: int, o: int) -> str:
        """Stated, or from a sub-property, an inverse, symmetry or a transitive chain."""
        known, reasons = self._known, self._known.reasons
        below = [q for q in known.property_up.lefts(p) if q != p]
        said = f"{self.name(s)} {{}} {self.name(o)}"
        for q in (p, *below):
            above = "" if q == p else f", {self.order(q, p)}"
            if (q, s, o) in reasons.relations:
                return said.format(self.name(q)) + above
            turned = f"{self.name(o)} {{}} {self.name(s)}"
            if (q, o, s) in reasons.relations and "symmetric" in reasons.traits.get(q, ()):
                return turned.format(self.name(q)) + f", symmetric{above}"
            for r in self._inverses(q):
                if (r, o, s) in reasons.relations:
                    return turned.format(self.name(r)) + f", inverse of {self.name(q)}{above}"
            if "transitive" in reasons.traits.get(q, ()):
                chain = self._chain(q, s, o)
                if chain:
                    return f" {self.name(q)} → ".join(map(self.name, chain)) + above
        return said.format(self.name(p)) + ", entailed"

    def _inverses(self, p: int) -> list[int]:
        pairs = self._known.reasons.inverses
        return [q for a, b in pairs for q in ((b,) if a == p else (a,) if b == p else ())]

    def _chain(self, p: int, s: int, o: int) -> list[int] | None:
        steps: dict[int, list[Edge]] = defaultdict(list)
        for q, a, b in self._known.reasons.relations:
            if q == p or self._known.property_up.has(q, p):
                steps[a].append(Edge(a, b, ""))
            elif q in self._inverses(p):
                steps[b].append(Edge(b, a, ""))
        walked = self._walk(steps, s, o)
        return None if not walked else [s, *(edge.upper for edge in walked)]

    def _walk(self, steps: Steps, start: int, end: int) -> list[Edge] | None:
        """The shortest way up, breadth first."""
        came: dict[int, Edge | None] = {start: None}
        waiting = deque([start])
        while waiting and end not in came:
            for edge in steps.get(waiting.popleft(), ()):
                if edge.upper not in came:
                    came[edge.upper] = edge
                    waiting.append(edge.upper)
        if end not in came:
            return None
        path: list[Edge] = []
        step = came[end]
        while step is not None:
            path.append(step)
            step = came[step.lower]
        return path[::-1]

    def _arrows(self, start: int, steps: Iterable[Edge]) -> str:
        said = self.name(start)
        for edge in steps:
            said += f" → {self.name(edge.upper)}"
            if edge.rule:
                by = f" {self.name(edge.via)}" if edge.via >= 0 else ""
                said += f" ({edge.rule}{by})"
        return said

    # --- for `show` as well -------------------------------------------------------------

    def nearest_types(self, v: int) -> list[int]:
        """The types that no other type of it lies below."""
        known = self._known
        types = known.types.rights(v)
        return [
            t
            for t in types
            if not any(
                u != t and known.class_up.has(u, t) and not known.class_up.has(t, u) for u in types
            )
        ]

    def name(self, thing: int) -> str:
        """A thing's local name, or the text of a literal."""
        known = self._known
        if thing >= len(known.kinds):
            value = known.literals[thing - len(known.kinds)].value
            return f'"{value}"' if isinstance(value, str) else str(value).lower()
        return local_name(known.names_of[thing][0])

    def readings(self, thing: int) -> str:
        known = self._known
        words = [
            word
            for word, reading in (
                ("a class", CLASS),
                ("a property", PROPERTY),
                ("an individual", INDIVIDUAL),
            )
            if known.is_read_as(thing, reading)
        ]
        return " and ".join(words) or "only mentioned"


def _from_below(edges: Iterable[Edge]) -> dict[int, list[Edge]]:
    found: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        found[edge.lower].append(edge)
    return found


def _listed(names: list[str], most: int = 5) -> str:
    shown = names[:most]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown) + more


def _shown(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
