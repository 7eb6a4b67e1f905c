"""Which things satisfy an operator; covering is inclusion of these.

Law: ``covers(f, g)`` only if every thing of g's extent is in f's. A value counts only
through the thing it names, so under one hierarchy this is sound, and complete for
any pair of the seven operators, literals and unknown terms included, but one: two
``is_a`` (or two ``is_not_a``) compare their classes by the order. That two classes
happen to have the same members today makes neither cover the other.
Cost: two look-ups where the orders decide; else the extents, which are remembered
as long as all of them together are small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kbn.knowledge.hierarchy.parts import (
    AS_OPERATOR,
    CLASS,
    INDIVIDUAL,
    PROPERTY,
    SemanticOp,
)
from kbn.model.operators import Related, Semantic
from kbn.model.values import Bag, Value

if TYPE_CHECKING:
    from kbn.knowledge.hierarchy.terms import Hierarchy

#: So many members are remembered; then all are forgotten and found anew.
REMEMBERED = 1_000_000
_NOTHING: frozenset[int] = frozenset()


class Extents:
    """The extents under one hierarchy."""

    def __init__(self, known: Hierarchy) -> None:
        self._known = known
        self._found: dict[tuple[object, int | None], frozenset[int]] = {}
        self._held = 0

    def covers(
        self, op_f: SemanticOp, operand_f: Value, op_g: SemanticOp, operand_g: Value
    ) -> bool:
        op_f, op_g = self._read(op_f), self._read(op_g)
        if op_f is op_g and isinstance(op_f, Semantic):
            f, g = self._known.thing(operand_f), self._known.thing(operand_g)
            if f is not None and g is not None:
                ordered = self._ordered(op_f, f, g)
                if ordered is not None:
                    return ordered
        return self.of(op_g, operand_g) <= self.of(op_f, operand_f)

    def _ordered(self, op: Semantic, f: int, g: int) -> bool | None:
        """What the orders alone say of two constraints with one operator; None: not enough."""
        known = self._known
        if op in (Semantic.MORE_SPECIFIC, Semantic.LESS_SPECIFIC) and known.below(g, g):
            # The orders are reflexive: g satisfies itself, so it decides alone, unless it
            # is a class and a property: then one of the two orders says nothing of the other.
            if not (known.below(g, f) if op is Semantic.MORE_SPECIFIC else known.below(f, g)):
                return False
            both = known.is_read_as(g, CLASS) and known.is_read_as(g, PROPERTY)
            return None if both else True
        if known.is_read_as(f, CLASS) and known.is_read_as(g, CLASS):
            if op is Semantic.IS_A:
                return known.class_up.has(g, f)
            if op is Semantic.IS_NOT_A:
                return known.class_up.has(f, g)
        return None

    def _read(self, op: SemanticOp) -> SemanticOp:
        if isinstance(op, Related):
            return AS_OPERATOR.get(self._known.prefixes.expand(op.property), op)
        return op

    def of(self, op: SemanticOp, operand: Value) -> frozenset[int]:
        """Every thing v with ``v op operand``."""
        op = self._read(op)
        if isinstance(op, Related):
            return self._related(op, operand)
        c = None if isinstance(operand, Bag) else self._known.thing(operand)
        if c is None:
            return _NOTHING
        return self._remembered((op, c), lambda: self._term(op, c))

    def _related(self, op: Related, operand: Value) -> frozenset[int]:
        known = self._known
        p, target = known.thing(op.property), known.target(operand)
        if p is None or target is None or p not in known.relations:
            return _NOTHING
        return self._remembered((p, target), lambda: frozenset(known.relations[p].lefts(target)))

    def _term(self, op: Semantic, c: int) -> frozenset[int]:
        known = self._known
        if op is Semantic.IS_A:
            return frozenset(known.types.lefts(c))
        if op is Semantic.IS_NOT_A:
            return self._individuals() - self.of_thing(Semantic.IS_A, c)
        if op is Semantic.MORE_SPECIFIC:
            return frozenset([*known.class_up.lefts(c), *known.property_up.lefts(c)])
        if op is Semantic.LESS_SPECIFIC:
            return frozenset([*known.class_up.rights(c), *known.property_up.rights(c)])
        near = [*known.class_up.rights(c), *known.property_up.rights(c), c]
        same = frozenset(v for v in near if known.equivalent(v, c))
        if op is Semantic.EQUIVALENT:
            return same
        return frozenset(range(len(known.kinds))) - same

    def of_thing(self, op: Semantic, c: int) -> frozenset[int]:
        return self._remembered((op, c), lambda: self._term(op, c))

    def _individuals(self) -> frozenset[int]:
        kinds = self._known.kinds
        return self._remembered(
            ("individuals", None),
            lambda: frozenset(t for t, kind in enumerate(kinds) if kind & INDIVIDUAL),
        )

    def _remembered(
        self, key: tuple[object, int | None], find: Callable[[], frozenset[int]]
    ) -> frozenset[int]:
        found = self._found.get(key)
        if found is None:
            found = find()
            self._held += len(found) + 1
            if self._held > REMEMBERED:
                self._found.clear()
                self._held = len(found) + 1
            self._found[key] = found
        return found
