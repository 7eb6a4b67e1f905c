"""Bag constraints: an injective pairing against another.

Law, where ``(o t)`` covers ``(p u)`` as constraints on one member:

- SUBBAG[o] T covers SUBBAG[p] U and BAGEQ[p] U if U injects into T so;
- SUPERBAG[o] T covers SUPERBAG[p] U and BAGEQ[p] U if T injects into U so;
- BAGEQ[o] T covers BAGEQ[p] U if there is such a bijection.

Each is sound because injections compose. A plain value is a bag of one, so a
bag constraint also follows from one value that is known, and from a region that
holds no bag when one member of the operand is covered. Cost: that of matching
the two operands as bags where one content operator decides ``(o t)`` against
``(p u)``, else |T| |U| coverings of members and a bipartite matching.
"""

from __future__ import annotations

from collections.abc import Sequence

from kbn.covering.content import follows
from kbn.covering.region import Region, Test
from kbn.covering.semantic import SemanticOp, TermOrder, pair_covers, semantic_follows
from kbn.matching.bag import bag_holds, bags_pair
from kbn.matching.content import is_nan
from kbn.matching.naive import value_holds
from kbn.model.operators import BagKind, BagOp, Content, Simple
from kbn.model.values import Bag, Scalar, Value, members_of

SUBBAG, SUPERBAG, BAGEQ = BagKind.SUBBAG, BagKind.SUPERBAG, BagKind.BAGEQ

#: (o, p) → r such that (o t) covers (p u) exactly when u r t, bools and NaN aside.
_MEMBERWISE: dict[tuple[Content, Content], Content] = {
    (Content.LT, Content.LT): Content.LE,
    (Content.LE, Content.LT): Content.LE,
    (Content.LE, Content.LE): Content.LE,
    (Content.LT, Content.LE): Content.LT,
    (Content.GT, Content.GT): Content.GE,
    (Content.GE, Content.GT): Content.GE,
    (Content.GE, Content.GE): Content.GE,
    (Content.GT, Content.GE): Content.GT,
    (Content.NE, Content.NE): Content.EQ,
    (Content.PREFIX, Content.PREFIX): Content.PREFIX,
    (Content.SUFFIX, Content.SUFFIX): Content.SUFFIX,
    (Content.CONTAINS, Content.CONTAINS): Content.CONTAINS,
}


class BagFact:
    """A bag constraint of the covered side, read once."""

    __slots__ = ("contradictory", "kind", "plain", "regions", "sub", "targets")

    kind: BagKind
    sub: Simple
    #: The operand's members; under SUBBAG without those that no value can be paired with.
    targets: tuple[Scalar, ...]
    #: What ``sub`` leaves possible for the partner of each target; empty for equality
    #: and for semantic operators, which need none.
    regions: tuple[Region, ...]
    #: Some target can have no partner, and must have one.
    contradictory: bool
    #: No bool and no NaN among the targets.
    plain: bool

    def __init__(self, op: BagOp, operand: Value) -> None:
        self.kind = op.kind
        self.sub = op.sub or Content.EQ
        targets = members_of(operand)
        regions: list[Region] = []
        kept = targets
        if self.sub is Content.EQ:
            kept = tuple(t for t in targets if not is_nan(t))
        elif isinstance(self.sub, Content):
            read = [(t, Region(((self.sub, t),), scalar=True)) for t in targets]
            kept = tuple(t for t, region in read if not region.empty)
            regions = [region for _, region in read if not region.empty]
        self.contradictory = len(kept) < len(targets) and self.kind is not SUBBAG
        self.targets = kept
        self.regions = tuple(regions)
        self.plain = _plain(kept)

    @property
    def point(self) -> Bag | None:
        """The only value that satisfies the constraint, if there is only one."""
        if not self.targets and self.kind is not SUPERBAG:
            return Bag()
        if self.kind is BAGEQ and self.sub is Content.EQ and len(self.targets) != 1:
            return Bag(self.targets)
        return None

    @property
    def refuses_scalars(self) -> bool:
        """Whether no bag of one can satisfy the constraint."""
        size = len(self.targets)
        if self.kind is SUBBAG:
            return size == 0
        return size > 1 or (self.kind is BAGEQ and size == 0)

    @property
    def as_test(self) -> Test | None:
        """What the constraint says about a plain value, if one content test says it."""
        if len(self.targets) == 1 and isinstance(self.sub, Content):
            return (self.sub, self.targets[0])
        return None

    def guard(self, value: Value) -> bool:
        """Whether ``value`` may satisfy the constraint; a semantic one may always."""
        if not isinstance(self.sub, Content):
            return True
        return bag_holds(self.kind, self.sub, members_of(value), self.targets)


def bag_follows(
    op: BagOp,
    operand: Value,
    region: Region,
    bags: Sequence[BagFact],
    semantics: Sequence[tuple[SemanticOp, Value]],
    *,
    order: TermOrder | None,
) -> bool:
    """Whether the bag constraint follows from all that is asked of the same name."""
    if region.empty:
        return True
    targets = members_of(operand)
    if not targets and op.kind is SUPERBAG:
        return True
    sub = op.sub or Content.EQ
    if region.single:
        if isinstance(sub, Content):
            return bag_holds(op.kind, sub, members_of(region.point), targets)
        if order is not None:
            return value_holds(op, region.point, operand, order)
    if any(_covers(op.kind, sub, targets, fact, order) for fact in bags):
        return True
    if not region.scalar:
        return False
    if region.kind == "bool" and not region.single and isinstance(sub, Content):
        return all(bag_holds(op.kind, sub, (value,), targets) for value in (False, True))
    if op.kind is not SUBBAG and len(targets) != 1:
        return False
    return any(_scalar_follows(sub, target, region, semantics, order) for target in targets)


def _scalar_follows(
    sub: Simple,
    target: Scalar,
    region: Region,
    semantics: Sequence[tuple[SemanticOp, Value]],
    order: TermOrder | None,
) -> bool:
    if isinstance(sub, Content):
        return follows(sub, target, region)
    return semantic_follows(sub, target, region, semantics, order)


def _covers(
    kind: BagKind,
    sub: Simple,
    targets: tuple[Scalar, ...],
    held: BagFact,
    order: TermOrder | None,
) -> bool:
    """The three rules of the law; ``held`` is not contradictory."""
    if held.kind is not kind and held.kind is not BAGEQ:
        return False
    # Sizes first: pairing member by member is the dear part.
    small, large = len(held.targets), len(targets)
    if kind is SUPERBAG:
        small, large = large, small
    if small > large or (kind is BAGEQ and small != large):
        return False
    relation = _relation(sub, targets, held)
    if relation is not None:
        return bag_holds(kind, relation, held.targets, targets)
    ways = {
        (i, j)
        for i in range(len(held.targets))
        for j, target in enumerate(targets)
        if _member_covers(sub, target, held, i, order)
    }
    return bags_pair(
        kind, lambda i, j: (i, j) in ways, range(len(held.targets)), range(len(targets))
    )


def _relation(sub: Simple, targets: tuple[Scalar, ...], held: BagFact) -> Content | None:
    """The content operator that decides the covering of members, where there is one."""
    if sub is Content.ANY:
        return Content.ANY
    if not isinstance(sub, Content) or not isinstance(held.sub, Content):
        return None
    if held.sub is Content.EQ:
        return sub
    if held.plain and _plain(targets):
        return _MEMBERWISE.get((sub, held.sub))
    return None


def _member_covers(
    sub: Simple, target: Scalar, held: BagFact, i: int, order: TermOrder | None
) -> bool:
    """Whether ``(sub target)`` covers the i-th member constraint of ``held``."""
    if isinstance(sub, Content):
        return bool(held.regions) and follows(sub, target, held.regions[i])
    if isinstance(held.sub, Content):
        return (
            held.sub is Content.EQ
            and order is not None
            and order.holds(sub, held.targets[i], target)
        )
    return pair_covers(sub, target, held.sub, held.targets[i], order)


def _plain(members: Sequence[Scalar]) -> bool:
    return not any(isinstance(member, bool) or is_nan(member) for member in members)
