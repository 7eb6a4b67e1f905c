"""The history read again: what other subscriptions would have been told.

By Spark where it is installed and wanted (``by_spark``), else in this process by
``kbn.temporal.replay``, the function that both the broker and Spark use.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from datastore.factory import default_url, open_store
from kbn.errors import KbnError
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


@dataclass(frozen=True, slots=True)
class Backtest:
    """How two subscriptions differ: who said so, and deliveries of both and of one alone."""

    engine: str
    both: int
    alone: Mapping[str, int]
    #: False if Spark and this process counted differently, which would be a fault.
    agreed: bool = True

    def __str__(self) -> str:
        old, new = self.alone
        lines = [f"backtest of '{old}' against '{new}', {self.engine}:", f"  both: {self.both}"]
        lines += [f"  only {name}: {count}" for name, count in self.alone.items()]
        return "\n".join(lines if self.agreed else [*lines, "  this process counts otherwise"])


def backtest(data_dir: Path, asked: Mapping[str, str], spark: bool) -> Backtest:
    """How the second of two subscriptions differs from the first.

    By Spark where it can be used, and compared with what this process finds; else by
    this process alone, and the engine's name says why.
    """
    (old_name, old), (new_name, new) = asked.items()
    here = review(data_dir, asked)
    alone = {
        old_name: len(here.only(old_name, new_name)),
        new_name: len(here.only(new_name, old_name)),
    }
    both = len(here.told[old_name]) - alone[old_name]
    reason = "as was asked" if not spark else _no_spark()
    if reason is None:
        try:
            found = import_module("case_studies.by_spark").difference(data_dir, old, new)
        except KbnError as error:
            reason = str(error)
        else:
            counted = {old_name: found.only_old, new_name: found.only_new}
            agreed = (found.both, counted) == (both, alone)
            return Backtest("by Spark", found.both, counted, agreed)
    return Backtest(f"{here.engine} (no Spark: {reason})", both, alone)


def _no_spark() -> str | None:
    """Why Spark cannot be used, or None."""
    if find_spec("pyspark") is None:
        return "it is not installed, pip install 'kbn[spark]' does that"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "there is no Java"
    if find_spec("datastore.spark") is None:
        return "this version has no jobs for it"
    return None
