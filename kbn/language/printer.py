"""Syntax tree to text, in one canonical layout.

Law: ``parse_subscription(print_subscription(s)) == s`` and
``parse_event(print_event(n)) == n``, for everything without NaN or an infinity.
Constraints keep their order; ``start`` and ``end`` are folded back when they
stand for exactly what is there. No parentheses are ever needed, since ``and``
binds tighter than ``or``; ``()`` is the empty filter among alternatives.
"""

from __future__ import annotations

from kbn.errors import UnsupportedError
from kbn.language.durations import print_duration
from kbn.language.literals import write_string
from kbn.language.shorthand import Item, asks_start_and_end, fold
from kbn.language.spelling import is_bare_name, is_term, takes_terms
from kbn.model import Bag, Constraint, Filter, Notification, Subscription, Value
from kbn.model.operators import (
    DEFAULT_WINDOW,
    After,
    BagKind,
    BagOp,
    Content,
    During,
    Operator,
    Related,
    Relation,
    Window,
)
from kbn.model.spelling import double_text


def print_subscription(subscription: Subscription) -> str:
    """The alternatives joined by ``or``; the empty filter alone is the empty text."""
    if len(subscription) == 1:
        return print_filter(subscription.alternatives[0])
    return " or ".join(print_filter(alternative) or "()" for alternative in subscription)


def print_filter(held: Filter) -> str:
    """The constraints joined by ``and``; raises ``UnsupportedError`` for NaN or infinity."""
    return " and ".join(_print_item(item) for item in fold(held.constraints))


def print_constraint(constraint: Constraint) -> str:
    """One constraint by itself, with the full names of the temporal attributes."""
    return _print_item(Item(constraint))


def print_event(event: Notification) -> str:
    """The attributes as ``name=value``, separated by spaces."""
    return " ".join(f"{print_name(name)}={print_value(value)}" for name, value in event.items())


def print_name(name: str) -> str:
    """A name as it stands in a text: bare if it can be, otherwise quoted."""
    return name if is_bare_name(name) else write_string(name)


def print_value(value: Value) -> str:
    """A constant of the language; raises ``UnsupportedError`` for NaN or infinity."""
    return _print_operand(value, terms=False)


def show_value(value: Value) -> str:
    """Like ``print_value`` for a person to look at: NaN and infinities are shown as words."""
    if isinstance(value, Bag):
        return "[" + " ".join(show_value(member) for member in value) + "]"
    try:
        return print_value(value)
    except UnsupportedError:
        return str(value)


def print_operator(op: Operator) -> str:
    """The operator without name and operand, such as ``superbag[is_a]`` or ``after(2s)``."""
    match op:
        case Related():
            iri = op.property
            return f"related {iri if is_term(iri) else write_string(iri)}"
        case BagOp():
            inside = "" if op.sub is None else f"[{print_operator(op.sub)}]"
            return op.kind.text + inside
        case During():
            return "during"
        case After():
            return f"after({print_duration(op.limit)})"
        case Window():
            last = "" if op.limit == DEFAULT_WINDOW else f", last {op.limit}"
            return f"filter({print_operator(op.op)}{last})"
        case Relation():
            tolerance = f" ±{print_duration(op.tolerance)}" if op.tolerance else ""
            return f"relation({op.kind.value}{tolerance})"
        case _:
            return op.text


def warnings(subscription: Subscription) -> list[str]:
    """What is well formed and probably not meant, braces of temporal operators included."""
    found: list[str] = []
    for alternative in subscription:
        if asks_start_and_end(alternative.constraints):
            found.append(
                "start … and end … in one filter holds for instants only: "
                + print_filter(alternative)
            )
        for constraint in alternative:
            if constraint.inner is not None:
                found.extend(warnings(constraint.inner))
    return list(dict.fromkeys(found))


def _print_item(item: Item) -> str:
    constraint, word = item
    op = constraint.op
    name = print_name(constraint.name) if word is None else word
    if constraint.inner is not None:
        inside = print_subscription(constraint.inner)
        braces = f"{{ {inside} }}" if inside else "{ }"
        if word is not None and isinstance(op, Relation):
            return f"{print_operator(op)} {braces}"
        return f"{name} {print_operator(op)} {braces}"
    if op is Content.ANY:
        return f"{name} any"
    spelled = print_operator(op)
    if op == BagOp(BagKind.SUBBAG) and isinstance(constraint.value, Bag):
        spelled = "in"
    return f"{name} {spelled} {_print_operand(constraint.value, terms=takes_terms(op))}"


def _print_operand(value: Value, *, terms: bool) -> str:
    if isinstance(value, Bag):
        return "[" + " ".join(_print_operand(member, terms=terms) for member in value) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return double_text(value)
    return value if terms and is_term(value) else write_string(value)
