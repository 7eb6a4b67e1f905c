"""The covering order of a changing set of filters: which of them are maximal?

Law: every filter that is held and can match lies, over a chain of coverings, below
a *root*, and no root covers another. Of filters that cover each other the first
stays. So the roots together match whatever any filter matches.

It is a forest, not the whole order: a covered filter hangs below one of those that
cover it, and that is all that is known of it until its place is taken away. Then
the orphans are paired first, as in a pairing heap (Fredman, Sedgewick, Sleator and
Tarjan 1986), so that the next removal finds few of them; what is left looks for
another root, or becomes one.

Cost: that of ``CoverIndex`` over the roots. Removing a root asks for each of its
children, removing another filter only moves them up.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from kbn.covering.filters import Facts, facts_imply, facts_of
from kbn.covering.lookup import CoverIndex
from kbn.model.filters import Filter


class Moved(NamedTuple):
    """What a change did to the roots."""

    exposed: tuple[Filter, ...] = ()
    hidden: tuple[Filter, ...] = ()


NOTHING_MOVED = Moved()


class _Node:
    """One filter, however many keys hold it."""

    __slots__ = ("asked", "children", "holders", "parent")

    def __init__(self, asked: Filter) -> None:
        self.asked = asked
        self.holders = 1
        #: A filter that covers this one; None for a root, and for one that cannot match.
        self.parent: _Node | None = None
        self.children: dict[_Node, None] | None = None

    @property
    def facts(self) -> Facts:
        """Read anew when they are wanted: only the index over the roots keeps them."""
        return facts_of(self.asked)

    def adopt(self, child: _Node) -> None:
        child.parent = self
        if self.children is None:
            self.children = {}
        self.children[child] = None

    def abandon(self, child: _Node) -> None:
        """Let go of a child, who keeps its own children."""
        if self.children is not None:
            self.children.pop(child)
            self.children = self.children or None

    def covers(self, other: _Node) -> bool:
        return facts_imply(other.facts, self.asked)


class CoveringForest:
    """Filters under keys; ``add`` and ``remove`` say which became roots or ceased to be."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, _Node] = {}
        self._nodes: dict[Filter, _Node] = {}
        #: Exactly the nodes without a parent that can match.
        self._roots: CoverIndex[_Node] = CoverIndex()

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, key: Hashable, asked: Filter) -> Moved:
        """Hold a filter under a key that is new."""
        if key in self._by_key:
            raise KeyError(f"{key!r} is held already")
        node = self._nodes.get(asked)
        if node is not None:
            node.holders += 1
            self._by_key[key] = node
            return NOTHING_MOVED
        node = self._by_key[key] = self._nodes[asked] = _Node(asked)
        if node.facts.contradictory:
            return NOTHING_MOVED
        hidden = self._place(node)
        if node.parent is not None:
            return NOTHING_MOVED
        return Moved((asked,), tuple(below.asked for below in hidden))

    def remove(self, key: Hashable) -> Moved:
        """Let go of what is held under a key."""
        node = self._by_key.pop(key)
        node.holders -= 1
        if node.holders:
            return NOTHING_MOVED
        del self._nodes[node.asked]
        if node.facts.contradictory:
            return NOTHING_MOVED
        parent = node.parent
        if parent is not None:
            parent.abandon(node)
            for child in node.children or ():
                parent.adopt(child)
            return NOTHING_MOVED
        self._roots.remove(node)
        exposed: dict[_Node, None] = {}
        for orphan in _paired(list(node.children or ())):
            orphan.parent = None
            for below in self._place(orphan):
                exposed.pop(below)
            if orphan.parent is None:
                exposed[orphan] = None
        return Moved(tuple(root.asked for root in exposed), (node.asked,))

    def roots(self) -> Iterator[Filter]:
        """The maximal filters, in the order in which they became such."""
        return (node.asked for node in self._roots)

    def is_root(self, asked: Filter) -> bool:
        node = self._nodes.get(asked)
        return node is not None and node in self._roots

    def _place(self, node: _Node) -> list[_Node]:
        """Hang a node below a root or make it one; the roots that it took below itself."""
        facts = node.facts
        above = next(self._roots.coverers(facts), None)
        if above is not None:
            above.adopt(node)
            return []
        below = list(self._roots.covered(node.asked, facts))
        for root in below:
            self._roots.remove(root)
            node.adopt(root)
        self._roots.add(node, node.asked, facts)
        return below


def _paired(orphans: list[_Node]) -> list[_Node]:
    """Hang orphans below each other, in rounds of pairs, while that takes many away."""
    while len(orphans) > 1:
        left = [orphans[-1]] if len(orphans) % 2 else []
        for one, other in zip(orphans[::2], orphans[1::2], strict=False):
            if one.covers(other):
                one.adopt(other)
                left.append(one)
            elif other.covers(one):
                other.adopt(one)
                left.append(other)
            else:
                left += (one, other)
        few_found = len(left) * 4 > len(orphans) * 3
        orphans = left
        if few_found:
            break
    return orphans
