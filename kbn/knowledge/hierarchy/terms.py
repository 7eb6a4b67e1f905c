"""The hierarchy: what the seven operators ask, answered by looking it up.

IRIs that are the same (``owl:sameAs``) are one *thing*, a small integer; so are
the values of literals, numbered behind the things. A thing may be read as a
class, a property and an individual at once; each reading has its own relations.

Laws: an unknown value or operand satisfies nothing, the complements included; the
complements are negation as failure; ``v more_specific c`` is reflexive on classes
and properties and false on everything else; a property is never reflexive unless
the closure says so. Cost: reading two terms and one binary search.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from kbn.knowledge.hierarchy.extents import Extents
from kbn.knowledge.hierarchy.names import Prefixes
from kbn.knowledge.hierarchy.pairs import Pairs
from kbn.knowledge.hierarchy.parts import (
    AS_OPERATOR,
    INDIVIDUAL,
    Literal,
    Reasons,
    SemanticOp,
    read_reasons,
)
from kbn.knowledge.hierarchy.why import Paths
from kbn.model.operators import Related, Semantic
from kbn.model.values import Scalar, Value


class Hierarchy:
    """One version of what is known. Immutable; equal ``hash`` means equal answers.

    Invariants: ``iris`` is sorted and ``thing_of[i]`` is the thing of ``iris[i]``;
    ``kinds[t]`` says how thing t may be read; ``class_up``, ``property_up`` (reflexive)
    and ``types`` are closed; ``relations`` are closed, objects from ``len(kinds)`` up
    are ``literals``.
    """

    def __init__(
        self,
        *,
        iris: Sequence[str],
        thing_of: Sequence[int],
        kinds: bytes,
        class_up: Pairs,
        property_up: Pairs,
        types: Pairs,
        relations: Mapping[int, Pairs],
        literals: Sequence[Literal],
        prefixes: Prefixes,
        reasons: Reasons | bytes = b"",
    ) -> None:
        self.iris = tuple(iris)
        self.thing_of = tuple(thing_of)
        self.kinds = kinds
        self.class_up = class_up
        self.property_up = property_up
        self.types = types
        self.relations = dict(relations)
        self.literals = tuple(literals)
        self.prefixes = prefixes
        self.raw_reasons = reasons
        self._id = dict(zip(self.iris, self.thing_of, strict=True))
        # What is written out and cannot be mistaken for a prefix name.
        self._direct = {iri: thing for iri, thing in self._id.items() if not prefixes.shadows(iri)}
        self._literal = {literal: len(kinds) + at for at, literal in enumerate(self.literals)}

    # --- reading terms -------------------------------------------------------------

    def thing(self, value: Value) -> int | None:
        """The thing a value names, or None if it is unknown."""
        if type(value) is not str:
            return None
        found = self._direct.get(value)
        if found is not None:
            return found
        prefix, colon, local = value.partition(":")
        space = self.prefixes.table.get(prefix) if colon else None
        return None if space is None else self._id.get(space + local)

    def knows(self, value: Value) -> bool:
        """Whether the value names something that an ontology speaks of."""
        return self.thing(value) is not None

    def is_read_as(self, thing: int, reading: int) -> bool:
        return bool(self.kinds[thing] & reading)

    @cached_property
    def names_of(self) -> tuple[tuple[str, ...], ...]:
        """The IRIs of each thing, in order."""
        found: list[list[str]] = [[] for _ in self.kinds]
        for iri, thing in zip(self.iris, self.thing_of, strict=True):
            found[thing].append(iri)
        return tuple(map(tuple, found))

    # --- the operators ---------------------------------------------------------------

    def holds(self, op: SemanticOp, value: Scalar, operand: Scalar) -> bool:
        """Whether ``value op operand`` follows from what is known."""
        v = self.thing(value)
        if v is None:
            return False
        if isinstance(op, Related):
            reading = self._reading(op)
            if reading is None:
                relation = self.relation(op)
                if relation is None:
                    return False
                target = self.target(operand)
                return target is not None and relation.has(v, target)
            op = reading
        c = self.thing(operand)
        return c is not None and self._between(op, v, c)

    def _between(self, op: Semantic, v: int, c: int) -> bool:
        if op is Semantic.IS_A:
            return self.types.has(v, c)
        if op is Semantic.MORE_SPECIFIC:
            return self.below(v, c)
        if op is Semantic.LESS_SPECIFIC:
            return self.below(c, v)
        if op is Semantic.EQUIVALENT:
            return self.equivalent(v, c)
        if op is Semantic.NOT_EQUIVALENT:
            return not self.equivalent(v, c)
        return self.is_read_as(v, INDIVIDUAL) and not self.types.has(v, c)

    def below(self, v: int, c: int) -> bool:
        """Sub-class or sub-property, reflexive; the two orders never mix."""
        return self.class_up.has(v, c) or self.property_up.has(v, c)

    def equivalent(self, v: int, c: int) -> bool:
        """The same thing, or below each other in one of the two orders."""
        if v == c:
            return True
        ups = (self.class_up, self.property_up)
        return any(up.has(v, c) and up.has(c, v) for up in ups)

    def relation(self, op: Related) -> Pairs | None:
        """The closed relation of a known property, if anything stands in it."""
        p = self.thing(op.property)
        return None if p is None else self.relations.get(p)

    def target(self, operand: Value) -> int | None:
        """What an operand of ``related`` names: a thing, else the literals equal to it."""
        thing = self.thing(operand)
        if thing is not None:
            return thing
        if isinstance(operand, str):
            return self._literal.get(Literal("s", operand))
        if isinstance(operand, bool):
            return self._literal.get(Literal("b", operand))
        if isinstance(operand, int | float):
            return self._literal.get(Literal("n", operand))
        return None

    # --- what a value satisfies (see ``matching.world.Reaching``) -------------------------

    def operand_key(self, op: SemanticOp, operand: Scalar) -> int | None:
        """The thing an operand names, or the literal."""
        if isinstance(op, Related) and self._reading(op) is None:
            return self.target(operand)
        return self.thing(operand)

    def operand_keys(self, op: SemanticOp, value: Scalar) -> list[int] | None:
        """The things ``value op`` holds of; None for the complements, which hold of most."""
        v = self.thing(value)
        if v is None:
            return []
        if isinstance(op, Related):
            reading = self._reading(op)
            if reading is None:
                relation = self.relation(op)
                return [] if relation is None else relation.rights(v)
            op = reading
        if op is Semantic.IS_A:
            return self.types.rights(v)
        above = [*self.class_up.rights(v), *self.property_up.rights(v)]
        if op is Semantic.MORE_SPECIFIC:
            return above
        if op is Semantic.LESS_SPECIFIC:
            return [*self.class_up.lefts(v), *self.property_up.lefts(v)]
        if op is Semantic.EQUIVALENT:
            return [c for c in {*above, v} if self.equivalent(v, c)]
        return None

    def _reading(self, op: Related) -> Semantic | None:
        return AS_OPERATOR.get(self.prefixes.expand(op.property))

    # --- who am I ---------------------------------------------------------------------

    @cached_property
    def hash(self) -> str:
        """Names the knowledge itself: the same for the same closure, however it is spelled."""
        digest = hashlib.sha256(b"kbn hierarchy 1\n")
        for iri, thing in zip(self.iris, self.thing_of, strict=True):
            digest.update(f"{thing} {iri}\n".encode())
        digest.update(self.kinds)
        for pairs in (self.class_up, self.property_up, self.types):
            digest.update(f"\n{len(pairs)}\n".encode())
            digest.update(pairs.to_bytes())
        for prop, pairs in sorted(self.relations.items()):
            digest.update(f"\n{prop} {len(pairs)}\n".encode())
            digest.update(pairs.to_bytes())
        digest.update(repr([tuple(literal) for literal in self.literals]).encode())
        return digest.hexdigest()

    def make_ready(self) -> Hierarchy:
        """Do now, where nobody waits, what the first questions would have to wait for."""
        for pairs in (self.class_up, self.property_up, self.types):
            pairs.turn()
        _ = self.hash, self.names_of
        return self

    def let_go(self) -> None:
        """Drop what was remembered of earlier questions: nothing of it will be asked soon."""
        for remembered in ("_extents", "_paths", "reasons"):
            self.__dict__.pop(remembered, None)

    def __repr__(self) -> str:
        return f"<Hierarchy {self.hash[:12]}: {len(self.iris)} terms>"

    # --- what covering, SQL and people ask (see the modules of those names) -------------

    def covers(
        self, op_f: SemanticOp, operand_f: Value, op_g: SemanticOp, operand_g: Value
    ) -> bool:
        """Whether every value with ``value op_g operand_g`` has ``value op_f operand_f``."""
        return self._extents.covers(op_f, operand_f, op_g, operand_g)

    def matching_set(self, op: SemanticOp, operand: Value) -> frozenset[str]:
        """Every spelling of every value that satisfies ``value op operand``."""
        return frozenset(
            spelling
            for thing in self._extents.of(op, operand)
            for iri in self.names_of[thing]
            for spelling in self.prefixes.spellings(iri)
        )

    def iris_of(self, things: Iterable[int]) -> frozenset[str]:
        """The IRIs of these things, for comparing two hierarchies."""
        return frozenset(iri for thing in things for iri in self.names_of[thing])

    def extent(self, op: SemanticOp, operand: Value) -> frozenset[int]:
        """Every thing that satisfies ``value op operand``."""
        return self._extents.of(op, operand)

    def why(self, op: SemanticOp, value: Value, operand: Value) -> str:
        """The reason for the answer, with the path that led to it."""
        return self._paths.why(op, value, operand)

    @cached_property
    def _extents(self) -> Extents:
        return Extents(self)

    @cached_property
    def _paths(self) -> Paths:
        return Paths(self)

    @cached_property
    def reasons(self) -> Reasons:
        """Read from their byte form when first asked for."""
        held = self.raw_reasons
        return held if isinstance(held, Reasons) else read_reasons(held)
