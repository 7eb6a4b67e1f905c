"""What should have happened, worked out from the history by the definition's own words.

Slow and obvious on purpose, and without the broker's operators: failed logins sorted by
time, each compared with the one before.
"""

from __future__ import annotations

from collections.abc import Iterable

from case_studies.dynamic_logging.controller import Changed, Levels
from case_studies.dynamic_logging.handler import WARNING
from kbn.model import LogEntry


def chains(log: Iterable[LogEntry], within: int = 2000) -> list[tuple[int, int]]:
    """For each failed login its time, and how many it is in a row, each within that time."""
    found: list[tuple[int, int]] = []
    for entry in log:
        said = entry.notification
        if said.get("log_level") != WARNING or said.get("log_category") != "login_failed":
            continue
        assert entry.end is not None
        now = entry.end
        longest = max((n for at, n in found if now - within <= at < now), default=0)
        found.append((now, longest + 1))
    return found


def alarms(log: Iterable[LogEntry], within: int = 2000, times: int = 3) -> list[int]:
    """When a failed login was at least that many in a row."""
    return [now for now, row in chains(log, within) if row >= times]


def expected(log: Iterable[LogEntry], calm: int) -> list[Changed]:
    """How the level should have gone."""
    levels, changes = Levels(calm), []
    level = levels.level
    for moment in alarms(log):
        before = levels.until
        if before is not None and moment >= before:
            level = levels.passed(before)
            changes.append(Changed(before, level))
        if levels.alarmed(moment) != level:
            level = levels.level
            changes.append(Changed(moment, level))
    if levels.until is not None:
        changes.append(Changed(levels.until, levels.passed(levels.until)))
    return changes
