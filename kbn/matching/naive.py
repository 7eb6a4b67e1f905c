"""The definition of matching.

A subscription matches when one of its filters does; a filter matches when all
its constraints hold; a constraint holds when the attribute is there and its
value stands in the operator's relation to the operand. Nothing is clever here,
and nothing may become so: every other matcher is tested against this one.
"""

from __future__ import annotations

from kbn.matching.bag import bags_pair
from kbn.matching.content import content_holds
from kbn.matching.world import NOTHING_KNOWN, Knowledge, World
from kbn.model.filters import Constraint, Filter, Subscription
from kbn.model.notifications import Notification
from kbn.model.operators import BagOp, Content, Operator, Related, Semantic
from kbn.model.values import Bag, Scalar, Value, members_of


def matches(
    subscription: Subscription, notification: Notification, world: World = NOTHING_KNOWN
) -> bool:
    """Whether any alternative matches."""
    return any(filter_matches(f, notification, world) for f in subscription)


def filter_matches(
    asked: Filter, notification: Notification, world: World = NOTHING_KNOWN
) -> bool:
    """Whether every constraint holds."""
    return all(constraint_holds(c, notification, world) for c in asked)


def constraint_holds(
    constraint: Constraint, notification: Notification, world: World = NOTHING_KNOWN
) -> bool:
    """Whether the attribute is there and stands in the relation asked for.

    A temporal constraint is a question to the history about this notification.
    """
    if constraint.name not in notification:
        return False
    if constraint.inner is not None:
        return world.history.holds(constraint, notification)
    value = notification[constraint.name]
    return value_holds(constraint.op, value, constraint.value, world.knowledge)


def value_holds(op: Operator, value: Value, operand: Value, knowledge: Knowledge) -> bool:
    """Whether ``value op operand``, for any operator that is not temporal."""
    if isinstance(op, Content):
        return content_holds(op, value, operand)
    if isinstance(op, Semantic | Related):
        # Terms are scalars: a bag is no term, so it stands in no such relation.
        if isinstance(value, Bag) or isinstance(operand, Bag):
            return False
        return knowledge.holds(op, value, operand)
    if isinstance(op, BagOp):
        sub = op.sub or Content.EQ

        def pair(v: Scalar, t: Scalar) -> bool:
            return value_holds(sub, v, t, knowledge)

        return bags_pair(op.kind, pair, members_of(value), members_of(operand))
    raise TypeError(f"{op!r} is temporal: it is asked of the history")
