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
from kbn.model.filters import Constraint, Filter, Subscription
from kbn.model.operators import Content, is_semantic
from kbn.routing.table import Change


class Shift(NamedTuple):
    """First forward, then withdraw."""

    forward: tuple[Filter, ...]
    withdraw: tuple[Filter, ...]


class UpwardFilters:
    """The maximal filters of the table, kept as it changes."""

    def __init__(self) -> None:
        self._forest = CoveringForest()
        self._parts: dict[int, int] = {}

    def apply(self, change: Change[Any]) -> Shift:
        """Follow one change of the table; additions before removals."""
        before: dict[Filter, bool] = {}
        for unit in change.added:
            widened = upward_filters(unit.asked)
            self._parts[unit.number] = len(widened)
            for part, asked in enumerate(widened):
                self._note(self._forest.add((unit.number, part), asked), before)
        for unit in change.removed:
            for part in range(self._parts.pop(unit.number)):
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
