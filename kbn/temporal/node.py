"""One inner filter and the events of which it holds.

Law: after any sequence of ``put`` and ``drop`` the questions below are answered as
a look at every standing event would answer them, the evicted ones included.

An event that can get no further publication is *final*: its decision stands for
ever. Only final events whose decision is on disk are evicted; their times lie
within ``gone``, and a question that reaches into it, and was not answered by
memory, goes to the ``Past``. The box asked there is cut to ``gone``, whose bounds
are finite, so that it admits no event that is open or has no start: what the Past
knows of those may be older than memory. For FILTER the latest final events stay,
as many as the widest window counts: with all that can still flip they always
fill it. Cost: O(log) for each structure in use, however long the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from kbn.matching.world import Knowledge
from kbn.model.events import MergedEvent
from kbn.model.filters import Subscription
from kbn.model.operators import After, Content, During, Operator
from kbn.model.operators import Window as WindowOp
from kbn.model.past import Box, Past
from kbn.model.values import Value
from kbn.temporal.ordered import Ordered
from kbn.temporal.spans import Spans
from kbn.temporal.windows import Compared, Place, Window

#: Eviction waits until this many events are too many: its cost is spread over them.
SLACK = 64


class Held(NamedTuple):
    """What a node keeps of an event."""

    start: int | None
    end: int | None
    first_seq: int
    last_seq: int
    final: bool
    #: Its merged attributes, kept only where FILTER may ask for them.
    attributes: Mapping[str, Value] | None


class Node:
    """The memory of one canonical inner subscription, shared by all who ask it.

    ``name`` is its stable hash; ``number`` orders nodes by their making.
    """

    __slots__ = (
        "_ends",
        "_finals",
        "_opens",
        "_order",
        "_patience",
        "_spans",
        "_users_of_ends",
        "_users_of_spans",
        "attributed",
        "complete",
        "durable",
        "gone",
        "held",
        "inner",
        "most",
        "name",
        "number",
        "past",
        "users",
        "windows",
    )

    def __init__(self, inner: Subscription, name: str, number: int, past: Past, most: int) -> None:
        self.inner = inner
        self.name = name
        self.number = number
        self.past = past
        self.most = most
        self.users = 0
        #: The events of which the newest decision is true, by id.
        self.held: dict[str, Held] = {}
        #: Whether the attributes of all held events are kept.
        self.attributed = False
        #: Whether every decision is where ``past`` looks; nothing is evicted before.
        self.durable = True
        #: The smallest box around all evicted events; None: nothing was.
        self.gone: Box | None = None
        #: How many of the latest final events are surely held; asked only if some are gone.
        self.complete = 0
        self._patience = 0
        self._finals = 0
        # Each structure exists while somebody asks what only it can answer.
        self._users_of_ends = 0
        self._users_of_spans = 0
        self._ends: Ordered | None = None
        self._spans: Spans | None = None
        self._opens: Ordered | None = None
        self._order: Ordered | None = None
        self.windows: dict[tuple[str, int], Window] = {}

    # --- who asks what -------------------------------------------------------------

    def serves(self, op: Operator) -> bool:
        """Whether memory and Past can answer this operator without the log being read."""
        if not isinstance(op, WindowOp):
            return True
        if not self.attributed and self.held:
            return False
        return self.gone is None or op.limit <= self.complete

    def demand(self, op: Operator, attribute: str) -> None:
        """One more user of an operator that this node ``serves``."""
        if isinstance(op, WindowOp):
            self.attributed = True
            window = self.windows.get((attribute, op.limit))
            if window is None:
                window = self._open_window(attribute, op.limit)
            window.users += 1
        elif isinstance(op, After):
            self._users_of_ends += 1
            if self._ends is None:
                ends = ((h.end, event) for event, h in self.held.items() if h.end is not None)
                self._ends = Ordered(ends)
        else:
            self._users_of_spans += 1
            if self._spans is None:
                self._spans, self._opens = Spans(), Ordered()
                for event, held in self.held.items():
                    self._enter_times(event, held)

    def undemand(self, op: Operator, attribute: str) -> None:
        """One user less; what nobody asks any more is given up."""
        if isinstance(op, WindowOp):
            window = self.windows[attribute, op.limit]
            window.users -= 1
            if not window.users:
                del self.windows[attribute, op.limit]
                if not self.windows:
                    self._order = None
        elif isinstance(op, After):
            self._users_of_ends -= 1
            if not self._users_of_ends:
                self._ends = None
        else:
            self._users_of_spans -= 1
            if not self._users_of_spans:
                self._spans = self._opens = None

    def succeed(self, other: Node) -> None:
        """Take the place of a node of the same filter, with all who ask it."""
        self.number = other.number
        self.forget_users()
        for (attribute, limit), window in other.windows.items():
            for _ in range(window.users):
                self.demand(WindowOp(Content.ANY, limit), attribute)
        for op, uses in ((After(1), other._users_of_ends), (During(), other._users_of_spans)):
            for _ in range(uses):
                self.demand(op, "")
        self.users = other.users

    def forget_users(self) -> None:
        """As if nobody had asked; what is prepared stays, for those who ask next."""
        self.users = self._users_of_ends = self._users_of_spans = 0
        for window in self.windows.values():
            window.users = 0

    # --- what is held --------------------------------------------------------------

    def put(self, event: MergedEvent) -> Held | None:
        """The filter holds of the event as it is now; what was held of it before."""
        start, end = event.start, event.end
        held = Held(
            start,
            end,
            event.first_seq,
            event.last_seq,
            event.final,
            event.notification.attributes if self.attributed else None,
        )
        old = self.held.get(event.id)
        if old is not None:
            self._leave(event.id, old)
        self._enter(event.id, held)
        return old

    def drop(self, event: str) -> Held | None:
        """The filter does not hold of the event; what was held of it before."""
        old = self.held.get(event)
        if old is not None:
            self._leave(event, old)
        return old

    def restore(self, event: str, old: Held | None) -> None:
        """Undo one ``put`` or ``drop`` that returned ``old``."""
        now = self.held.get(event)
        if now is not None:
            self._leave(event, now)
        if old is not None:
            self._enter(event, old)

    def evict(self, committed: int, pending: int = 0) -> int:
        """Give up the oldest final events whose decisions are on disk, if there are too many.

        ``pending`` entries are not on disk: so many final events may still be taken
        back, and are not counted among those that fill a window.
        """
        size = len(self.held)
        if size <= self.most or not self.durable:
            return 0
        widest = self.widest
        keep = max(self.most, widest)
        slack = SLACK + keep // 32
        if size <= keep + slack or size <= self._patience:
            return 0
        count = min(size - keep, self._finals - pending - widest)
        chosen = self._oldest(count, committed) if count > 0 else []
        for event in chosen:
            held = self.held[event]
            assert held.start is not None, "a final event has its start"
            assert held.end is not None, "a final event has its end"
            self.gone = _around(self.gone, held.start, held.end)
            self._leave(event, held)
        if chosen:
            self.complete = max(0, self._finals - pending) if self.windows else 0
        # Events that cannot go yet are not looked at again before many more have come.
        self._patience = len(self.held) + slack
        return len(chosen)

    def forget(self, events: Set[str]) -> list[tuple[str, Held]]:
        """These events are no more, neither here nor in the Past; what was held of them."""
        found = [(event, self.held[event]) for event in self.held.keys() & events]
        for event, held in found:
            self._leave(event, held)
            self.complete = max(0, self.complete - held.final)
        return found

    @property
    def widest(self) -> int:
        """How many events the widest window counts."""
        return max((limit for _, limit in self.windows), default=0)

    @property
    def lacks_events(self) -> bool:
        """Whether a window may have room for an event that was evicted."""
        return self.gone is not None and self.complete < self.widest

    def refill(self, events: Iterable[MergedEvent], whole: bool) -> None:
        """Hold these too, the latest of which the filter holds; ``whole``: there are no others.

        Only final ones can be new here: the others are never evicted.
        """
        finals = [event for event in events if event.final]
        for event in finals:
            if event.id not in self.held:
                self.put(event)
        # Of several that began together the earliest may have been left out.
        last = min((event.order[0] for event in finals), default=0)
        self.complete = len(finals) if whole else sum(e.order[0] > last for e in finals)
        if whole:
            self.gone = None

    def _oldest(self, count: int, committed: int) -> list[str]:
        """Final events on disk: the earliest where windows ask for the latest, else those
        that came first, since any will do."""
        chosen: list[str] = []
        if self._order is not None:
            events: Iterator[str] = (place[2] for place in self._order)
        else:
            events = iter(self.held)
        for event in events:
            held = self.held[event]
            if held.final and held.last_seq <= committed:
                chosen.append(event)
                if len(chosen) == count:
                    break
        return chosen

    def _enter(self, event: str, held: Held) -> None:
        self.held[event] = held
        self._finals += held.final
        if self._ends is not None and held.end is not None:
            self._ends.add((held.end, event))
        if self._spans is not None:
            self._enter_times(event, held)
        if self._order is not None:
            self._enter_order(event, held)

    def _leave(self, event: str, held: Held) -> None:
        start, end = held.start, held.end
        if self._ends is not None and end is not None:
            self._ends.remove((end, event))
        if self._spans is not None and start is not None:
            if end is not None:
                self._spans.remove(start, end, event)
            else:
                assert self._opens is not None
                self._opens.remove((start, event))
        if self._order is not None:
            self._leave_order(event, held)
        self._finals -= held.final
        del self.held[event]

    def _enter_times(self, event: str, held: Held) -> None:
        assert self._spans is not None
        assert self._opens is not None
        if held.start is not None:
            if held.end is not None:
                self._spans.add(held.start, held.end, event)
            else:
                self._opens.add((held.start, event))

    # --- questions about times -------------------------------------------------------

    def last_end_before(self, reference: int, exclude: str) -> int | None:
        """The latest end in memory before a moment; AFTER with any limit needs only that."""
        assert self._ends is not None
        found = self._ends.below((reference,))
        if found is not None and found[1] == exclude:
            found = self._ends.below(found)
        return None if found is None else found[0]

    def any_within(self, box: Box, exclude: str, open_since: int | None) -> bool:
        """Whether an event whose start is known lies in the box; an open one only if it
        began at ``open_since`` or later."""
        if box.end_max is None and self._opens:
            low = box.start_min
            if open_since is not None and (low is None or open_since > low):
                low = open_since
            # The latest start that fits decides; only the excluded event is passed over.
            high = box.start_max
            found = self._opens.last() if high is None else self._opens.below((high + 1,))
            if found is not None and found[1] == exclude:
                found = self._opens.below(found)
            if found is not None and (low is None or found[0] >= low):
                return True
        if self._spans is not None and self._spans.any_within(box, exclude):
            return True
        return self.gone is not None and self.any_gone(box, exclude)

    def any_gone(self, box: Box, exclude: str) -> bool:
        """Whether an evicted event lies in the box."""
        gone = self.gone
        if gone is None:
            return False
        cut = Box(
            _greater(box.start_min, gone.start_min),
            _lesser(box.start_max, gone.start_max),
            _greater(box.end_min, gone.end_min),
            _lesser(box.end_max, gone.end_max),
        )
        assert cut.start_min is not None
        assert cut.start_max is not None
        assert cut.end_min is not None
        assert cut.end_max is not None
        if cut.start_min > cut.start_max or cut.end_min > cut.end_max:
            return False
        return self.past.any_within(self.name, cut, exclude)

    # --- FILTER ------------------------------------------------------------------------

    def compares(
        self, op: WindowOp, attribute: str, x: Value, own: str, knowledge: Knowledge
    ) -> bool:
        """Whether ``x op`` the attribute of one of the latest events, ``own`` left out."""
        compared: Compared = op.op
        window = self.windows[attribute, op.limit]
        held = self.held.get(own)
        if held is None:
            return window.values.any(compared, x, knowledge)
        self._leave_order(own, held)
        try:
            return window.values.any(compared, x, knowledge)
        finally:
            self._enter_order(own, held)

    def _open_window(self, attribute: str, limit: int) -> Window:
        window = self.windows[attribute, limit] = Window(attribute, limit)
        if self._order is None:
            self._order = Ordered((*_moment(held), event) for event, held in self.held.items())
        inside: list[Place] = self._order.top(limit)
        for place in inside:
            self._count(window, place, 1)
        if len(self._order) > limit:
            window.low = inside[0]
        return window

    def _enter_order(self, event: str, held: Held) -> None:
        order = self._order
        assert order is not None
        place: Place = (*_moment(held), event)
        order.add(place)
        for window in self.windows.values():
            low = window.low
            if low is None:
                self._count(window, place, 1)
                if len(order) > window.limit:
                    first: Place = order.first()
                    self._count(window, first, -1)
                    window.low = order.above(first)
            elif place > low:
                self._count(window, place, 1)
                self._count(window, low, -1)
                window.low = order.above(low)

    def _leave_order(self, event: str, held: Held) -> None:
        order = self._order
        assert order is not None
        place: Place = (*_moment(held), event)
        for window in self.windows.values():
            low = window.low
            if low is None:
                self._count(window, place, -1)
                continue
            if place >= low:
                self._count(window, place, -1)
                earlier: Place = order.below(low)
                self._count(window, earlier, 1)
                window.low = earlier
            if len(order) - 1 <= window.limit:
                window.low = None
        order.remove(place)

    def _count(self, window: Window, place: Place, change: int) -> None:
        """An event enters or leaves a window with its value, if it has one."""
        attributes = self.held[place[2]].attributes
        assert attributes is not None, "a node with windows keeps the attributes"
        if window.attribute in attributes:
            value = attributes[window.attribute]
            if change > 0:
                window.values.add(value)
            else:
                window.values.remove(value)


def _moment(held: Held) -> tuple[int, int]:
    moment = held.end if held.start is None else held.start
    assert moment is not None, "an event has a start or an end"
    return (moment, held.first_seq)


def _around(box: Box | None, start: int, end: int) -> Box:
    if box is None:
        return Box(start, start, end, end)
    return Box(
        _lesser(start, box.start_min),
        _greater(start, box.start_max),
        _lesser(end, box.end_min),
        _greater(end, box.end_max),
    )


def _greater(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _lesser(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
