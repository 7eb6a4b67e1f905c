"""A hierarchy as stores and Spark ask it: the values that satisfy an operator, if they are few."""

from __future__ import annotations

from kbn.knowledge.hierarchy import Hierarchy
from kbn.model.operators import Related, Semantic
from kbn.model.values import Scalar

#: More values than this are not put into a query one by one.
LISTED = 1000


class Spellings:
    """Fulfils ``datastore.query.Spelling``."""

    def __init__(self, known: Hierarchy) -> None:
        self._known = known

    def spellings(self, op: Semantic | Related, operand: Scalar) -> frozenset[str] | None:
        if len(self._known.extent(op, operand)) > LISTED:
            return None
        return self._known.matching_set(op, operand)
