"""Content operators: the table of cases that Python alone would get wrong, and laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbn.matching.content import content_holds
from kbn.model import Bag
from kbn.model.operators import ORDERINGS, Content
from tests import strategies

NAN = float("nan")
BIG = 2**53


@pytest.mark.parametrize(
    ("value", "op", "operand", "expected"),
    [
        (1, "=", 1.0, True),
        (1, "=", True, False),
        (True, "=", 1, False),
        (0.0, "=", -0.0, True),
        (BIG + 1, "=", float(BIG), False),
        (BIG + 1, ">", float(BIG), True),
        (2**63 - 1, "<", 2.0**63, True),
        (2**63 - 1, "=", 2.0**63, False),
        (NAN, "=", NAN, False),
        (NAN, "!=", NAN, True),
        (NAN, "<", 5, False),
        (NAN, ">=", 5, False),
        (5, "<=", NAN, False),
        (NAN, "any", None, True),
        (None, "=", None, True),
        (None, "!=", None, False),
        (None, "<=", None, False),
        (None, "!=", 0, True),
        (False, "<", True, True),
        (True, "<=", True, True),
        (False, "<", 1, False),
        ("1", "=", 1, False),
        ("1", "!=", 1, True),
        ("10", "<", 9, False),
        ("Z", "<", "a", True),
        ("\uffff", "<", "\U00010000", True),
        ("abc", "prefix", "ab", True),
        ("abc", "prefix", "", True),
        ("abc", "suffix", "bc", True),
        ("abc", "contains", "b", True),
        ("", "contains", "", True),
        (12, "prefix", "1", False),
        ("ab", "prefix", "abc", False),
        (Bag([1, 2, 1]), "=", Bag([1, 1, 2]), True),
        (Bag([1, 2, 1]), "=", Bag([1, 2]), False),
        (Bag([1, 2]), "!=", Bag([2, 1.0]), False),
        (Bag([1]), "=", Bag([True]), False),
        (Bag([NAN]), "=", Bag([NAN]), False),
        (Bag([NAN]), "!=", Bag([NAN]), True),
        (1, "=", Bag([1]), False),
        (1, "!=", Bag([1]), True),
        (Bag([1]), "<", Bag([2]), False),
        (Bag(["ab"]), "prefix", "a", False),
        (Bag(), "any", None, True),
    ],
)
def test_a_value_stands_in_the_relation_the_language_defines(value, op, operand, expected):
    by_text = {operator.text: operator for operator in Content}
    assert content_holds(by_text[op], value, operand) is expected


@given(strategies.values, strategies.values)
def test_unequal_is_the_negation_of_equal(value, operand):
    assert content_holds(Content.EQ, value, operand) != content_holds(Content.NE, value, operand)


@given(strategies.scalars, strategies.scalars)
def test_orderings_agree_with_each_other(value, operand):
    holds = {op: content_holds(op, value, operand) for op in Content}
    assert holds[Content.LE] == (
        holds[Content.LT] or (holds[Content.EQ] and value is not None and holds[Content.GE])
    )
    assert not (holds[Content.LT] and holds[Content.GT])
    assert holds[Content.GT] == content_holds(Content.LT, operand, value)


@given(st.sampled_from(sorted(ORDERINGS, key=lambda op: op.text)), *[strategies.scalars] * 3)
def test_orderings_are_transitive(op, a, b, c):
    if content_holds(op, a, b) and content_holds(op, b, c):
        assert content_holds(op, a, c)


@given(strategies.values, strategies.values)
def test_equality_is_symmetric(value, operand):
    assert content_holds(Content.EQ, value, operand) == content_holds(Content.EQ, operand, value)
