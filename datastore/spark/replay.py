"""``replay``: what subscriptions would have delivered, had they been there.

Law: for a subscriber that is always connected and does not publish, the broker's
deliveries, event for event: every earlier entry counts as history, and what is told are
the entries that arrived within the window, as published, in the order of seq.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from datastore.query import Spelling
from datastore.spark import joins, ordered
from datastore.spark.source import History
from kbn.errors import NoOntologyError
from kbn.matching.world import NOTHING_KNOWN, Knowledge
from kbn.model.filters import Subscription, needs_ontology


class Arrivals(NamedTuple):
    """A window of arrival times [since, until), in milliseconds; None leaves a side open."""

    since: int | None = None
    until: int | None = None

    @property
    def is_all(self) -> bool:
        return self.since is None and self.until is None


ALWAYS = Arrivals()


def last(history: History, duration: int) -> Arrivals:
    """The window that reaches back so long from the newest stored arrival, which is in it."""
    newest = history.newest or 0
    return Arrivals(newest - duration, newest + 1)


def replay(
    history: History,
    asked: Sequence[Subscription],
    window: Arrivals = ALWAYS,
    *,
    groups: int = 1,
    knowledge: Knowledge | None = None,
    spelling: Spelling | None = None,
    max_open: int | None = None,
    how: joins.How = "auto",
) -> DataFrame:
    """(seq, key) of what would have been delivered to which subscription, by number.

    Raises ``NoOntologyError`` for a semantic operator without knowledge.
    """
    if knowledge is None and any(needs_ontology(one) for one in asked):
        raise NoOntologyError("a semantic operator")
    known = NOTHING_KNOWN.knowledge if knowledge is None else knowledge
    if joins.preferred(history, asked, how):
        found = joins.deliveries(
            history, asked, knowledge=known, spelling=spelling, max_open=max_open
        )
    else:
        found = ordered.deliveries(
            history,
            asked,
            groups=groups,
            knowledge=known,
            spelling=spelling,
            max_open=max_open,
        )
    if window.is_all:
        return found
    inside = history.frame.select("seq", "arrived")
    if window.since is not None:
        inside = inside.where(f.col("arrived") >= window.since)
    if window.until is not None:
        inside = inside.where(f.col("arrived") < window.until)
    return found.join(inside.select("seq"), "seq", "left_semi")
