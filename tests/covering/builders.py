"""Short hand for the tables in these tests: constraints in the order they are read."""

from __future__ import annotations

from kbn.model import Bag, Constraint, Filter, Subscription
from kbn.model.operators import BagKind, BagOp, Content, Operator, Semantic

_OPERATORS: dict[str, Operator] = {
    **{op.text: op for op in Content},
    **{op.text: op for op in Semantic},
    **{kind.text: BagOp(kind) for kind in BagKind},
    **{f"{kind.text}[{op.text}]": BagOp(kind, op) for kind in BagKind for op in Content},
    **{f"{kind.text}[{op.text}]": BagOp(kind, op) for kind in BagKind for op in Semantic},
    "in": BagOp(BagKind.SUBBAG),
}


def c(name: str, op: str | Operator, operand: object = None) -> Constraint:
    """``c("x", "subbag[<]", [1, 3])``; a list is a bag."""
    found = _OPERATORS[op] if isinstance(op, str) else op
    value = Bag(operand) if isinstance(operand, list) else operand
    return Constraint(name, found, value)  # type: ignore[arg-type]


def x(*tests: object) -> Filter:
    """``x(">", 1, "<", 3)``: operators and operands by turns, all on the name x."""
    return Filter(c("x", op, value) for op, value in zip(tests[::2], tests[1::2], strict=True))


def sub(*filters: Filter) -> Subscription:
    return Subscription(filters)
