"""The temporal memory: a node for each distinct inner filter, all asked through one index.

Law: a ``View`` answers temporal constraints as ``kbn.matching.temporal`` does for
the publications decided so far; ``decide`` makes the decisions that the definition
makes, all of them asked of the history before the publication.

Inner subscriptions are nodes by the hash of their canonical text; the filters
inside them are nodes of their own, used by the node above. Cost of ``decide``: that
of the predicate index over all inner filters, and O(log) for each that holds; an
inner filter that neither holds nor held costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple, TypeAlias

from kbn.covering.canonical import canonical
from kbn.language.printer import print_subscription
from kbn.matching.index import PredicateIndex
from kbn.matching.world import NOTHING_KNOWN, Knowledge, World
from kbn.model.events import MergedEvent
from kbn.model.filters import Constraint, Subscription
from kbn.model.notifications import Notification
from kbn.model.operators import After, During, Relation, Window
from kbn.model.past import Box, NoPast, Past
from kbn.model.publications import Decision
from kbn.temporal.allen import after_box, during_box, relation_box
from kbn.temporal.node import Held, Node

#: A number no memory reaches: nothing is evicted.
UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of the memory and of what counts."""

    #: Events held for each inner filter, beside those that can still change.
    events_per_filter: int = 100_000
    #: Events remembered by id after they are on disk.
    recent_events: int = 50_000
    #: How long before X.R an open event may have begun to count; None: ever.
    max_open: int | None = None


class Inner(NamedTuple):
    """An inner subscription in canonical form, with its hash."""

    name: str
    subscription: Subscription


def inner_hash(inner: Subscription) -> str:
    """The stable name of an inner subscription, equal for equal canonical forms."""
    return canonical_inner(inner).name


@lru_cache(maxsize=1 << 12)
def canonical_inner(inner: Subscription) -> Inner:
    """The canonical form and the hash of its text."""
    held = canonical(inner)
    return Inner(sha256(print_subscription(held).encode("utf-8")).hexdigest(), held)


def temporal_constraints(subscription: Subscription) -> Iterator[Constraint]:
    """The temporal constraints of the outermost filters."""
    for alternative in subscription:
        for constraint in alternative:
            if constraint.inner is not None:
                yield constraint


def inners(subscription: Subscription) -> list[Inner]:
    """Every distinct inner subscription at any depth, those inside others first."""
    found: dict[str, Inner] = {}
    _collect(subscription, found)
    return list(found.values())


def _collect(subscription: Subscription, found: dict[str, Inner]) -> None:
    for constraint in temporal_constraints(subscription):
        assert constraint.inner is not None
        inner = canonical_inner(constraint.inner)
        if inner.name not in found:
            _collect(inner.subscription, found)
            found[inner.name] = inner


#: A node, an event, and what the node held of it before: enough to take a step back.
Change: TypeAlias = tuple[Node, str, Held | None]


class Memory:
    """The nodes, and who uses them."""

    def __init__(
        self,
        limits: Limits,
        past: Past | None = None,
        knowledge: Knowledge = NOTHING_KNOWN.knowledge,
    ) -> None:
        self.limits = limits
        self.past = NoPast() if past is None else past
        self.knowledge = knowledge
        #: By hash. Invariant: a node that somebody uses is in the index.
        self.nodes: dict[str, Node] = {}
        self._index = PredicateIndex()
        #: Inner subscriptions as their users wrote them, with the number of uses.
        self._written: dict[Subscription, tuple[Node, int]] = {}
        #: Which nodes hold an event that is not final: it will be decided again.
        self._open: dict[str, set[Node]] = {}
        self._made = 0

    # --- users ---------------------------------------------------------------------

    def missing(self, subscription: Subscription) -> list[Inner]:
        """The inner subscriptions whose history is not in memory, those inside others first."""
        lacking = {
            name
            for constraint, name in _asking(subscription, {}).items()
            if name not in self.nodes or not self.nodes[name].serves(constraint.op)
        }
        return [inner for inner in inners(subscription) if inner.name in lacking]

    def acquire(self, subscription: Subscription) -> None:
        """One more user; nodes that were missing begin empty."""
        for constraint in temporal_constraints(subscription):
            self._take(constraint)

    def release(self, subscription: Subscription) -> None:
        """One user less; nodes that nobody uses are forgotten."""
        for constraint in temporal_constraints(subscription):
            self._give(constraint)

    def pin(self, subscription: Subscription) -> frozenset[str]:
        """Keep the nodes a subscription would share, though nobody used them; their hashes."""
        names = {inner.name for inner in inners(subscription)} & self.nodes.keys()
        for name in names:
            self.nodes[name].users += 1
        return frozenset(names)

    def unpin(self, names: Iterable[str]) -> None:
        """Undo ``pin``."""
        for node in [self.nodes[name] for name in names]:
            node.users -= 1
        for name in names:
            if name in self.nodes:
                self._drop_unused(self.nodes[name])

    def install(self, node: Node) -> None:
        """Take in a node that was filled elsewhere, up to the same publication.

        Raises ``ValueError`` if a node of a filter inside its own is missing.
        """
        for inner in inners(node.inner):
            if inner.name not in self.nodes:
                raise ValueError(f"the filter inside {node.name} must be loaded first")
        old = self.nodes.get(node.name)
        node.past, node.most = self.past, self.limits.events_per_filter
        if old is None:
            node.forget_users()
            self._enter(node)
        else:
            node.succeed(old)
            self.nodes[node.name] = node
            self._index.remove(old)
            self._index.add(node, node.inner)
            for written, (user, uses) in self._written.items():
                if user is old:
                    self._written[written] = (node, uses)
            self._forget_open(old)
        self._note_open(node)

    def refill(self, held: Mapping[str, Mapping[str, Held]]) -> None:
        """Give empty nodes what nodes of the same hash held elsewhere."""
        for name, events in held.items():
            node = self.nodes[name]
            for event, kept in events.items():
                node.restore(event, kept)
            self._note_open(node)

    def prune(self) -> None:
        """Forget every node that nobody uses."""
        for node in [node for node in self.nodes.values() if not node.users]:
            if node.name in self.nodes:
                self._drop_unused(node)

    def _take(self, constraint: Constraint) -> None:
        written = constraint.inner
        assert written is not None
        node, uses = self._written.get(written) or (self._node(written), 0)
        self._written[written] = (node, uses + 1)
        node.users += 1
        node.demand(constraint.op, constraint.name)

    def _give(self, constraint: Constraint) -> None:
        written = constraint.inner
        assert written is not None
        node, uses = self._written[written]
        if uses > 1:
            self._written[written] = (node, uses - 1)
        else:
            del self._written[written]
        node.users -= 1
        node.undemand(constraint.op, constraint.name)
        self._drop_unused(node)

    def _node(self, written: Subscription) -> Node:
        name, inner = canonical_inner(written)
        node = self.nodes.get(name)
        if node is None:
            node = Node(inner, name, 0, self.past, self.limits.events_per_filter)
            self._enter(node)
        return node

    def _enter(self, node: Node) -> None:
        self._made += 1
        node.number = self._made
        self.nodes[node.name] = node
        self._index.add(node, node.inner)
        for constraint in temporal_constraints(node.inner):
            self._take(constraint)

    def _drop_unused(self, node: Node) -> None:
        if node.users:
            return
        del self.nodes[node.name]
        self._index.remove(node)
        self._forget_open(node)
        for constraint in temporal_constraints(node.inner):
            self._give(constraint)

    def _note_open(self, node: Node) -> None:
        for event, held in node.held.items():
            if not held.final:
                self._open.setdefault(event, set()).add(node)

    def _forget_open(self, node: Node) -> None:
        for event, held in node.held.items():
            if not held.final:
                self._close(event, node)

    def _close(self, event: str, node: Node) -> None:
        holders = self._open.get(event)
        if holders is not None:
            holders.discard(node)
            if not holders:
                del self._open[event]

    # --- questions and decisions -----------------------------------------------------

    def view(self, event: MergedEvent) -> View:
        """The history as a publication finds it that makes its event this one."""
        return View(self, event)

    def node_of(self, written: Subscription) -> Node:
        """The node of an inner subscription that somebody has acquired."""
        found = self._written.get(written)
        if found is None:
            raise LookupError(f"nobody acquired the history of {print_subscription(written)!r}")
        return found[0]

    def decide(
        self, event: MergedEvent, view: View | None = None
    ) -> tuple[list[Decision], list[Change]]:
        """Let every inner filter say whether it holds of the event as it is now.

        Decisions that are true, or that end a true one, are returned to be kept.
        All are made before any of them is remembered. ``view`` is the event's own, if
        it was matched with one.
        """
        if not self.nodes:
            return [], []
        name, final = event.id, event.final
        world = World(self.knowledge, View(self, event) if view is None else view)
        found: set[Node] = self._index.match(event.notification, world)  # type: ignore[assignment]
        holders = self._open.pop(name, None)
        if not found and not holders:
            return [], []
        # While only the END is known a decision says no start: see ``node``.
        start = event.start if event.opened is not None else None
        seq, end = event.last_seq, event.end
        decisions: list[Decision] = []
        changes: list[Change] = []
        for node in sorted(found, key=_number) if len(found) > 1 else found:
            changes.append((node, name, node.put(event)))
            decisions.append(Decision(node.name, name, seq, True, start, end))
        if holders is not None:
            for node in sorted(holders - found, key=_number):
                changes.append((node, name, node.drop(name)))
                decisions.append(Decision(node.name, name, seq, False, start, end))
        if found and not final:
            self._open[name] = found
        return decisions, changes

    def undo(self, changes: list[Change]) -> None:
        """Take back the changes of one ``decide``, the newest not yet taken back."""
        for node, event, old in reversed(changes):
            node.restore(event, old)
            self._close(event, node)
            if old is not None and not old.final and self.nodes.get(node.name) is node:
                self._open.setdefault(event, set()).add(node)

    def forget(self, events: Set[str]) -> list[Change]:
        """These events are no more; what ``undo`` needs if they are after all."""
        changes: list[Change] = []
        for node in self.nodes.values():
            for event, held in node.forget(events):
                changes.append((node, event, held))
                self._close(event, node)
        return changes

    def evict(self, nodes: Iterable[Node], committed: int, pending: int) -> int:
        """Have these nodes give up what is too much and on disk."""
        return sum(node.evict(committed, pending) for node in nodes)


class View:
    """A ``History`` for one publication: its own event left out, merged for relations."""

    __slots__ = ("_ends", "_event", "_memory")

    def __init__(self, memory: Memory, event: MergedEvent) -> None:
        self._memory = memory
        self._event = event
        #: AFTER's one number for each node and moment.
        self._ends: dict[tuple[Node, int], int | None] | None = None

    def holds(self, constraint: Constraint, notification: Notification) -> bool:
        """Whether the temporal constraint holds. Raises ``LookupError`` if it was not acquired."""
        memory, event = self._memory, self._event
        op, inner = constraint.op, constraint.operand
        assert isinstance(inner, Subscription)
        node = memory.node_of(inner)
        reference = notification.attributes[constraint.name]
        if isinstance(op, Window):
            return node.compares(op, constraint.name, reference, event.id, memory.knowledge)
        if type(reference) is not int:
            return False
        if isinstance(op, After):
            return self._after(node, reference, op.limit)
        box: Box | None
        if isinstance(op, During):
            box = during_box(reference)
        else:
            assert isinstance(op, Relation)
            if event.start is None or event.end is None:
                return False
            box = relation_box(op.kind, op.tolerance, event.start, event.end)
            if box is None:
                return False
        most = memory.limits.max_open
        return node.any_within(box, event.id, None if most is None else reference - most)

    def _after(self, node: Node, reference: int, limit: int) -> bool:
        if self._ends is None:
            self._ends = {}
        key = (node, reference)
        if key in self._ends:
            last = self._ends[key]
        else:
            last = self._ends[key] = node.last_end_before(reference, self._event.id)
        if last is not None and last >= reference - limit:
            return True
        return node.gone is not None and node.any_gone(after_box(reference, limit), self._event.id)


def _number(node: Node) -> int:
    return node.number


def _asking(subscription: Subscription, seen: dict[Constraint, str]) -> dict[Constraint, str]:
    """The temporal constraints at any depth, each with the hash of what it asks."""
    for constraint in temporal_constraints(subscription):
        assert constraint.inner is not None
        if constraint not in seen:
            name, inner = canonical_inner(constraint.inner)
            seen[constraint] = name
            _asking(inner, seen)
    return seen
