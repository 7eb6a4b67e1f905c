"""The tree: nodes, their branches under attribute names, and what lies in them.

Law: a node is reached exactly by the notifications that pass every step on the
way to it; the filters in it are those with these steps. Steps are taken in one
order per filter, so a filter lies in one node only. Cost of a visit: one probe
per attribute the node asks about or the notification has, whichever are fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from kbn.matching.index.bags import Bageq, Subbag, Superbag
from kbn.matching.index.branches import Branches, Present
from kbn.matching.index.checks import Check, Probe
from kbn.matching.index.equality import value_key
from kbn.matching.index.plan import Family, Plan, Step
from kbn.matching.index.semantic import Terms
from kbn.matching.index.sorted_bounds import Take
from kbn.matching.index.stores import Entry, Side, Slot
from kbn.matching.index.strings import Contains, Prefix, Suffix
from kbn.model.operators import BagKind, Content, Related, Semantic
from kbn.model.values import Bag, Value

T = TypeVar("T")

_MISSING: Any = object()

_FAMILIES: dict[Family, Callable[[], Branches[Node]]] = {
    Content.PREFIX: Prefix,
    Content.SUFFIX: Suffix,
    Content.CONTAINS: Contains,
    Content.ANY: Present,
    BagKind.SUBBAG: Subbag,
    BagKind.SUPERBAG: Superbag,
    BagKind.BAGEQ: Bageq,
}


class Fork:
    """The branches under one attribute name: equality, and families by operator."""

    __slots__ = ("equal", "families")

    def __init__(self) -> None:
        self.equal: dict[Hashable, Node] = {}
        self.families: dict[Family, Branches[Node]] = {}

    def __bool__(self) -> bool:
        return bool(self.equal or self.families)

    def child(self, step: Step) -> Node | None:
        if step.family is Content.EQ:
            return self.equal.get(step.key)
        family = self.families.get(step.family)
        return None if family is None else family.child(step.key)

    def grow(self, step: Step, check: Check | None) -> Node:
        child = Node()
        if step.family is Content.EQ:
            self.equal[step.key] = child
            return child
        family = self.families.get(step.family)
        if family is None:
            family = self.families[step.family] = _family(step.family)
        family.grow(step.key, check, child)
        return child

    def cut(self, step: Step) -> None:
        if step.family is Content.EQ:
            del self.equal[step.key]
            return
        family = self.families[step.family]
        family.cut(step.key)
        if not len(family):
            del self.families[step.family]


class Node:
    """Where filters with the same steps lie, and where further steps begin.

    Invariant: no empty fork, side or slot is kept, nor a node without any.
    """

    __slots__ = ("forks", "sides", "slot")

    def __init__(self) -> None:
        self.forks: dict[str, Fork] | None = None
        self.sides: dict[str, list[Side]] | None = None
        self.slot: Slot | None = None

    def __bool__(self) -> bool:
        return bool(self.forks or self.sides or self.slot)

    def down(self, step: Step, check: Check | None) -> Node:
        """The child along this step, made if it is not there."""
        if self.forks is None:
            self.forks = {}
        fork = self.forks.get(step.name)
        if fork is None:
            fork = self.forks[step.name] = Fork()
        return fork.child(step) or fork.grow(step, check)

    def child(self, step: Step) -> Node:
        """The child along this step, which is there."""
        assert self.forks is not None
        child = self.forks[step.name].child(step)
        assert child is not None
        return child

    def cut(self, step: Step) -> None:
        """Take away the child along this step."""
        assert self.forks is not None
        fork = self.forks[step.name]
        fork.cut(step)
        if not fork:
            del self.forks[step.name]

    def touch(self, step: Step) -> None:
        """What lies along this step has changed."""
        assert self.forks is not None
        family = self.forks[step.name].families.get(step.family)
        if isinstance(family, Terms):
            family.touch(step.key)

    def entries(self) -> Iterator[Entry]:
        """The filters in this node, not those further down."""
        if self.slot is not None:
            yield from self.slot.entries()
        for sides in (self.sides or {}).values():
            for side in sides:
                yield from side.entries()

    def put(self, entry: Entry) -> None:
        """Lay a new filter into this node."""
        bounds = entry.plan.bounds
        if not bounds:
            self.slot = self.slot or Slot()
            self.slot.add(entry)
            return
        if self.sides is None:
            self.sides = {}
        sides = self.sides.setdefault(bounds[0].name, [])
        for side in sides:
            if side.is_of(bounds[0]):
                break
        else:
            side = Side(bounds[0])
            sides.append(side)
        side.put(entry)

    def take(self, entry: Entry) -> None:
        """Take a filter out of this node."""
        bounds = entry.plan.bounds
        if not bounds:
            assert self.slot is not None
            self.slot.discard(entry)
            self.slot = self.slot or None
            return
        assert self.sides is not None
        sides = self.sides[bounds[0].name]
        side = next(side for side in sides if side.is_of(bounds[0]))
        side.take(entry)
        if not side:
            sides.remove(side)
            if not sides:
                del self.sides[bounds[0].name]

    def collect(self, attributes: Mapping[str, Value], take_keys: Take, take_slots: Take) -> None:
        """Hand over what the bounds in this node let through: bare keys and slots."""
        assert self.sides is not None
        for name, sides in _either(self.sides, attributes):
            value = attributes.get(name)
            # null and an absent attribute are the same to an ordering
            if value is not None:
                for side in sides:
                    side.collect(value, attributes, take_keys, take_slots)

    def follow(self, attributes: Mapping[str, Value], probe: Probe, found: list[Node]) -> None:
        """Append the children that a notification reaches."""
        assert self.forks is not None
        for name, fork in _either(self.forks, attributes):
            value = attributes.get(name, _MISSING)
            if value is _MISSING:
                continue
            if fork.equal:
                # Strings and numbers are their own keys (see ``equality``).
                own = type(value) is not bool and not isinstance(value, Bag)
                child = fork.equal.get(value if own else value_key(value))
                if child is not None:
                    found.append(child)
            if fork.families:
                for family in fork.families.values():
                    found.extend(family.reach(value, probe))


def _either(asked: dict[str, T], attributes: Mapping[str, Value]) -> Iterable[tuple[str, T]]:
    """All that is asked, or only under names that are there, whichever is shorter to walk."""
    if len(asked) <= len(attributes):
        return asked.items()
    return [(name, asked[name]) for name in attributes if name in asked]


def _family(family: Family) -> Branches[Node]:
    if isinstance(family, Semantic | Related):
        return Terms(family, lay_together)
    return _FAMILIES[family]()


def lay_together(nodes: Collection[Node], most: int) -> tuple[list[Node], int] | None:
    """A few nodes that answer as all of these while nothing in them changes.

    Nodes with further branches stay themselves; the filters of the others are
    copied into one. None if that would be more than ``most`` keys.
    """
    held = 0
    whole = Node()
    kept: list[Node] = [whole]
    plain: dict[Any, Entry] = {}
    for node in nodes:
        if node.forks:
            kept.append(node)
            continue
        for entry in node.entries():
            held += len(entry.keys)
            if held > most:
                return None
            bounds = entry.plan.bounds
            copy = plain.get(bounds)
            if copy is None or entry.checks:
                copy = Entry(Plan((), bounds, ()), None)
                copy.checks = entry.checks
                if not entry.checks:
                    plain[bounds] = copy
            copy.keys |= entry.keys
            if entry.checks:
                whole.put(copy)
    for copy in plain.values():
        whole.put(copy)
    return kept, held
