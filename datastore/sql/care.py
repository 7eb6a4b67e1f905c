"""Retention, checking, figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datastore.sql.link import Link
from datastore.store import Finding, Progress, Retention

if TYPE_CHECKING:
    from datastore.sql.store import SqlStore


def retain(store: SqlStore, link: Link, policy: Retention, progress: Progress) -> int:
    raise NotImplementedError


def check(store: SqlStore, link: Link, progress: Progress) -> list[Finding]:
    raise NotImplementedError


def info(store: SqlStore, link: Link) -> dict[str, object]:
    raise NotImplementedError
