"""Two small tables of names and values: the store's own ``meta``, the broker's ``marks``."""

from __future__ import annotations

import json

from sqlalchemy import bindparam, delete, insert, select

from datastore.sql import tables
from datastore.sql.link import Link
from datastore.sql.text import escape, unescape


class MetaTable:
    """What the store remembers about itself."""

    def __init__(self, link: Link) -> None:
        self._link = link
        name = tables.meta.c.name == bindparam("key")
        self._get = link.prepare(select(tables.meta.c.value).where(name), "key")
        self._remove = link.prepare(delete(tables.meta).where(name), "key")
        added = insert(tables.meta).values(name=bindparam("name"), value=bindparam("value"))
        self._add = link.prepare(added, "name", "value")

    def get(self, name: str, *, write: bool = False) -> str | None:
        rows = self._link.rows(self._get, name, write=write)
        return str(rows[0][0]) if rows else None

    def set(self, name: str, value: str) -> None:
        """Inside the current transaction."""
        self._link.run(self._remove, name)
        self._link.run(self._add, name, value)

    def numbers(self, name: str, *, write: bool = False) -> frozenset[int]:
        """A set of numbers kept under a name."""
        return frozenset(json.loads(self.get(name, write=write) or "[]"))

    def set_numbers(self, name: str, numbers: frozenset[int]) -> None:
        """Inside the current transaction."""
        self.set(name, json.dumps(sorted(numbers)))


class MarkTable:
    """What the broker asked to be remembered."""

    def __init__(self, link: Link) -> None:
        self._link = link
        name = tables.marks.c.name == bindparam("key")
        self._all = link.prepare(select(tables.marks.c.name, tables.marks.c.value), "_")
        self._get = link.prepare(select(tables.marks.c.value).where(name), "key")
        self._remove = link.prepare(delete(tables.marks).where(name), "key")
        added = insert(tables.marks).values(name=bindparam("name"), value=bindparam("value"))
        self._add = link.prepare(added, "name", "value")

    def get(self, name: str) -> int | None:
        rows = self._link.rows(self._get, escape(name))
        return int(rows[0][0]) if rows else None

    def set(self, name: str, value: int) -> None:
        """Inside the current transaction."""
        self._link.run(self._remove, escape(name))
        self._link.run(self._add, escape(name), value)

    def all(self) -> dict[str, int]:
        return {unescape(name): value for name, value in self._link.rows(self._all)}
