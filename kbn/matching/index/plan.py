"""What of a filter is looked up, what is searched by bounds, what is checked.

Law: a notification matches the filter exactly when it passes every step, lies
within every bound and satisfies every check; ``None`` stands for a filter that
nothing can match. Two filters with equal signatures match the same.

Light canonical form: duplicates go, bounds of one side of one name become the
tightest, constraints beside an ``=`` are decided now. ``!=`` and its semantic
sisters are satisfied by almost everything and so never lead to a filter. Cost:
linear in the number of constraints.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kbn.matching.content import NUMBER, STRING, content_holds, is_nan, type_class
from kbn.matching.index.equality import equals_nothing, multiset_key, value_key
from kbn.model.filters import Constraint, Filter
from kbn.model.operators import (
    ORDERINGS,
    STRING_OPERATORS,
    BagKind,
    BagOp,
    Content,
    Related,
    Semantic,
    is_semantic,
)
from kbn.model.values import Bag, identity, members_of

#: What names a branch family: an operator, or a bag kind for equality of members.
Family = Content | BagKind | Semantic | Related


class Step(NamedTuple):
    """One branch to follow: the family under a name, and the operand's key in it."""

    name: str
    family: Family
    key: Hashable
    #: To be asked where the family finds candidates only; None when it decides.
    constraint: Constraint | None = None


class Bound(NamedTuple):
    """``name op value`` for an ordering and a number or a string."""

    name: str
    op: Content
    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Plan:
    """A filter, sorted by how it will be found."""

    steps: tuple[Step, ...]
    bounds: tuple[Bound, ...]
    checks: tuple[Constraint, ...]

    @property
    def signature(self) -> Hashable:
        """Equal for filters that are the same but for order and repetition."""
        where = [(step.name, step.family, step.key) for step in self.steps]
        return (_unordered(where), self.bounds, _unordered(self.checks))


def _unordered(things: Sequence[Hashable]) -> Hashable:
    """Equal for the same things in any order; a set costs 200 bytes, so not for one."""
    return frozenset(things) if len(things) > 1 else tuple(things)


def plan_filter(asked: Filter) -> Plan | None:
    """The plan of a filter, or None if it contradicts itself."""
    fixed = _equalities(asked)
    if fixed is None:
        return None
    work = _Sorting()
    for name, constraint in fixed.items():
        work.steps[name, Content.EQ, value_key(constraint.value)] = None
    for constraint in asked:
        held = fixed.get(constraint.name)
        if held is not None and isinstance(constraint.op, Content):
            # Equal values satisfy the same content operators, so it is decided.
            if not content_holds(constraint.op, held.value, constraint.value):
                return None
        elif not work.sort(constraint):
            return None
    return work.plan()


def _equalities(asked: Filter) -> dict[str, Constraint] | None:
    """The ``=`` of each name, or None if two disagree or one can never hold."""
    fixed: dict[str, Constraint] = {}
    for constraint in asked:
        if constraint.op is not Content.EQ:
            continue
        known = fixed.setdefault(constraint.name, constraint)
        if equals_nothing(constraint.value) or (
            value_key(known.value) != value_key(constraint.value)
        ):
            return None
    return fixed


class _Sorting:
    """The three heaps while a filter is sorted into them; each keeps no repetition."""

    def __init__(self) -> None:
        self.steps: dict[tuple[str, Family, Hashable], Constraint | None] = {}
        self.bounds: dict[tuple[str, bool, str], Bound] = {}
        self.checks: dict[Constraint, None] = {}
        self.present: dict[str, None] = {}

    def sort(self, constraint: Constraint) -> bool:
        """Put it on its heap; False if it can never hold."""
        op = constraint.op
        if isinstance(op, Content):
            return self._content(op, constraint)
        if isinstance(op, BagOp) and op.sub in (None, Content.EQ):
            return self._bag(op.kind, constraint)
        if isinstance(op, Semantic | Related):
            if isinstance(constraint.value, Bag):
                return False
            if op not in (Semantic.NOT_EQUIVALENT, Semantic.IS_NOT_A):
                self.steps[constraint.name, op, identity(constraint.value)] = constraint
                return True
        self.checks[constraint] = None
        return True

    def _content(self, op: Content, constraint: Constraint) -> bool:
        name, operand = constraint.name, constraint.value
        if op is Content.ANY:
            self.present[name] = None
        elif op in STRING_OPERATORS:
            if not isinstance(operand, str):
                return False
            self.steps[name, op, operand] = None
        elif op in ORDERINGS:
            kind = type_class(operand)
            if kind not in (NUMBER, STRING):
                self.checks[constraint] = None  # bools are too few to be sorted
            elif is_nan(operand):
                return False
            else:
                self._bound(Bound(name, op, kind, operand))
        else:
            self.checks[constraint] = None
        return True

    def _bound(self, new: Bound) -> None:
        upper = new.op in (Content.LT, Content.LE)
        side = (new.name, upper, new.kind)
        old = self.bounds.get(side)
        if old is not None:
            if old.value == new.value:
                new = new if new.op in (Content.LT, Content.GT) else old
            elif (old.value < new.value) == upper:
                new = old
        self.bounds[side] = new

    def _bag(self, kind: BagKind, constraint: Constraint) -> bool:
        members = members_of(constraint.value)
        if any(map(is_nan, members)):
            self.checks[constraint] = None
        elif kind is BagKind.SUPERBAG and not members:
            self.present[constraint.name] = None  # every value is a superbag of []
        else:
            self.steps[constraint.name, kind, multiset_key(members)] = constraint
        return True

    def plan(self) -> Plan:
        bounds = sorted(self.bounds.values(), key=lambda b: (b.name, b.op.text, b.kind))
        for bound in bounds[2:]:  # beyond two, comparing beats searching
            self.checks[Constraint(bound.name, bound.op, bound.value)] = None
        del bounds[2:]
        checks = sorted(self.checks, key=_price)
        named = {name for name, _, _ in self.steps} | {bound.name for bound in bounds}
        waiting = self.present.keys() - named - {check.name for check in checks}
        if not named and not waiting and checks:
            waiting = {checks[0].name}  # at least those who do not say the name are spared
        for name in waiting:
            self.steps[name, Content.ANY, None] = None
        steps = tuple(Step(*where, constraint) for where, constraint in self.steps.items())
        return Plan(steps, tuple(bounds), tuple(checks))


def _price(check: Constraint) -> int:
    """The order of asking: what is cheap to decide may spare what is dear."""
    if check.inner is not None:
        return 3
    return 2 if is_semantic(check.op) else int(isinstance(check.op, BagOp))
