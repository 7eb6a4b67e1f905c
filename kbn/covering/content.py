"""Content constraints: does one follow from what a region leaves possible?

Law: ``follows(op, operand, region)`` promises that every value of the region
stands in the relation. Complete for ``= != < <= > >= prefix any`` on the regions
those operators make (numbers and strings dense; bools, null and single points
exact); ``suffix`` and ``contains`` follow from one constraint at a time, or from
the beginning that all strings of the interval share. Cost: a few comparisons.
"""

from __future__ import annotations

from typing import Any

from kbn.covering.region import Region, above, below, common_prefix, successor
from kbn.matching.content import BOOL, NUMBER, STRING, content_holds, equal, type_class
from kbn.model.operators import Content
from kbn.model.values import Value


def follows(op: Content, operand: Value, region: Region) -> bool:
    """Whether ``value op operand`` holds for every value of ``region``."""
    if op is Content.ANY or region.empty:
        return True
    if region.single:
        return content_holds(op, region.point, operand)
    if op is Content.NE:
        # The one value that could contradict is the operand; NaN contradicts nothing.
        return not equal(operand, operand) or not region.admits(operand)
    if op is Content.EQ:
        return False
    kind = region.kind
    if kind == BOOL:
        return content_holds(op, False, operand) and content_holds(op, True, operand)
    if kind != type_class(operand):
        return False
    if kind == NUMBER or op in _BOUNDED:
        return _bounded(op, operand, region)
    return kind == STRING and _textual(op, operand, region)


_BOUNDED = frozenset({Content.LT, Content.LE, Content.GT, Content.GE, Content.PREFIX})


def _bounded(op: Content, operand: Any, region: Region) -> bool:
    """The operators whose satisfying set is itself an interval."""
    if op is Content.LT or op is Content.LE:
        return below(region, operand, op is Content.LT)
    if op is Content.GT or op is Content.GE:
        return above(region, operand, op is Content.GT)
    return (
        op is Content.PREFIX
        and region.kind == STRING
        and above(region, operand, False)
        and below(region, successor(operand), True)
    )


def _textual(op: Content, operand: Any, region: Region) -> bool:
    """``suffix`` and ``contains``, from one of the region's own or from its beginning."""
    if operand == "":
        return True
    if op is Content.SUFFIX:
        return any(
            held is Content.SUFFIX and isinstance(own, str) and own.endswith(operand)
            for held, own in region.tests
        )
    return any(
        held in _SAYS_WHAT_IS_INSIDE and isinstance(own, str) and operand in own
        for held, own in region.tests
    ) or (operand in common_prefix(region))


_SAYS_WHAT_IS_INSIDE = frozenset({Content.PREFIX, Content.SUFFIX, Content.CONTAINS})
