"""Filters of one shape in one node, sorted by their one or two bounds.

A *slot* is the place of one exact combination of bounds. Most slots hold one
filter of one subscriber and nothing to check: they lie *bare* in the sorted
structure, as the subscriber's key itself, so that a slice of it is a part of
the answer. The others lie *rich*, as the slot. Invariant: a slot is in exactly
one of the two structures, the one that ``Slot.bare`` tells.

Law: ``collect`` hands to ``take_keys`` and ``take_slots`` exactly the bare keys
and rich slots whose bounds the notification satisfies.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from kbn.matching.content import NUMBER, STRING, type_class
from kbn.matching.index.checks import Check
from kbn.matching.index.plan import Bound, Plan
from kbn.matching.index.sorted_bounds import COMPARE, UPPER, SortedBounds, Take
from kbn.matching.index.tiles import Tiles
from kbn.model.values import Value

#: What is of a class without a second look; subclasses need one.
_TYPES: dict[str, frozenset[type]] = {NUMBER: frozenset({int, float}), STRING: frozenset({str})}


class Entry:
    """A distinct filter: who asked for it, and what remains to be checked."""

    __slots__ = ("at", "checks", "keys", "plan", "signature", "steps", "store", "termed")

    def __init__(self, plan: Plan, signature: Hashable) -> None:
        self.plan = plan
        self.signature = signature
        self.keys: set[Hashable] = set()
        self.checks: tuple[Check, ...] = ()
        self.steps: tuple[tuple[Any, Check | None], ...] = ()
        self.termed = False  # whether a semantic operator is among the steps
        self.store: Line | Plane | None = None
        self.at: Any = None  # the slot's place in the store


class Slot:
    """The filters at one place: at most one without checks, any number with."""

    __slots__ = ("bare", "checked", "plain")

    def __init__(self) -> None:
        self.plain: Entry | None = None
        self.checked: dict[Entry, None] | None = None
        self.bare: bool | None = None

    def add(self, entry: Entry) -> None:
        if not entry.checks:
            self.plain = entry
        elif self.checked is None:
            self.checked = {entry: None}
        else:
            self.checked[entry] = None

    def discard(self, entry: Entry) -> None:
        if not entry.checks:
            self.plain = None
        elif self.checked is not None:
            del self.checked[entry]

    def entries(self) -> Iterator[Entry]:
        if self.plain is not None:
            yield self.plain
        yield from self.checked or ()

    def __bool__(self) -> bool:
        return self.plain is not None or bool(self.checked)


class _Store:
    """What lines and planes share: slots by place, each bare or rich."""

    __slots__ = ("_bare", "_rich", "_slots")

    _bare: Any
    _rich: Any

    def __init__(self) -> None:
        self._bare = self._structure()
        self._rich = None  # seldom needed, so made when it is
        self._slots: dict[Any, Slot] = {}

    def __bool__(self) -> bool:
        return bool(self._slots)

    def add(self, entry: Entry) -> None:
        """Put a new filter at its place, ``entry.at``."""
        slot = self._slots.get(entry.at)
        if slot is None:
            slot = self._slots[entry.at] = Slot()
        slot.add(entry)
        self.settle(entry.at)

    def discard(self, entry: Entry) -> None:
        """Take a filter from its place."""
        self._slots[entry.at].discard(entry)
        self.settle(entry.at)

    def entries(self) -> Iterator[Entry]:
        for slot in self._slots.values():
            yield from slot.entries()

    def settle(self, at: Any) -> None:
        """Move the slot to the structure where it now belongs.

        To be called whenever the slot or the keys of its filter have changed.
        """
        slot = self._slots[at]
        wanted = _bareness(slot)
        if slot.bare is wanted:
            return
        if slot.bare is not None:
            (self._bare if slot.bare else self._rich).remove(at)
        if wanted is None:
            del self._slots[at]
        elif wanted:
            assert slot.plain is not None
            self._bare.insert(at, *slot.plain.keys)
        else:
            if self._rich is None:
                self._rich = self._structure()
            self._rich.insert(at, slot)
        slot.bare = wanted

    def _structure(self) -> Any:
        raise AssertionError("every store has a structure")


def _bareness(slot: Slot) -> bool | None:
    """Whether the slot lies bare, or None if it is empty and lies nowhere."""
    if slot.checked:
        return False
    if slot.plain is None:
        return None
    return len(slot.plain.keys) == 1


class Line(_Store):
    """Filters with one bound."""

    __slots__ = ("_op",)

    _bare: SortedBounds
    _rich: SortedBounds | None

    def __init__(self, bound: Bound) -> None:
        self._op = bound.op
        super().__init__()

    def _structure(self) -> SortedBounds:
        return SortedBounds(self._op)

    def collect(
        self, x: Any, attributes: Mapping[str, Value], take_keys: Take, take_slots: Take
    ) -> None:
        self._bare.collect(x, take_keys)
        if self._rich is not None:
            self._rich.collect(x, take_slots)


class Plane(_Store):
    """Filters with two bounds."""

    __slots__ = ("_kind", "_name", "_ops", "_types")

    _bare: Tiles
    _rich: Tiles | None

    def __init__(self, first: Bound, second: Bound) -> None:
        self._ops = (first.op, second.op)
        self._name, self._kind = second.name, second.kind
        self._types = _TYPES[second.kind]
        super().__init__()

    def _structure(self) -> Tiles:
        return Tiles(*self._ops)

    def collect(
        self, x: Any, attributes: Mapping[str, Value], take_keys: Take, take_slots: Take
    ) -> None:
        y: Any = attributes.get(self._name)
        if (type(y) not in self._types and type_class(y) != self._kind) or y != y:  # noqa: PLR0124
            return
        self._bare.collect(x, y, take_keys)
        if self._rich is not None:
            self._rich.collect(x, y, take_slots)


class Side:
    """All stores of a node whose first bound is by one ordering on one name.

    Invariant: every first bound in them is at least as tight as ``_loosest``, so
    a value beyond that, such as one far from every alarm, is done at once. It
    does not tighten again when filters go.
    """

    __slots__ = ("_compare", "_kind", "_loosest", "_op", "_stores", "_types")

    def __init__(self, bound: Bound) -> None:
        self._op, self._kind = bound.op, bound.kind
        self._types = _TYPES[bound.kind]
        self._compare = COMPARE[bound.op]
        self._loosest = bound.value
        #: By the second bound's name, ordering and class; () for the line.
        self._stores: dict[tuple[object, ...], Line | Plane] = {}

    def __bool__(self) -> bool:
        return bool(self._stores)

    def is_of(self, bound: Bound) -> bool:
        """Whether filters with this first bound belong here."""
        return bound.op is self._op and bound.kind == self._kind

    def put(self, entry: Entry) -> None:
        """Lay a filter into its store."""
        first, *rest = entry.plan.bounds
        self._loosest = (max if first.op in UPPER else min)(self._loosest, first.value)
        shape = _shape(rest)
        store = self._stores.get(shape)
        if store is None:
            store = self._stores[shape] = Plane(first, rest[0]) if rest else Line(first)
        entry.store = store
        entry.at = (first.value, rest[0].value) if rest else first.value
        store.add(entry)

    def take(self, entry: Entry) -> None:
        """Take a filter out of its store."""
        store = entry.store
        assert store is not None
        store.discard(entry)
        if not store:
            del self._stores[_shape(entry.plan.bounds[1:])]

    def entries(self) -> Iterator[Entry]:
        for store in self._stores.values():
            yield from store.entries()

    def collect(
        self, x: Any, attributes: Mapping[str, Value], take_keys: Take, take_slots: Take
    ) -> None:
        """Hand over the bare keys and the rich slots within whose bounds it is."""
        if type(x) not in self._types and type_class(x) != self._kind:
            return
        if self._compare(x, self._loosest):  # never so for NaN
            for store in self._stores.values():
                store.collect(x, attributes, take_keys, take_slots)


def _shape(rest: Sequence[Bound]) -> tuple[object, ...]:
    return rest[0][:3] if rest else ()
