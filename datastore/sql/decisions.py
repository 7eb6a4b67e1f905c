"""Standing decisions: upserted when true, removed when false, asked by boxes of time.

Law: ``any_within`` equals a scan of the standing decisions. Cost: one index search
for each duration class that the inner filter has ever had, usually a few; a narrow
bound on the end is searched directly instead. Golden tests hold the plans.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, or_, select, update

from datastore.classes import OPEN, STARTLESS, duration_class, range_of
from datastore.merge import place
from datastore.sql import tables
from datastore.sql.link import Link
from datastore.sql.text import escape, unescape
from datastore.store import KnownInner
from kbn.model.past import Box
from kbn.model.publications import Decision
from kbn.model.time import TIME_MAX, TIME_MIN

_D = tables.decisions.c
_I = tables.inners.c
_COLUMNS = tuple(column.name for column in tables.decisions.columns)
_FORGET_AT_ONCE = 10_000


class DecisionTable:
    """The tables ``inners`` and ``decisions``."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        #: Number of each inner filter that has one, as written in ``inners``.
        self._numbers: dict[str, int] = {}
        #: Classes seen per number: a superset of those in the table, or absent.
        self._classes: dict[int, set[int]] = {}
        prepare = link.prepare
        inner, kind = _D.inner_id == bindparam("inner"), _D["class"] == bindparam("kind")
        self._remove = prepare(
            delete(tables.decisions).where(inner, _D.event == bindparam("event")),
            "inner",
            "event",
        )
        one = select(1).limit(1)
        ranged = one.where(
            inner,
            kind,
            _D.place_ms >= bindparam("low"),
            _D.place_ms <= bindparam("high"),
            _D.event != bindparam("exclude"),
        )
        names = ("inner", "kind", "low", "high", "exclude")
        ended = (_D.end_ms >= bindparam("end_low"), _D.end_ms <= bindparam("end_high"))
        self._exact = prepare(ranged, *names)
        # The sum hides the column from the planner, which would search by the end instead.
        summed = _D.end_ms + 0
        late = (summed >= bindparam("end_low"), summed <= bindparam("end_high"))
        self._by_start = prepare(ranged.where(*late), *names, "end_low", "end_high")
        self._by_end = prepare(
            one.where(
                inner,
                *ended,
                _D["class"] < OPEN,
                _D.place_ms >= bindparam("low"),
                _D.place_ms <= bindparam("high"),
                _D.event != bindparam("exclude"),
            ),
            "inner",
            "end_low",
            "end_high",
            "low",
            "high",
            "exclude",
        )
        self._next_class = prepare(
            select(func.min(_D["class"])).where(inner, _D["class"] > bindparam("kind")),
            "inner",
            "kind",
        )
        self._latest = prepare(
            select(_D.event, _D.seq, _D.start_ms, _D.end_ms)
            .where(inner)
            .order_by(_D.place_ms.desc(), _D.seq.desc())
            .limit(bindparam("most")),
            "inner",
            "most",
        )
        self._unfinished = prepare(
            select(_D.event, _D.seq, _D.start_ms, _D.end_ms).where(
                inner, or_(_D["class"] == OPEN, _D["class"] == STARTLESS)
            ),
            "inner",
        )
        self._known = prepare(select(_I.id, _I.inner_hash, _I.filter, _I.upto), "none")
        self._add_inner = prepare(
            insert(tables.inners).values(
                {name: bindparam(name) for name in ("id", "inner_hash", "filter", "upto")}
            ),
            "id",
            "inner_hash",
            "filter",
            "upto",
        )
        self._move_inner = prepare(
            update(tables.inners)
            .where(_I.id == bindparam("number"))
            .values(upto=bindparam("to"), filter=bindparam("text")),
            "number",
            "to",
            "text",
        )

    # Writing, inside a transaction

    def record(self, decisions: Sequence[Decision], known: Iterable[KnownInner]) -> None:
        """The newest decision of each pair stands; false ones leave no row."""
        for inner in known:
            self._know(inner)
        standing = {(decision.inner, decision.event): decision for decision in decisions}
        if not standing:
            return
        gone, rows = [], []
        for decision in standing.values():
            number = self._number(decision.inner)
            gone.append((number, escape(decision.event)))
            if decision.holds:
                kind = duration_class(decision.start, decision.end)
                if kind not in self._classes_of(number, fresh=False):
                    self._classes[number].add(kind)
                where = place(decision.start, decision.end)
                rows.append((*gone[-1], *decision[2:3], *decision[4:], kind, where))
        self._link.run_many(self._remove, gone)
        self._link.insert(tables.decisions, _COLUMNS, rows)

    def _know(self, inner: KnownInner) -> None:
        number = self._number(inner.inner)
        self._link.run(self._move_inner, number, inner.upto, inner.text)

    def _number(self, inner: str) -> int:
        number = self._numbers.get(inner)
        if number is None:
            with self._lock:
                self._load(write=True)
                number = self._numbers.get(inner)
                if number is None:
                    number = max(self._numbers.values(), default=0) + 1
                    self._link.run(self._add_inner, number, escape(inner), "", 0)
                    self._numbers[inner] = number
        return number

    def forget(self, inner: str) -> None:
        """Remove in steps, so that no transaction is long."""
        number = self._numbers.get(inner) or self._load().get(inner)
        if number is None:
            return
        some = (
            select(_D.event).where(_D.inner_id == number).limit(_FORGET_AT_ONCE).scalar_subquery()
        )
        step = self._link.prepare(
            delete(tables.decisions).where(_D.inner_id == number, _D.event.in_(some)), "none"
        )
        while True:
            with self._link.writing():
                if self._link.run(step) < _FORGET_AT_ONCE:
                    break
        with self._link.writing():
            self._link.run(self._link.prepare(delete(tables.inners).where(_I.id == number), "_"))
        with self._lock:
            self._numbers.pop(inner, None)
            self._classes.pop(number, None)

    def remove(self, events: Iterable[str]) -> None:
        """Nothing is decided of these any more; inside the current transaction."""
        held = [escape(event) for event in events]
        for number in self._load(write=True).values():
            self._link.run_many(self._remove, [(number, event) for event in held])

    def undo(self) -> None:
        """A transaction failed: numbers given in it may not exist."""
        with self._lock:
            self._numbers.clear()

    # Reading

    def any_within(self, inner: str, box: Box, exclude: str | None, *, fresh: bool) -> bool:
        """``fresh``: another process writes, so what is remembered may be stale."""
        number = self._load().get(inner) if fresh else self._numbers.get(inner)
        if number is None:
            number = self._load().get(inner)
            if number is None:
                return False
        # No event has an empty id, so the empty string excludes nobody.
        other = escape(exclude or "")
        kinds = self._classes_of(number, fresh=fresh)
        end_low = _clamp(box.end_min, TIME_MIN)
        end_high = _clamp(box.end_max, TIME_MAX)
        ranges = {kind: range_of(box, kind) for kind in kinds}
        rows = self._link.rows
        for kind in (OPEN, STARTLESS):
            found = ranges.pop(kind, None)
            if found and rows(self._exact, number, kind, found.low, found.high, other):
                return True
        closed = {kind: found for kind, found in ranges.items() if found is not None}
        wide = sum(found.high - found.low for found in closed.values())
        low, high = _clamp(box.start_min, TIME_MIN), _clamp(box.start_max, TIME_MAX)
        if closed and min(end_high, TIME_MAX) - max(end_low, low) < wide:
            asked: tuple[Any, ...] = (max(end_low, low), end_high, low, high, other)
            return bool(rows(self._by_end, number, *asked))
        for kind, found in closed.items():
            where = (number, kind, found.low, found.high, other)
            if found.exact:
                if rows(self._exact, *where):
                    return True
            elif rows(self._by_start, *where, end_low, end_high):
                return True
        return False

    def latest(self, inner: str, most: int | None) -> list[Decision]:
        number = self._load().get(inner)
        if number is None:
            return []
        rows = self._link.rows(self._latest, number, 2**62 if most is None else most)
        return [
            Decision(inner, unescape(event), seq, True, start, end)
            for event, seq, start, end in rows
        ]

    def unfinished(self, inner: str) -> list[Decision]:
        number = self._load().get(inner)
        rows = [] if number is None else self._link.rows(self._unfinished, number)
        return [
            Decision(inner, unescape(event), seq, True, start, end)
            for event, seq, start, end in rows
        ]

    def known(self) -> dict[str, KnownInner]:
        return {
            unescape(inner): KnownInner(unescape(inner), text, upto)
            for _, inner, text, upto in self._link.rows(self._known)
            if text
        }

    def _load(self, *, write: bool = False) -> dict[str, int]:
        rows = self._link.rows(self._known, write=write)
        loaded = {unescape(inner): number for number, inner, _, _ in rows}
        self._numbers.update(loaded)
        return loaded

    def _classes_of(self, number: int, *, fresh: bool) -> Iterable[int]:
        held = None if fresh else self._classes.get(number)
        if held is None:
            held = set()
            kind = -1
            while (found := self._link.rows(self._next_class, number, kind)[0][0]) is not None:
                kind = found
                held.add(kind)
            if not fresh:
                with self._lock:
                    # What was appended meanwhile may be there already.
                    self._classes.setdefault(number, set()).update(held)
                    held = self._classes[number]
        return tuple(held)


def _clamp(bound: int | None, otherwise: int) -> int:
    """A bound the engine can take; no event lies outside these years."""
    return otherwise if bound is None else max(TIME_MIN - 1, min(bound, TIME_MAX + 1))
