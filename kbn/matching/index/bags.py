"""Bag operators under equality of members: from a bag to the bags around it.

With attribute bag V and operand bag T: V is a subbag of T only if T has *any
chosen* member of V, so T is filed under each of its members and V asks with one;
V is a superbag of T only if V has *any chosen* member of T, so T is filed under
its rarest and V asks with each. Candidates are verified by the operator itself
unless one member decides. Equal bags have equal keys. A scalar is a bag of one.

Cost: subbag one probe and its candidates, superbag |V| probes and theirs,
equality one probe. Other sub-operators have no such handle and are checks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from kbn.matching.index.branches import Keyed
from kbn.matching.index.checks import Check, Probe
from kbn.matching.index.equality import multiset_key, scalar_key
from kbn.model.values import Value, members_of

N = TypeVar("N")


class _Filed(NamedTuple, Generic[N]):
    """A child with its verification and the members it is filed under."""

    child: N
    check: Check
    members: tuple[Hashable, ...]
    #: How many members the operand has, repetitions included.
    size: int


class _ByMember(Generic[N]):
    """Children filed under members of their operand."""

    __slots__ = ("_children", "_filed")

    def __init__(self) -> None:
        self._children: dict[Hashable, _Filed[N]] = {}
        self._filed: dict[Hashable, dict[Hashable, _Filed[N]]] = {}

    def child(self, key: Hashable) -> N | None:
        filed = self._children.get(key)
        return None if filed is None else filed.child

    def grow(self, key: Hashable, check: Check | None, child: N) -> None:
        assert check is not None, "a bag operand is verified"
        operand = [scalar_key(member) for member in members_of(check.constraint.value)]
        filed = _Filed(child, check, self._places(operand), len(operand))
        self._children[key] = filed
        for member in filed.members:
            self._filed.setdefault(member, {})[key] = filed

    def cut(self, key: Hashable) -> None:
        for member in self._children.pop(key).members:
            under = self._filed[member]
            del under[key]
            if not under:
                del self._filed[member]

    def __len__(self) -> int:
        return len(self._children)

    def _places(self, operand: list[Hashable]) -> tuple[Hashable, ...]:
        raise AssertionError("every family files somewhere")

    def _candidates(self, member: Hashable) -> dict[Hashable, _Filed[N]]:
        return self._filed.get(member, {})


class Subbag(_ByMember[N]):
    """``value subbag operand``; ``in`` is this one."""

    __slots__ = ()

    def _places(self, operand: list[Hashable]) -> tuple[Hashable, ...]:
        return tuple(set(operand))

    def reach(self, value: Value, probe: Probe) -> Iterable[N]:
        members = members_of(value)
        if not members:
            return [filed.child for filed in self._children.values()]
        found = min((self._candidates(scalar_key(m)) for m in members), key=len).values()
        if len(members) == 1:
            return [filed.child for filed in found]
        return [filed.child for filed in found if probe.holds(filed.check)]


class Superbag(_ByMember[N]):
    """``value superbag operand``, for operands that are not empty."""

    __slots__ = ()

    def _places(self, operand: list[Hashable]) -> tuple[Hashable, ...]:
        return (min(operand, key=lambda member: len(self._candidates(member))),)

    def reach(self, value: Value, probe: Probe) -> Iterable[N]:
        return [
            filed.child
            for member in {scalar_key(m) for m in members_of(value)}
            for filed in self._candidates(member).values()
            if filed.size == 1 or probe.holds(filed.check)
        ]


class Bageq(Keyed[N]):
    """``value bageq operand``."""

    __slots__ = ()

    def reach(self, value: Value, probe: Probe) -> Iterable[N]:
        child = self.children.get(multiset_key(members_of(value)))
        return () if child is None else (child,)
