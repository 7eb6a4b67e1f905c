"""Semantic constraints under a toy ontology: a tree of classes with individuals."""

from __future__ import annotations

from kbn.covering import contradictory, filter_covers
from kbn.matching.naive import filter_matches
from kbn.matching.world import World
from kbn.model import Bag, Filter, Notification
from kbn.model.operators import BagKind, BagOp, Related, Semantic
from tests.covering.builders import c, x

ABOVE = {"Red": "Wine", "White": "Wine", "Merlot": "Red", "Wine": "Drink"}
TYPES = {"w1": "Merlot", "w2": "White"}
TERMS = ["Drink", "Wine", "Red", "White", "Merlot", "w1", "w2", "unknown"]
OPERATORS = [Semantic.MORE_SPECIFIC, Semantic.LESS_SPECIFIC, Semantic.IS_A]


def _below(narrow, wide):
    while narrow is not None and narrow != wide:
        narrow = ABOVE.get(narrow)
    return narrow is not None and wide not in TYPES and wide != "unknown"


class Tree:
    """A ``TermOrder`` for the tree above."""

    def holds(self, op, value, operand):
        assert not isinstance(value, Bag)
        assert not isinstance(operand, Bag)
        if op is Semantic.IS_A:
            return value in TYPES and _below(TYPES[value], operand)
        if value in TYPES or operand in TYPES:
            return False
        if op is Semantic.MORE_SPECIFIC:
            return _below(value, operand)
        return op is Semantic.LESS_SPECIFIC and _below(operand, value)

    def covers(self, op_f, operand_f, op_g, operand_g):
        if op_f is not op_g or "unknown" in (operand_f, operand_g):
            return False
        if operand_f in TYPES or operand_g in TYPES:
            return False
        if op_f is Semantic.LESS_SPECIFIC:
            return _below(operand_f, operand_g)
        return _below(operand_g, operand_f)


def test_without_an_order_only_the_same_constraint_covers():
    assert filter_covers(x("is_a", "Wine"), x("is_a", "Wine"))
    assert filter_covers(x("any", None), x("is_a", "Wine"))
    assert not filter_covers(x("is_a", "Wine"), x("is_a", "Red"))
    assert not filter_covers(x("is_a", "Wine"), x("more_specific", "Wine"))
    assert not filter_covers(x("is_a", "Wine"), x("=", "w1"))
    assert not filter_covers(x("equivalent", "foo"), x("=", "foo"))


def test_a_property_is_part_of_the_operator():
    f, g = c("x", Related("geo:west"), "h"), c("x", Related("geo:east"), "h")
    assert filter_covers(Filter([f]), Filter([f]))
    assert not filter_covers(Filter([f]), Filter([g]))


def test_an_order_decides_a_class_against_the_class_above_it():
    assert filter_covers(x("is_a", "Wine"), x("is_a", "Red"), Tree())
    assert not filter_covers(x("is_a", "Red"), x("is_a", "Wine"), Tree())
    assert filter_covers(x("more_specific", "Wine"), x("more_specific", "Merlot"), Tree())
    assert filter_covers(x("less_specific", "Merlot"), x("less_specific", "Red"), Tree())


def test_an_order_decides_a_value_that_is_known():
    assert filter_covers(x("is_a", "Wine"), x("=", "w1"), Tree())
    assert not filter_covers(x("is_a", "Red"), x("=", "w2"), Tree())
    assert filter_covers(x("superbag[is_a]", ["Red"]), x("=", ["w1", "w2"]), Tree())
    assert not filter_covers(x("is_a", "Wine"), x("=", ["w1"]), Tree())


def test_bags_compare_their_members_by_the_order():
    assert filter_covers(x("subbag[is_a]", ["Wine"]), x("subbag[is_a]", ["Red"]), Tree())
    assert not filter_covers(x("subbag[is_a]", ["Wine"]), x("subbag[is_a]", ["Red"]))
    assert filter_covers(x("superbag[is_a]", ["Red"]), x("superbag[is_a]", ["White", "Red"]))
    assert filter_covers(x("superbag[is_a]", ["Wine"]), x("superbag", ["w1", 5]), Tree())
    assert filter_covers(x("superbag[is_a]", ["Wine"]), x("is_a", "Red"), Tree())
    assert not filter_covers(x("superbag[is_a]", ["Wine"]), x("superbag", ["w1"]))


def test_a_bag_is_no_term():
    assert contradictory(x("is_a", ["Wine"]))
    assert contradictory(x("is_a", "Wine", "=", ["w1"]))
    assert contradictory(x("is_a", "Wine", "superbag", [1, 2]))
    assert not contradictory(x("superbag[is_a]", ["Wine"], "superbag", ["w1"]))


def test_no_pair_of_semantic_constraints_is_covered_wrongly():
    order, world = Tree(), World(knowledge=Tree())
    values = [*TERMS, 1, Bag(), Bag(["w1"]), Bag(["w1", "w2"]), Bag(["Merlot", "Red"])]
    events = [Notification({"x": value}) for value in values]
    asked = [x(op, term) for op in OPERATORS for term in TERMS]
    asked += [x(BagOp(kind, op), [t]) for kind in BagKind for op in OPERATORS for t in TERMS]
    asked += [x("=", term) for term in TERMS] + [x("in", ["w1", "w2"])]
    for g in asked:
        found = [event for event in events if filter_matches(g, event, world)]
        for f in asked:
            if filter_covers(f, g, order):
                assert all(filter_matches(f, event, world) for event in found), (f, g)
