"""What a broker asks of its master: the maximal filters of its own subscribers.

Law: at any time the filters forwarded and not withdrawn together cover every
unit in the table. A newly exposed filter is forwarded before what covered it is
withdrawn, so nothing is lost in between. Constraints that only this broker can
decide (temporal ones, and semantic ones while ontologies may differ) travel
widened to ``name any``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kbn.covering.canonical import NEVER, canonical
from kbn.covering.poset import CoveringForest
from kbn.model.filters import Constraint, Filter, Subscription, constraints_within
from kbn.model.operators import BagKind, BagOp, Content, Relation, is_semantic
from kbn.model.time import PUB_TYPE
from kbn.model.values import Bag
from kbn.routing.table import Change, Unit


class Shift(NamedTuple):
    """First forward, then withdraw."""

    forward: tuple[Filter, ...]
    withdraw: tuple[Filter, ...]


class UpwardFilters:
    """The maximal filters of the table, kept as it changes.

    Two of them per link, which never cover each other: what subscribers ask, and
    (``history``) what must be remembered for it.
    """

    def __init__(self, *, history: bool = False) -> None:
        self._forest = CoveringForest()
        self._parts: dict[int, int] = {}
        self._wanted = history_filters if history else plain_filters

    def apply(self, change: Change[Any]) -> Shift:
        """Follow one change of the table; additions before removals."""
        before: dict[Filter, bool] = {}
        for unit in change.added:
            if unit.options.local:
                continue
            widened = self._wanted(unit)
            self._parts[unit.number] = len(widened)
            for part, asked in enumerate(widened):
                self._note(self._forest.add((unit.number, part), asked), before)
        for unit in change.removed:
            for part in range(self._parts.pop(unit.number, 0)):
                self._note(self._forest.remove((unit.number, part)), before)
        is_root = self._forest.is_root
        forward = tuple(f for f, was in before.items() if not was and is_root(f))
        withdraw = tuple(f for f, was in before.items() if was and not is_root(f))
        return Shift(forward, withdraw)

    def roots(self) -> tuple[Filter, ...]:
        """All maximal filters, for a master that knows none of them."""
        return tuple(self._forest.roots())

    @staticmethod
    def _note(
        moved: tuple[Iterable[Filter], Iterable[Filter]], before: dict[Filter, bool]
    ) -> None:
        exposed, hidden = moved
        for asked in exposed:
            before.setdefault(asked, False)
        for asked in hidden:
            before.setdefault(asked, True)


def plain_filters(unit: Unit[Any]) -> tuple[Filter, ...]:
    """What the subscribers of a unit are to be told of."""
    return () if unit.options.history else upward_filters(unit.asked)


def history_filters(unit: Unit[Any]) -> tuple[Filter, ...]:
    """What must be remembered for a unit: the inner filters of every level.

    A relation is decided at the END of an event and needs its START, which may say
    nothing else of it, so every START is remembered. The history unit of a child
    broker asks for its own alternatives.
    """
    if unit.options.history:
        return upward_filters(unit.asked)
    within = [c for c in constraints_within(unit.asked) if c.inner is not None]
    found = [f for c in within if c.inner is not None for f in upward_filters(c.inner)]
    if any(isinstance(c.op, Relation) for c in within):
        found.append(_EVERY_START)
    return tuple(dict.fromkeys(found))


_EVERY_START = Filter([Constraint(PUB_TYPE, BagOp(BagKind.SUPERBAG), Bag(["START"]))])


def upward_filters(asked: Subscription) -> tuple[Filter, ...]:
    """The alternatives as the master may decide them; contradictory ones are left out."""
    if any(map(_is_ours, (c for alternative in asked for c in alternative))):
        asked = Subscription(Filter(map(_widen, alternative)) for alternative in asked)
    form = canonical(asked)
    return () if form == NEVER else form.alternatives


def _is_ours(constraint: Constraint) -> bool:
    """Whether only this broker can decide it."""
    return constraint.inner is not None or is_semantic(constraint.op)


def _widen(constraint: Constraint) -> Constraint:
    return Constraint(constraint.name, Content.ANY) if _is_ours(constraint) else constraint
