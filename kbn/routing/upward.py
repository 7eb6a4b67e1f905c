"""What a broker asks of its master: the maximal filters of its own subscribers.

Law: at any time the filters forwarded and not withdrawn together cover every
unit in the table. A newly exposed filter is forwarded before what covered it is
withdrawn, so nothing is lost in between. Constraints that only this broker can
decide (temporal ones, and semantic ones while ontologies may differ) travel
widened to ``name any``. While both know the same, semantic ones travel with their
terms written out; they are compared by equality, so that what covers what does not
depend on an ontology that may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kbn.covering.canonical import NEVER, canonical
from kbn.covering.poset import CoveringForest
from kbn.knowledge.hierarchy import Hierarchy
from kbn.knowledge.hierarchy.speaking import absolute
from kbn.model.filters import (
    Constraint,
    Filter,
    Subscription,
    constraints_within,
    needs_ontology,
)
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
        #: The keys in the forest of each unit's filters.
        self._keys: dict[int, list[int]] = {}
        self._next = 0
        self._wanted = history_filters if history else plain_filters
        #: What the master knows too, so that terms may travel; None: they are widened.
        self.speaking: Hierarchy | None = None

    def __bool__(self) -> bool:
        return bool(self._keys)

    def apply(self, change: Change[Any]) -> Shift:
        """Follow one change of the table; additions before removals."""
        before: dict[Filter, bool] = {}
        for unit in change.added:
            if unit.options.hops:
                self._add(unit, before)
        for unit in change.removed:
            self._drop(self._keys.pop(unit.number, []), before)
        return self._shift(before)

    def say_anew(self, units: Iterable[Unit[Any]]) -> Shift:
        """Ask for these units as ``speaking`` is now; those that are not held are skipped."""
        before: dict[Filter, bool] = {}
        for unit in units:
            old = self._keys.pop(unit.number, None)
            if old is not None:
                self._add(unit, before)
                self._drop(old, before)
        return self._shift(before)

    def _add(self, unit: Unit[Any], before: dict[Filter, bool]) -> None:
        keys = self._keys[unit.number] = []
        for asked in self._wanted(unit, self.speaking):
            self._next += 1
            keys.append(self._next)
            self._note(self._forest.add(self._next, asked), before)

    def _drop(self, keys: Iterable[int], before: dict[Filter, bool]) -> None:
        for key in keys:
            self._note(self._forest.remove(key), before)

    def _shift(self, before: dict[Filter, bool]) -> Shift:
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


class Root(NamedTuple):
    """A filter to be asked of the master, and the ttl to say it with."""

    asked: Filter
    ttl: int


class RootShift(NamedTuple):
    """First forward, then withdraw."""

    forward: tuple[Root, ...]
    withdraw: tuple[Root, ...]


class UpwardPosets:
    """The maximal filters of the table among those that may travel equally far.

    One that travels further is never hidden by a wider one that does not: the brokers
    beyond would not hear of it.
    """

    def __init__(self, *, history: bool = False) -> None:
        self._history = history
        #: By the hops that the units in it have left.
        self._posets: dict[int, UpwardFilters] = {}
        self._speaking: Hierarchy | None = None

    @property
    def speaking(self) -> Hierarchy | None:
        """What the master knows too, so that terms may travel; None: they are widened."""
        return self._speaking

    @speaking.setter
    def speaking(self, known: Hierarchy | None) -> None:
        self._speaking = known
        for poset in self._posets.values():
            poset.speaking = known

    def apply(self, change: Change[Any]) -> RootShift:
        """Follow one change of the table; additions before removals."""
        parts: dict[int, tuple[list[Unit[Any]], list[Unit[Any]]]] = {}
        for side, units in enumerate(change):
            for unit in units:
                parts.setdefault(unit.options.hops, ([], []))[side].append(unit)
        shifts: dict[int, Shift] = {}
        for hops, (added, removed) in parts.items():
            poset = self._posets.get(hops)
            if poset is None:
                poset = self._posets[hops] = UpwardFilters(history=self._history)
                poset.speaking = self._speaking
            shifts[hops] = poset.apply(Change(tuple(added), tuple(removed)))
            if not poset:
                del self._posets[hops]
        return _joined(shifts)

    def say_anew(self, units: Sequence[Unit[Any]]) -> RootShift:
        """Ask for these units as ``speaking`` is now; those that are not held are skipped."""
        return _joined({hops: poset.say_anew(units) for hops, poset in self._posets.items()})

    def roots(self) -> tuple[Root, ...]:
        """All maximal filters, for a master that knows none of them."""
        return tuple(Root(f, hops) for hops, poset in self._posets.items() for f in poset.roots())


def _joined(shifts: dict[int, Shift]) -> RootShift:
    return RootShift(
        tuple(Root(f, hops) for hops, shift in shifts.items() for f in shift.forward),
        tuple(Root(f, hops) for hops, shift in shifts.items() for f in shift.withdraw),
    )


def plain_filters(unit: Unit[Any], speaking: Hierarchy | None = None) -> tuple[Filter, ...]:
    """What the subscribers of a unit are to be told of."""
    return () if unit.options.history else upward_filters(unit.asked, speaking)


def history_filters(unit: Unit[Any], speaking: Hierarchy | None = None) -> tuple[Filter, ...]:
    """What must be remembered for a unit: the inner filters of every level.

    A relation is decided at the END of an event and needs its START, which may say
    nothing else of it, so every START is remembered. The history unit of a child
    broker asks for its own alternatives.
    """
    if unit.options.history:
        return upward_filters(unit.asked, speaking)
    within = [c for c in constraints_within(unit.asked) if c.inner is not None]
    found = [f for c in within if c.inner is not None for f in upward_filters(c.inner, speaking)]
    if any(isinstance(c.op, Relation) for c in within):
        found.append(_EVERY_START)
    return tuple(dict.fromkeys(found))


_EVERY_START = Filter([Constraint(PUB_TYPE, BagOp(BagKind.SUPERBAG), Bag(["START"]))])


def upward_filters(asked: Subscription, speaking: Hierarchy | None = None) -> tuple[Filter, ...]:
    """The alternatives as the master may decide them; contradictory ones are left out."""
    if any(c.inner is not None for alternative in asked for c in alternative):
        asked = _widened(asked, lambda c: c.inner is not None)
    if needs_ontology(asked):
        asked = without_terms(asked) if speaking is None else absolute(asked, speaking)
    form = canonical(asked)
    return () if form == NEVER else form.alternatives


def without_terms(asked: Subscription) -> Subscription:
    """Wider: whatever asks about terms asks only for the attribute's presence."""
    return _widened(
        asked,
        lambda c: is_semantic(c.op) or (c.inner is not None and needs_ontology(c.inner)),
    )


def _widened(asked: Subscription, ours: Callable[[Constraint], bool]) -> Subscription:
    return Subscription(
        Filter(Constraint(c.name, Content.ANY) if ours(c) else c for c in alternative)
        for alternative in asked
    )
