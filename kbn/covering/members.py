"""What the constraints on one name say about the members of its value.

``within`` and ``holding`` give bags by equality of members: the value has no member
beyond a bag of the first kind, and all members of a bag of the second. A plain value
is a bag of one. Law: with ordinary members, ``subbag T`` follows only from a bag
``within`` that T contains, and ``superbag T`` only from one ``holding`` that contains T.

*Ordinary* members are those that no ordering can single out: ``superbag[>] [false]``
holds ``true``, and ``<= ""`` leaves one string. Bools, the empty string and the
infinities are therefore not ordinary.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from kbn.covering.filters import NameFacts
from kbn.covering.semantic import SemanticOp
from kbn.matching.content import equality_key
from kbn.model.operators import BagKind, Content
from kbn.model.values import Bag, Scalar, Value, identity, members_of


def within(held: NameFacts) -> Iterator[Sequence[Scalar]]:
    """Bags beyond which the value has no member."""
    return _bags(held, BagKind.SUBBAG)


def holding(held: NameFacts) -> Iterator[Sequence[Scalar]]:
    """Bags of which the value has every member."""
    return _bags(held, BagKind.SUPERBAG)


def _bags(held: NameFacts, kind: BagKind) -> Iterator[Sequence[Scalar]]:
    if held.region.single:
        yield members_of(held.region.point)
    for fact in held.bags:
        if fact.sub is Content.EQ and fact.kind in (kind, BagKind.BAGEQ):
            yield fact.targets


def key(member: Scalar) -> Hashable | None:
    """What equal members have in common; None if the member is not ordinary."""
    if isinstance(member, bool) or member == "":
        return None
    if isinstance(member, float) and not math.isfinite(member):
        return None
    return equality_key(member)


def keys(members: Sequence[Scalar]) -> list[Hashable]:
    """Those of all members; none unless all are ordinary."""
    found = [key(member) for member in members]
    return [] if None in found else found


def value_key(value: Value) -> Hashable:
    """What values that ``=`` each other have in common, bags included; NaN has none."""
    if isinstance(value, Bag):
        return frozenset(Counter(map(equality_key, value)).items())
    return equality_key(value)


def term_key(said: tuple[SemanticOp, Value]) -> Hashable:
    """Equal for semantic constraints on one name that are the same."""
    op, operand = said
    return op, identity(operand)
