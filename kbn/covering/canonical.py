"""The canonical form: what the subscription table keeps instead of what it was given.

Law: ``canonical(s)`` matches exactly what ``s`` matches, under every history, and
``canonical(canonical(s)) == canonical(s)``. Constraints and alternatives are
sorted and held once, those that follow from the others are gone, alternatives
that nothing can match are gone, and operands have one spelling: ``1.0`` is ``1``,
a bag is sorted, ``subbag[=]`` is ``subbag``, a plain operand of a bag operator is a
bag of one. A subscription that nothing can match is ``NEVER``.

Equal canonical forms are equivalent; equivalent subscriptions may still differ
(``x <= 5 and x != 5`` beside ``x < 5``). What people are shown is the
subscription as they wrote it. Cost: one set of facts for each constraint on a
name that has several, and a covering for each pair of alternatives.
"""

from __future__ import annotations

from kbn.covering.filters import NameFacts, contradictory, filter_covers
from kbn.model.filters import Constraint, Filter, Subscription
from kbn.model.operators import BagOp, Content, Operator
from kbn.model.values import LONG_MAX, LONG_MIN, Bag, Scalar, Value, members_of

#: The canonical form of everything that cannot be matched: no value is below null.
NEVER = Subscription.of(Constraint("never", Content.LT, None))


def canonical(subscription: Subscription) -> Subscription:
    """The equivalent subscription that the law above describes."""
    # Asked of the tidy form, whose facts are remembered for whoever files it.
    possible = [f for f in map(_canonical_filter, subscription) if not contradictory(f)]
    if not possible:
        return NEVER
    if len(possible) == 1:
        return Subscription(possible)
    kept = sorted(dict.fromkeys(possible), key=repr)
    for candidate in tuple(kept):
        others = [other for other in kept if other is not candidate]
        if any(filter_covers(other, candidate) for other in others):
            kept = others
    return Subscription(kept)


def _canonical_filter(asked: Filter) -> Filter:
    by_name: dict[str, dict[Constraint, None]] = {}
    for constraint in asked:
        by_name.setdefault(constraint.name, {})[_canonical_constraint(constraint)] = None
    return Filter(
        constraint
        for name in sorted(by_name)
        for constraint in _without_implied(list(by_name[name]))
    )


def _without_implied(constraints: list[Constraint]) -> list[Constraint]:
    """Drop, one after the other, what follows from all the rest; until nothing does."""
    if len(constraints) == 1:
        return constraints
    kept = sorted(constraints, key=_key)
    changed = True
    while changed:
        changed = False
        for candidate in tuple(kept):
            rest = [other for other in kept if other is not candidate]
            if rest and NameFacts(rest).imply(candidate):
                kept = rest
                changed = True
    return kept


def _canonical_constraint(constraint: Constraint) -> Constraint:
    op = constraint.op
    if constraint.inner is not None:
        return Constraint(constraint.name, op, canonical(constraint.inner))
    if isinstance(op, BagOp):
        sub = None if op.sub is Content.EQ else op.sub
        members = members_of(constraint.value)
        if sub is None or isinstance(sub, Content):
            members = tuple(_canonical_scalar(member) for member in members)
        return Constraint(constraint.name, BagOp(op.kind, sub), _sorted_bag(members))
    if isinstance(op, Content):
        value = _canonical_value(constraint.value)
        if value is not constraint.value:
            return Constraint(constraint.name, op, value)
    return constraint


def _canonical_value(value: Value) -> Value:
    if isinstance(value, Bag):
        return _sorted_bag(tuple(_canonical_scalar(member) for member in value))
    return _canonical_scalar(value)


def _canonical_scalar(value: Scalar) -> Scalar:
    """A double that is a long is written as that long; this folds the two zeros too."""
    if isinstance(value, float) and value.is_integer() and LONG_MIN <= value <= LONG_MAX:
        return int(value)
    return value


def _sorted_bag(members: tuple[Scalar, ...]) -> Bag:
    return Bag(sorted(members, key=lambda member: (type(member).__name__, repr(member))))


def _key(constraint: Constraint) -> tuple[str, str]:
    op: Operator = constraint.op
    return (repr(op), repr(constraint.operand))
