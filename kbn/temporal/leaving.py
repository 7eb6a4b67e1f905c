"""Events that retention takes from the disk, and with that from memory.

Law: once retention is done, the memory answers as one that was loaded from the
store afterwards. Events leave in three steps: ``take`` forgets them here before
they leave the disk; ``gone`` or ``stayed`` says what became of them; nodes that
held so many of them that a window may miss older events, evicted before, are
``lacking`` and get those back from the store. Between the first two steps the disk
may still tell of them, and is not believed. Cost: the events that leave, and those
a lacking node gets back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from kbn.model.events import MergedEvent
from kbn.temporal.memory import Change, Memory


class Leaving:
    """The events that are leaving now, with what it takes to have them back."""

    def __init__(self, memory: Memory, recent: dict[str, MergedEvent]) -> None:
        self._memory = memory
        self._recent = recent
        self._events: dict[str, list[Change]] = {}

    def __contains__(self, event: str) -> bool:
        return event in self._events

    @property
    def events(self) -> frozenset[str]:
        return frozenset(self._events)

    def take(self, events: Iterable[str]) -> None:
        """Forget these. Those that were taken before have left."""
        self._events = {event: [] for event in events}
        for change in self._memory.forget(self._events.keys()):
            self._events[change[1]].append(change)
        for event in self._events:
            self._recent.pop(event, None)

    def gone(self) -> None:
        """They have left the disk."""
        self._events = {}

    def stayed(self, kept: Set[str]) -> None:
        """The disk kept some after all; of those the ones told of anew stay forgotten."""
        events, self._events = self._events, {}
        for event, changes in events.items():
            if event in kept and event not in self._recent:
                self._memory.undo(changes)

    def lacking(self) -> list[tuple[str, int]]:
        """The nodes whose windows may miss events that were evicted, and how many they need."""
        return [
            (name, node.widest) for name, node in self._memory.nodes.items() if node.lacks_events
        ]

    def refill(
        self, name: str, events: Sequence[MergedEvent], changed: Set[str], whole: bool
    ) -> None:
        """Give a node the latest events of which the store says that its filter holds.

        ``changed`` are events that were decided again since; ``whole``: there are no others.
        """
        node = self._memory.nodes.get(name)
        if node is not None and node.lacks_events:
            node.refill([event for event in events if event.id not in changed], whole)
