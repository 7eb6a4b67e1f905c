"""Why a subscription matched, or did not: the matcher's own verdicts, told to a person.

Law: ``explain(s, n).holds == matches(s, n)``, and the same for every part of it.
Each verdict is asked of ``naive``; this file only describes both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

from kbn.language.printer import print_constraint, print_filter, print_subscription, show_value
from kbn.matching.bag import pairing
from kbn.matching.content import is_nan, type_class
from kbn.matching.naive import constraint_holds, value_holds
from kbn.matching.reasons import temporal_reason
from kbn.matching.temporal import AskedHistory
from kbn.matching.world import NOTHING_KNOWN, Reasoned, World
from kbn.model.filters import Constraint, Filter, Subscription
from kbn.model.notifications import Notification
from kbn.model.operators import (
    ORDERINGS,
    STRING_OPERATORS,
    BagKind,
    BagOp,
    Content,
    Operator,
    Related,
    Semantic,
)
from kbn.model.values import Bag, Scalar, Value, members_of, type_name

_VERBS = {
    Semantic.EQUIVALENT: "equivalent to",
    Semantic.NOT_EQUIVALENT: "known to be other than",
    Semantic.MORE_SPECIFIC: "more specific than, or the same as,",
    Semantic.LESS_SPECIFIC: "less specific than, or the same as,",
    Semantic.IS_A: "a",
    Semantic.IS_NOT_A: "known not to be a",
}


@dataclass(frozen=True, slots=True)
class ConstraintVerdict:
    """One constraint: both sides and the reason, in words."""

    constraint: Constraint
    holds: bool
    present: bool
    value: Value
    why: str

    def to_json(self) -> dict[str, object]:
        said: dict[str, object] = {
            "constraint": print_constraint(self.constraint),
            "name": self.constraint.name,
            "holds": self.holds,
            "present": self.present,
            "why": self.why,
        }
        if self.present:
            said |= {"value": show_value(self.value), "value_type": type_name(self.value)}
        if self.constraint.inner is None and self.constraint.op is not Content.ANY:
            operand = self.constraint.value
            said |= {"operand": show_value(operand), "operand_type": type_name(operand)}
        return said


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """One alternative: it holds when all its constraints do."""

    asked: Filter
    holds: bool
    constraints: tuple[ConstraintVerdict, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "filter": print_filter(self.asked),
            "holds": self.holds,
            "constraints": [verdict.to_json() for verdict in self.constraints],
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole: it holds when one alternative does."""

    subscription: Subscription
    holds: bool
    alternatives: tuple[FilterVerdict, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "subscription": print_subscription(self.subscription),
            "match": self.holds,
            "alternatives": [verdict.to_json() for verdict in self.alternatives],
        }


def explain(
    subscription: Subscription, notification: Notification, world: World = NOTHING_KNOWN
) -> Explanation:
    """Every constraint of every alternative, also after the first that decided."""
    alternatives = tuple(_explain_filter(f, notification, world) for f in subscription)
    return Explanation(subscription, any(v.holds for v in alternatives), alternatives)


def _explain_filter(asked: Filter, notification: Notification, world: World) -> FilterVerdict:
    verdicts = tuple(_explain_constraint(c, notification, world) for c in asked)
    return FilterVerdict(asked, all(v.holds for v in verdicts), verdicts)


def _explain_constraint(
    constraint: Constraint, notification: Notification, world: World
) -> ConstraintVerdict:
    holds = constraint_holds(constraint, notification, world)
    if constraint.name not in notification:
        why = f"there is no attribute '{constraint.name}', and an absent one satisfies nothing"
        return ConstraintVerdict(constraint, holds, False, None, why)
    value = notification[constraint.name]
    if constraint.inner is not None:
        why = _temporal_reason(constraint, notification, world, holds)
    else:
        why = _reason(constraint.op, value, constraint.value, world, holds)
    return ConstraintVerdict(constraint, holds, True, value, why)


def _temporal_reason(
    constraint: Constraint, notification: Notification, world: World, holds: bool
) -> str:
    if isinstance(world.history, AskedHistory):
        return temporal_reason(world.history, constraint, notification)
    return "the history has such an event" if holds else "the history has no such event"


def _reason(op: Operator, value: Value, operand: Value, world: World, holds: bool) -> str:
    if isinstance(op, BagOp):
        return _bag_reason(op, value, operand, world, holds)
    if isinstance(op, Content):
        return _content_reason(op, value, operand, holds)
    if isinstance(op, Related | Semantic):
        return _semantic_reason(op, value, operand, world, holds=holds)
    raise TypeError(f"{op!r} has its reason from the history")


def _semantic_reason(
    op: Semantic | Related, value: Value, operand: Value, world: World, *, holds: bool
) -> str:
    verb = f"related by {op.property} to" if isinstance(op, Related) else _VERBS[op]
    no = "" if holds else "not "
    said = f"{show_value(value)} is {no}{verb} {show_value(operand)}"
    path = _path(op, value, operand, world)
    return f"{said}: {path}" if path else said


def _path(op: Operator, value: Value, operand: Value, world: World) -> str:
    """How the knowledge came to its answer, if it can tell."""
    if not isinstance(op, Semantic | Related):
        return ""
    if isinstance(value, Bag) or isinstance(operand, Bag):
        return "a bag is no term"
    known = world.knowledge
    return known.why(op, value, operand) if isinstance(known, Reasoned) else ""


def _content_reason(op: Content, value: Value, operand: Value, holds: bool) -> str:
    if op is Content.ANY:
        return "the attribute is there"
    left, right = show_value(value), show_value(operand)
    if op in STRING_OPERATORS and not (isinstance(value, str) and isinstance(operand, str)):
        return f"'{op.text}' holds between strings only, not {_types(value, operand)}"
    if is_nan(value) or is_nan(operand):
        return "NaN equals nothing and has no order"
    if op in ORDERINGS:
        if type_class(value) != type_class(operand):
            return f"{_types(value, operand)} have no order"
        if value is None or not isinstance(value, bool | int | float | str):
            return f"a {type_name(value)} has no order"
    if op in (Content.EQ, Content.NE) and type_class(value) != type_class(operand):
        return f"{_types(value, operand)} are never equal"
    said = f"{left} {op.text} {right} is {'true' if holds else 'false'}"
    if type_name(value) != type_name(operand):
        said += f" (a {type_name(value)} and a {type_name(operand)}, compared exactly)"
    return said


def _bag_reason(op: BagOp, value: Value, operand: Value, world: World, holds: bool) -> str:
    values, targets = members_of(value), members_of(operand)
    if op.kind is BagKind.BAGEQ and len(values) != len(targets):
        return f"the bags have {len(values)} and {len(targets)} members"
    sub = op.sub or Content.EQ

    def pair(v: Scalar, t: Scalar) -> bool:
        return value_holds(sub, v, t, world.knowledge)

    swapped = op.kind is BagKind.SUPERBAG
    if swapped:
        needy, offered = targets, values
        partners = pairing(targets, values, lambda t, v: pair(v, t))
    else:
        needy, offered = values, targets
        partners = pairing(values, targets, pair)

    def paired(member: Scalar, partner: Scalar) -> str:
        v, t = (partner, member) if swapped else (member, partner)
        path = _path(sub, v, t, world)
        return f"{show_value(member)} with {show_value(partner)}{f' ({path})' if path else ''}"

    said = [
        paired(member, offered[at])
        for member, at in zip(needy, partners, strict=True)
        if at is not None
    ]
    alone = [show_value(m) for m, at in zip(needy, partners, strict=True) if at is None]
    text = "paired " + ", ".join(said) if said else "nothing paired"
    if holds:
        return text if said else "there is nothing to pair"
    return f"{text}; no partner of its own left for {', '.join(alone)}"


def _types(value: Value, operand: Value) -> str:
    return f"a {type_name(value)} and a {type_name(operand)}"
