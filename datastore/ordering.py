"""The order of answers, as sort keys; one definition for every store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from datastore.merge import place
from datastore.query import Order, Query, in_box
from datastore.store import StoredEvent
from kbn.matching.naive import matches
from kbn.matching.world import World

_BY_START = (Order.START, Order.START_DESCENDING)
DESCENDING = (Order.START_DESCENDING, Order.ARRIVAL_DESCENDING)


def sort_key(order: Order, event: StoredEvent) -> tuple[int, int]:
    """Ascending key of an event; reverse it for the descending orders."""
    if order in _BY_START:
        return place(event.start, event.end), event.first_seq
    return event.first_seq, 0


def in_order(query: Query, events: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
    """The events sorted as asked, cut at the limit."""
    held = sorted(
        events, key=lambda e: sort_key(query.order, e), reverse=query.order in DESCENDING
    )
    return islice(held, query.limit)


def in_window(query: Query, event: StoredEvent) -> bool:
    """Whether the query looks at the event at all."""
    window = query.window
    return (
        (window.arrived_from is None or event.updated >= window.arrived_from)
        and (window.arrived_to is None or event.inserted < window.arrived_to)
        and (not window.only_open or event.is_open)
        and in_box(window.box, event.start, event.end)
    )


def answers(query: Query, event: StoredEvent) -> bool:
    """The definition: in the window, and ``naive`` says yes to the merged event."""
    if not in_window(query, event):
        return False
    world = World() if query.knowledge is None else World(knowledge=query.knowledge)
    return matches(query.asked, event.notification, world)
