"""Semantic constraints: a term against a term, under one and the same ontology.

Law: without an order two semantic constraints compare by equality alone. With
one, its ``covers`` decides a pair, and a name that is fixed to a single value is
decided by its ``holds``. Both sides must have been read under the ontology that
the order speaks for; two ontologies never meet here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from kbn.covering.region import Region
from kbn.matching.world import Knowledge
from kbn.model.operators import Related, Semantic
from kbn.model.values import Bag, Value, identity

SemanticOp: TypeAlias = Semantic | Related


class TermOrder(Knowledge, Protocol):
    """What one ontology knows about its own operators."""

    def covers(
        self, op_f: SemanticOp, operand_f: Value, op_g: SemanticOp, operand_g: Value
    ) -> bool:
        """Whether every value with ``value op_g operand_g`` has ``value op_f operand_f``."""
        ...


def pair_covers(
    op_f: SemanticOp,
    operand_f: Value,
    op_g: SemanticOp,
    operand_g: Value,
    order: TermOrder | None,
) -> bool:
    """Whether the first of two semantic constraints on one name follows from the second."""
    if op_f == op_g and identity(operand_f) == identity(operand_g):
        return True
    return order is not None and order.covers(op_f, operand_f, op_g, operand_g)


def semantic_follows(
    op: SemanticOp,
    operand: Value,
    region: Region,
    held: Iterable[tuple[SemanticOp, Value]],
    order: TermOrder | None,
) -> bool:
    """Whether ``op operand`` follows from the semantic constraints held, or at a single value."""
    if region.empty or any(pair_covers(op, operand, *own, order) for own in held):
        return True
    if order is None or not region.single:
        return False
    point = region.point
    if isinstance(point, Bag) or isinstance(operand, Bag):
        return False
    return order.holds(op, point, operand)
