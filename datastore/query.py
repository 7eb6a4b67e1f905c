"""What can be asked of stored events: a filter, a window, an order, a limit.

A query is decided on *merged* events, by content: temporal operators are decided
once, when a publication is accepted, and live on as decisions (``datastore.store``).
Law: every store answers exactly as ``kbn.matching.naive`` on the merged events.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from kbn.errors import NoOntologyError, UnsupportedError
from kbn.model.filters import Filter, Subscription, constraints_within, needs_ontology
from kbn.model.operators import Related, Semantic
from kbn.model.past import Box
from kbn.model.values import Scalar

EVERYTHING = Subscription((Filter(),))


class Knowing(Protocol):
    """Decides the semantic operators; the same shape as matching's ``Knowledge``."""

    def holds(self, op: Semantic | Related, value: Scalar, operand: Scalar) -> bool: ...


class Spelling(Protocol):
    """The strings that stand in a semantic relation to an operand, if they can be listed."""

    def spellings(self, op: Semantic | Related, operand: Scalar) -> frozenset[str] | None:
        """Every value with ``value op operand``, in every spelling; None: too many to list."""
        ...


class Order(Enum):
    """How answers are sorted; an event without a start is placed by its end."""

    #: By (start, first seq): the order of FILTER and of ``kbn scan``.
    START = "start"
    START_DESCENDING = "start-descending"
    #: By the seq of the event's first publication.
    ARRIVAL = "arrival"
    ARRIVAL_DESCENDING = "arrival-descending"


class Window(NamedTuple):
    """Which events are looked at, before any filter.

    ``arrived_from`` keeps events with a publication that arrived then or later;
    ``arrived_to`` those whose first publication arrived before it. ``box`` bounds
    the event's own start and end.
    """

    arrived_from: int | None = None
    arrived_to: int | None = None
    box: Box = Box()
    only_open: bool = False


ALL_TIMES = Window()


@dataclass(frozen=True, slots=True)
class Query:
    """One question to a store. Raises ``UnsupportedError`` for temporal operators."""

    asked: Subscription = EVERYTHING
    window: Window = ALL_TIMES
    order: Order = Order.START
    limit: int | None = None
    knowledge: Knowing | None = None
    spelling: Spelling | None = None

    def __post_init__(self) -> None:
        if any(c.inner is not None for c in constraints_within(self.asked)):
            raise UnsupportedError(
                "a store answers by content: what temporal operators said is kept as decisions"
            )
        if self.knowledge is None and needs_ontology(self.asked):
            raise NoOntologyError("a semantic operator")
        if self.limit is not None and self.limit < 0:
            raise UnsupportedError(f"the limit of a query is not negative, {self.limit} is")


def in_box(box: Box, start: int | None, end: int | None) -> bool:
    """Whether an event with these times lies in the box (see ``Box``)."""
    if start is None:
        if box.start_min is not None or box.start_max is not None:
            return False
    elif (box.start_min is not None and start < box.start_min) or (
        box.start_max is not None and start > box.start_max
    ):
        return False
    if end is None:
        return box.end_max is None
    return not (
        (box.end_min is not None and end < box.end_min)
        or (box.end_max is not None and end > box.end_max)
    )
