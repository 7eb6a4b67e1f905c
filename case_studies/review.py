"""The history read again: what other subscriptions would have been told.

By Spark where it is installed and wanted (``kbn backtest``), else in this process by
``kbn.temporal.replay``, the function that both the broker and Spark use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
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


def backtest(data_dir: Path, asked: Mapping[str, str], spark: bool) -> str:
    """How the second of two subscriptions differs from the first, in words.

    ``kbn backtest`` says it where Spark can be used, else it is worked out here, and the
    answer says why.
    """
    (old_name, old), (new_name, new) = asked.items()
    reason = "as was asked" if not spark else _no_spark()
    if reason is None:
        words = [sys.executable, "-m", "kbn", "backtest", old, new, "--data-dir", str(data_dir)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=150, check=False)
        if done.returncode in (0, 1):
            return f"\nbacktest by Spark, {old_name} against {new_name}:\n{done.stdout.rstrip()}"
        reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "Spark failed"
    found = review(data_dir, asked)
    lines = [f"\nbacktest, {old_name} against {new_name}, {found.engine} (no Spark: {reason}):"]
    for name, other in ((old_name, new_name), (new_name, old_name)):
        alone = found.only(name, other)
        sample = ", ".join(entry.uid for entry in alone[:5]) or "nothing"
        total = len(found.told[name])
        lines.append(f"  {name}: {total} deliveries, {len(alone)} only here: {sample}")
    return "\n".join(lines)


def _no_spark() -> str | None:
    """Why Spark cannot be used, or None."""
    if find_spec("pyspark") is None:
        return "it is not installed, pip install 'kbn[spark]' does that"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "there is no Java"
    if find_spec("datastore.spark") is None:
        return "this version has no jobs for it"
    return None
