"""The history read again: what other subscriptions would have been told.

By Spark where it is installed and wanted (``kbn backtest``), else in this process by
``kbn.temporal.replay``, the function that both the broker and Spark use.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

from datastore.factory import default_url, open_store
from kbn.knowledge.library import Library
from kbn.language import parse_subscription
from kbn.matching.world import NOTHING_KNOWN
from kbn.model import LogEntry, Subscription
from kbn.temporal import replay

IN_PROCESS = "in this process, by kbn.temporal.replay"


@dataclass(frozen=True, slots=True)
class Review:
    """Who would have been told what: publications in the order they arrived, by name."""

    engine: str
    told: Mapping[str, tuple[LogEntry, ...]]

    def only(self, name: str, other: str) -> tuple[LogEntry, ...]:
        """What ``name`` would have been told and ``other`` not."""
        theirs = {entry.seq for entry in self.told[other]}
        return tuple(entry for entry in self.told[name] if entry.seq not in theirs)


def read_log(data_dir: Path) -> list[LogEntry]:
    """Everything a broker with that data directory accepted, in order."""
    with open_store(default_url(data_dir), read_only=True) as store:
        return list(store.log())


def review(data_dir: Path, asked: Mapping[str, str]) -> Review:
    """Replay the whole history for these subscriptions, in this process."""
    built = Library(data_dir).current()
    knowledge = NOTHING_KNOWN.knowledge if built is None else built.hierarchy
    entries = read_log(data_dir)
    subscriptions: dict[Hashable, Subscription] = {
        name: parse_subscription(text) for name, text in asked.items()
    }
    deliveries, _ = replay(entries, subscriptions, knowledge=knowledge)
    by_number = {entry.seq: entry for entry in entries}
    told: dict[str, list[LogEntry]] = {name: [] for name in asked}
    for delivery in deliveries:
        for name in delivery.keys:
            told[str(name)].append(by_number[delivery.seq])
    return Review(IN_PROCESS, {name: tuple(found) for name, found in told.items()})
