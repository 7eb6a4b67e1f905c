"""What every family of branches promises, and the two trivial ones.

A family stands under one attribute name of one node and leads from a value to
child nodes. Law: ``reach(value, probe)`` gives exactly the children whose
operand stands in the family's relation to the value. Children come and go one
by one; nothing is ever rebuilt as a whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from kbn.matching.index.checks import Check, Probe
from kbn.model.values import Value

N = TypeVar("N")


class Branches(Protocol[N]):
    """Children of type N by operand."""

    def child(self, key: Hashable) -> N | None:
        """The child of this operand, if there is one."""
        ...

    def grow(self, key: Hashable, check: Check | None, child: N) -> None:
        """Add a child for an operand that has none; ``check`` verifies a candidate."""
        ...

    def cut(self, key: Hashable) -> None:
        """Take the child of this operand away."""
        ...

    def reach(self, value: Value, probe: Probe) -> Iterable[N]:
        """The children to which this value leads, each once."""
        ...

    def __len__(self) -> int: ...


class Keyed(Generic[N]):
    """Children by key, for families that need nothing beside it."""

    __slots__ = ("children",)

    def __init__(self) -> None:
        self.children: dict[Hashable, N] = {}

    def child(self, key: Hashable) -> N | None:
        return self.children.get(key)

    def grow(self, key: Hashable, check: Check | None, child: N) -> None:
        self.children[key] = child

    def cut(self, key: Hashable) -> None:
        del self.children[key]

    def __len__(self) -> int:
        return len(self.children)


class Present(Keyed[N]):
    """``any``: the attribute is there, whatever it says."""

    __slots__ = ()

    def reach(self, value: Value, probe: Probe) -> Iterable[N]:
        return self.children.values()
