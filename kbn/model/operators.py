"""The operators, as one table: text spelling, wire symbol, family.

A new operator is a row here, a line in the grammar, a rule in ``matching`` and a
rule in ``covering``. Families:

- *content*: a value against a value;
- *semantic*: a term against a term, decided by an ontology;
- *bag*: a bag against a bag, by an injective pairing under a sub-operator;
- *temporal*: a time against the history; the operand is a subscription.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from kbn.errors import LimitError, UnsupportedError
from kbn.model.notifications import check_name
from kbn.model.values import LONG_MAX

#: How many of the most recent events FILTER looks at when nothing else is said.
DEFAULT_WINDOW = 10_000


class _Spelled(Enum):
    """An operator with a spelling in the text form and a symbol on the wire."""

    def __init__(self, text: str, wire: str) -> None:
        self.text = text
        self.wire = wire

    def __hash__(self) -> int:
        return id(self)  # members are singletons, also after unpickling


class Content(_Spelled):
    """Value against value; ``ANY`` asks only for presence and has no operand."""

    EQ = ("=", "=")
    NE = ("!=", "!=")
    LT = ("<", "<")
    LE = ("<=", "<=")
    GT = (">", ">")
    GE = (">=", ">=")
    PREFIX = ("prefix", ">*")
    SUFFIX = ("suffix", "*<")
    CONTAINS = ("contains", "*")
    ANY = ("any", "any")


class Semantic(_Spelled):
    """Term against term under the loaded ontology."""

    EQUIVALENT = ("equivalent", "@=")
    NOT_EQUIVALENT = ("not_equivalent", "@!=")
    MORE_SPECIFIC = ("more_specific", "@<")
    LESS_SPECIFIC = ("less_specific", "@>")
    IS_A = ("is_a", "@:")
    IS_NOT_A = ("is_not_a", "@!:")


class BagKind(_Spelled):
    """Which side of the pairing must be used up."""

    SUBBAG = ("subbag", "#<")
    SUPERBAG = ("superbag", "#>")
    BAGEQ = ("bageq", "#=")


class Allen(Enum):
    """The thirteen relations between two intervals; the value is the spelling."""

    BEFORE = "before"
    AFTER = "after"
    MEETS = "meets"
    MET_BY = "met_by"
    OVERLAPS = "overlaps"
    OVERLAPPED_BY = "overlapped_by"
    DURING = "during"
    CONTAINS = "contains"
    STARTS = "starts"
    STARTED_BY = "started_by"
    FINISHES = "finishes"
    FINISHED_BY = "finished_by"
    EQUALS = "equals"


@dataclass(frozen=True, slots=True)
class Related:
    """ONTPROP: the ontology entails ``value property operand``."""

    property: str

    def __post_init__(self) -> None:
        check_name(self.property)


Simple: TypeAlias = Content | Semantic | Related


@dataclass(frozen=True, slots=True)
class BagOp:
    """A bag operator, alone (``sub`` is None: equality of members) or composed."""

    kind: BagKind
    sub: Simple | None = None

    def __post_init__(self) -> None:
        if self.sub is not None and not isinstance(self.sub, Content | Semantic | Related):
            raise UnsupportedError(
                "a sub-operator of a bag is a content or semantic operator,"
                " never a bag or temporal one"
            )


@dataclass(frozen=True, slots=True)
class During:
    """The reference time lies within an event that matches the operand."""


@dataclass(frozen=True, slots=True)
class After:
    """An event that matches the operand ended before, by at most ``limit`` milliseconds."""

    limit: int

    def __post_init__(self) -> None:
        _check_bound("the limit of after", self.limit, 1)


@dataclass(frozen=True, slots=True)
class Window:
    """FILTER: ``op`` holds against one of the ``limit`` most recent matching events."""

    op: Simple | BagOp
    limit: int = DEFAULT_WINDOW

    def __post_init__(self) -> None:
        if not isinstance(self.op, Content | Semantic | Related | BagOp):
            raise UnsupportedError("filter compares values: its operator cannot be temporal")
        _check_bound("the limit of filter", self.limit, 1)


@dataclass(frozen=True, slots=True)
class Relation:
    """An Allen relation to a matching event, each comparison relaxed by ``tolerance`` ms."""

    kind: Allen
    tolerance: int = 0

    def __post_init__(self) -> None:
        _check_bound("the tolerance of a relation", self.tolerance, 0)


Temporal: TypeAlias = During | After | Window | Relation
Operator: TypeAlias = Content | Semantic | Related | BagOp | Temporal

ORDERINGS = frozenset({Content.LT, Content.LE, Content.GT, Content.GE})
STRING_OPERATORS = frozenset({Content.PREFIX, Content.SUFFIX, Content.CONTAINS})


def is_temporal(op: Operator) -> bool:
    """Whether the operand is a subscription asked of the history."""
    return isinstance(op, During | After | Window | Relation)


def is_semantic(op: Operator) -> bool:
    """Whether the operator itself, or the one inside it, needs an ontology."""
    if isinstance(op, BagOp):
        return op.sub is not None and is_semantic(op.sub)
    if isinstance(op, Window):
        return is_semantic(op.op)
    return isinstance(op, Semantic | Related)


def _check_bound(what: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnsupportedError(f"{what} is a whole number, not {value!r}")
    if not least <= value <= LONG_MAX:
        raise LimitError(f"{what} is at least {least}, not {value}", limit=what, allowed=least)
