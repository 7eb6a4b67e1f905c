"""The subscription table: subscribers, their units, and the index over them.

A *unit* is what one ``SUB`` asked, with all its alternatives. Rules (Siena's):
a unit already covered by one the same subscriber holds changes nothing; one
that covers earlier ones replaces them; ``UNS F`` removes the units wholly
covered by F, never single alternatives. Units that differ in delivery options
neither cover nor replace each other. Cost: that of the index, plus the covering
tests of ``Holdings`` among the units the same subscriber holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from kbn.matching.index import PredicateIndex
from kbn.matching.world import NOTHING_KNOWN, Knowledge, World
from kbn.model.filters import Subscription
from kbn.model.notifications import Notification
from kbn.routing.holdings import Holdings
from senp import DEFAULT_TTL, encode_value

T = TypeVar("T")


class Options(NamedTuple):
    """How a unit wants to be served; only equal options may cover each other."""

    history: bool = False
    #: The hops it has left from here on: 0 acts here only, and is not asked of the master.
    hops: int = DEFAULT_TTL - 1


PLAIN = Options()
#: A ttl above this reaches every broker of any tree there is: such subscriptions count as
#: travelling equally far, or the same filter asked at two levels would go up twice.
FAR = 16


def hops_left(ttl: int) -> int:
    """The hops a subscription has left behind this broker; all far ones have the same."""
    return ttl - 1 if ttl <= FAR else DEFAULT_TTL - 1


class Unit(Generic[T]):
    """One subscription of one subscriber, as it was received."""

    __slots__ = ("asked", "number", "options", "subscriber")

    def __init__(
        self, number: int, subscriber: Subscriber[T], asked: Subscription, options: Options
    ) -> None:
        self.number = number
        self.subscriber = subscriber
        self.asked = asked
        self.options = options

    def __hash__(self) -> int:
        """Its number: sets of units have one order in every run."""
        return self.number


@dataclass(slots=True, eq=False)
class Subscriber(Generic[T]):
    """A receiver: ``target`` is where its notifications go, opaque to this layer."""

    id: str
    target: T
    owner: str = ""
    suspended: bool = False
    #: What happened since its past began to be read, until that is delivered.
    hold: Hold | None = None
    units: Holdings[Unit[T]] = field(default_factory=Holdings)
    #: The id as the wire writes it, made once because every delivery needs it.
    wire: bytes = b""
    #: Suspended or held: one look tells a delivery that it may not simply go out.
    aside: bool = False
    #: The newest arrival number when it was entered: what a backlog has for its id up to
    #: there was for another, who is gone or was refused.
    after: int = 0

    def __post_init__(self) -> None:
        self.wire = encode_value(self.id)

    def suspend(self, suspended: bool) -> None:
        self.suspended = suspended
        self.aside = suspended or self.hold is not None

    def put_on_hold(self, hold: Hold | None) -> None:
        self.hold = hold
        self.aside = self.suspended or hold is not None


class Hold:
    """Deliveries that wait until the past before them was told; bounded.

    Only what was accepted behind ``after`` waits: the rest is part of that past.
    """

    __slots__ = ("after", "items", "overflowed", "room")

    def __init__(self, after: int, room: int) -> None:
        self.after = after
        self.room = room
        self.items: list[Any] = []
        #: Too much came: nothing is held, the past is read on from ``after``.
        self.overflowed = False

    def put(self, item: Any, seq: int, size: int) -> None:
        if seq <= self.after or self.overflowed:
            return
        self.room -= size
        if self.room < 0:
            self.overflowed = True
            self.items.clear()
        else:
            self.items.append(item)


class Change(NamedTuple, Generic[T]):
    """What a request did to the table."""

    added: tuple[Unit[T], ...] = ()
    removed: tuple[Unit[T], ...] = ()


class SubscriptionTable(Generic[T]):
    """All subscribers of a broker. Unit numbers only rise, in the order of arrival."""

    def __init__(self) -> None:
        self.subscribers: dict[str, Subscriber[T]] = {}
        self.units: dict[int, Unit[T]] = {}
        #: How many subscribers hold more than one unit: while none does, an
        #: answer of the index names each subscriber once.
        self.crowded = 0
        self._index = PredicateIndex()
        #: History units are matched against merged events, so they have their own.
        self._history = PredicateIndex()
        #: How many history units there are.
        self.histories = 0
        self._next = 1

    def __len__(self) -> int:
        return len(self.units)

    def subscribe(
        self, subscriber: Subscriber[T], asked: Subscription, options: Options = PLAIN
    ) -> Change[T]:
        """Add a unit under the subscriber, who is entered in the table if new."""
        if subscriber.units.covering(asked, options):
            return Change()
        replaced = tuple(subscriber.units.covered(asked, options))
        self.subscribers[subscriber.id] = subscriber
        unit = Unit(self._next, subscriber, asked, options)
        self._next += 1
        (self._history if options.history else self._index).add(unit, asked)
        self.histories += options.history
        self.units[unit.number] = unit
        subscriber.units.add(unit)
        self.crowded += len(subscriber.units) == 2
        for old in replaced:
            self._drop(old)
        return Change((unit,), replaced)

    def unsubscribe(self, subscriber_id: str, asked: Subscription | None = None) -> Change[T]:
        """Remove what ``asked`` covers, or all; the last unit takes its subscriber along."""
        subscriber = self.subscribers.get(subscriber_id)
        if subscriber is None:
            return Change()
        held = subscriber.units
        gone = tuple(held if asked is None else held.covered(asked))
        for unit in gone:
            self._drop(unit)
        if not subscriber.units:
            del self.subscribers[subscriber_id]
        return Change((), gone)

    def match(self, notification: Notification, world: World = NOTHING_KNOWN) -> list[Unit[T]]:
        """Every unit that matches, each once."""
        return self._index.match(notification, world)  # type: ignore[return-value]

    def match_history(self, merged: Notification, world: World = NOTHING_KNOWN) -> list[Unit[T]]:
        """Every history unit that matches an event as merged so far."""
        return self._history.match(merged, world)  # type: ignore[return-value]

    def prepare(self, knowledge: Knowledge) -> Iterator[None]:
        """Make ready to match under other knowledge; to be walked to its end, in slices."""
        yield from self._index.prepare(knowledge)
        yield from self._history.prepare(knowledge)

    def page(self, after: int, most: int) -> Iterator[Unit[T]]:
        """Units with a number above ``after``, oldest first, at most so many."""
        # Numbers only rise and a dict keeps its order, so nothing is to be sorted.
        return islice((unit for number, unit in self.units.items() if number > after), most)

    def _drop(self, unit: Unit[T]) -> None:
        (self._history if unit.options.history else self._index).remove(unit)
        self.histories -= unit.options.history
        del self.units[unit.number]
        unit.subscriber.units.remove(unit)
        self.crowded -= len(unit.subscriber.units) == 1
