"""The door of the index: subscriptions come and go, publications are matched.

Law: ``match(n, world)`` is the set of keys k with ``naive.matches(s_k, n, world)``.
Equal filters, whoever asks and in whatever order of constraints, are one entry.

A filter lies under its steps, the most telling first: ``=`` on the name that has
the most different operands, then the other families. Cost of ``match``: the
nodes reached, a bisection or two per shape in them, the slices of the answer,
and the checks of what is left. Cost of ``add`` and ``remove``: the filter's
length, plus a move within a block; nothing is rebuilt.
Source: access predicates after Fabret, Llirbat, Pereira and Shasha (2000).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from kbn.matching.index.checks import Check, Checks, Probe
from kbn.matching.index.node import Node
from kbn.matching.index.plan import Family, Step, plan_filter
from kbn.matching.index.semantic import SLICE, Terms
from kbn.matching.index.stores import Entry, Slot
from kbn.matching.world import NOTHING_KNOWN, Knowledge, World
from kbn.model.filters import Filter, Subscription
from kbn.model.notifications import Notification
from kbn.model.operators import BagKind, Content, Related, Semantic

#: Which family is followed first; semantic operators stand between bags and substring.
_TELLING: dict[Any, int] = {
    Content.EQ: 0,
    Content.PREFIX: 1,
    Content.SUFFIX: 1,
    BagKind.BAGEQ: 2,
    BagKind.SUBBAG: 2,
    BagKind.SUPERBAG: 2,
    Content.CONTAINS: 4,
    Content.ANY: 5,
}


class PredicateIndex:
    """Subscriptions by key, found by what a notification says.

    A key stands for one subscription of one subscriber and is in an answer at
    most once. Any hashable will do; an object that hashes by identity, such as
    the subscription's own record, is the fastest and needs no second look-up.
    """

    __slots__ = ("_checks", "_entries", "_operands", "_root", "_units")

    def __init__(self) -> None:
        self._root = Node()
        self._checks = Checks()
        self._entries: dict[Hashable, Entry] = {}
        #: Every key, with the entries of those of its alternatives that can match.
        self._units: dict[Hashable, tuple[Entry, ...]] = {}
        #: How many entries ask ``=`` of a name, by operand: what tells filters apart.
        self._operands: dict[str, dict[Hashable, int]] = {}

    def __len__(self) -> int:
        return len(self._units)

    def __contains__(self, key: object) -> bool:
        return key in self._units

    @property
    def distinct_filters(self) -> int:
        """How many different filters the subscriptions share."""
        return len(self._entries)

    def add(self, key: Hashable, subscription: Subscription) -> None:
        """Take a subscription in. Raises ``ValueError`` if the key is there already."""
        if key in self._units:
            raise ValueError(f"the key {key!r} is in the index already")
        entries = {self._entry(asked): None for asked in subscription}
        held = tuple(entry for entry in entries if entry is not None)
        self._units[key] = held
        for entry in held:
            entry.keys.add(key)
            if len(entry.keys) == 1:
                self._insert(entry)
            elif entry.store is not None:
                entry.store.settle(entry.at)
            if entry.termed:
                self._touch(entry)

    def remove(self, key: Hashable) -> None:
        """Give a subscription up. Raises ``KeyError`` if the key is not there."""
        for entry in self._units.pop(key):
            if entry.termed:
                self._touch(entry)
            entry.keys.remove(key)
            if not entry.keys:
                self._delete(entry)
            elif entry.store is not None:
                entry.store.settle(entry.at)

    def match(self, notification: Notification, world: World = NOTHING_KNOWN) -> set[Hashable]:
        """The keys of all subscriptions that match, each once; the set is the caller's.

        Raises what the world raises when a filter asks it something it cannot answer.
        """
        attributes = notification.attributes
        probe = Probe(notification, world)
        keys: set[Hashable] = set()
        slots: list[Slot] = []
        reached = [self._root]
        for node in reached:  # grows while it is walked
            if node.slot is not None:
                slots.append(node.slot)
            if node.sides:
                node.collect(attributes, keys.update, slots.extend)
            if node.forks:
                node.follow(attributes, probe, reached)
        for slot in slots:
            if slot.plain is not None:
                keys |= slot.plain.keys
            for entry in slot.checked or ():
                for check in entry.checks:
                    if not probe.holds(check):
                        break
                else:
                    keys |= entry.keys
        return keys

    def prepare(self, knowledge: Knowledge) -> Iterator[None]:
        """Make ready to be asked under other knowledge, beside what is known now.

        To be walked to its end, in slices; subscriptions may come and go in between.
        Without it the first match under the new knowledge pays for all.
        """
        ready: set[Terms[Node]] = set()
        for at, entry in enumerate(list(self._entries.values()), 1):
            if entry.termed and self._entries.get(entry.signature) is entry:
                for terms in self._terms(entry):
                    if terms not in ready:
                        ready.add(terms)
                        yield from terms.prepare(knowledge)
            if at % SLICE == 0:
                yield

    def _terms(self, entry: Entry) -> list[Terms[Node]]:
        """The semantic branches on the way to an entry."""
        found: list[Terms[Node]] = []
        node = self._root
        for step, _ in entry.steps:
            if isinstance(step.family, Semantic | Related) and node.forks is not None:
                family = node.forks[step.name].families[step.family]
                assert isinstance(family, Terms)
                found.append(family)
            node = node.child(step)
        return found

    def _entry(self, asked: Filter) -> Entry | None:
        """The entry of this filter, new if nobody asked it before; None: nothing matches."""
        plan = plan_filter(asked)
        if plan is None:
            return None
        signature = plan.signature
        entry = self._entries.get(signature)
        if entry is None:
            entry = self._entries[signature] = Entry(plan, signature)
        return entry

    def _insert(self, entry: Entry) -> None:
        plan = entry.plan
        for step in plan.steps:
            if step.family is Content.EQ:
                counts = self._operands.setdefault(step.name, {})
                counts[step.key] = counts.get(step.key, 0) + 1
        entry.steps = tuple((step, self._check(step)) for step in self._ordered(plan.steps))
        entry.checks = tuple(map(self._checks.acquire, plan.checks))
        entry.termed = any(isinstance(step.family, Semantic | Related) for step in plan.steps)
        node = self._root
        for step, check in entry.steps:
            node = node.down(step, check)
        node.put(entry)

    def _delete(self, entry: Entry) -> None:
        way = [self._root]
        for step, _ in entry.steps:
            way.append(way[-1].child(step))
        way[-1].take(entry)
        for step, _ in reversed(entry.steps):
            if way.pop():
                break
            way[-1].cut(step)
        for check in (*(check for _, check in entry.steps), *entry.checks):
            if check is not None:
                self._checks.release(check)
        for step, _ in entry.steps:
            if step.family is Content.EQ:
                self._forget_operand(step)
        del self._entries[entry.signature]

    def _touch(self, entry: Entry) -> None:
        """Tell the semantic operators on the way that this entry is changing."""
        node = self._root
        for step, _ in entry.steps:
            node.touch(step)
            node = node.child(step)

    def _check(self, step: Step) -> Check | None:
        return None if step.constraint is None else self._checks.acquire(step.constraint)

    def _ordered(self, steps: tuple[Step, ...]) -> list[Step]:
        """The most telling step first; decided once per entry, so that it is found again."""
        return sorted(steps, key=lambda s: (_telling(s.family), -self._variety(s), s.name))

    def _variety(self, step: Step) -> int:
        return len(self._operands[step.name]) if step.family is Content.EQ else 0

    def _forget_operand(self, step: Step) -> None:
        counts = self._operands[step.name]
        counts[step.key] -= 1
        if not counts[step.key]:
            del counts[step.key]
            if not counts:
                del self._operands[step.name]


def _telling(family: Family) -> int:
    return _TELLING.get(family, 3)
