"""Every question about times, as a box of starts and ends.

Law: ``relation_box(kind, t, a, b)`` contains exactly the events to which an event
from ``a`` to ``b`` stands in the relation; None if no event can. ``during_box`` and
``after_box`` likewise for the moment X.R. A comparison ``y < v`` of whole
milliseconds, relaxed by t, is ``y <= v + t - 1``. Each relation but two needs one
bound on each side at most; ``meets`` and ``met_by`` also ask Y to be longer than
nothing, which bounds only its other side when t is 0, and is always so when not.

The box of ``after`` has a bound on the start that follows from the one on the
end: without it an event whose start is unknown would be in a relation.
Source: Allen (1983); tolerance after the design notes, each comparison alone.
"""

from __future__ import annotations

from collections.abc import Callable

from kbn.model.operators import Allen
from kbn.model.past import Box


def during_box(reference: int) -> Box:
    """Events that go on at the moment."""
    return Box(start_max=reference, end_min=reference)


def after_box(reference: int, limit: int) -> Box:
    """Events that ended before the moment, by at most ``limit``."""
    return Box(end_min=reference - limit, end_max=reference - 1)


def relation_box(kind: Allen, tolerance: int, start: int, end: int) -> Box | None:
    """Events to which one from ``start`` to ``end`` stands in the relation."""
    return _BOXES[kind](start, end, tolerance)


def _before(a: int, b: int, t: int) -> Box | None:
    return Box(start_min=b - t + 1)


def _after(a: int, b: int, t: int) -> Box | None:
    return Box(start_max=a + t - 1, end_max=a + t - 1)


def _meets(a: int, b: int, t: int) -> Box | None:
    if not t:
        return Box(start_min=b, start_max=b, end_min=b + 1) if a < b else None
    return Box(start_min=b - t, start_max=b + t)


def _met_by(a: int, b: int, t: int) -> Box | None:
    if not t:
        return Box(start_max=a - 1, end_min=a, end_max=a) if a < b else None
    return Box(start_max=a + t, end_min=a - t, end_max=a + t)


def _overlaps(a: int, b: int, t: int) -> Box | None:
    return Box(start_min=a - t + 1, start_max=b + t - 1, end_min=b - t + 1)


def _overlapped_by(a: int, b: int, t: int) -> Box | None:
    return Box(start_max=a + t - 1, end_min=a - t + 1, end_max=b + t - 1)


def _during(a: int, b: int, t: int) -> Box | None:
    return Box(start_max=a + t - 1, end_min=b - t + 1)


def _contains(a: int, b: int, t: int) -> Box | None:
    return Box(start_min=a - t + 1, end_max=b + t - 1)


def _starts(a: int, b: int, t: int) -> Box | None:
    return Box(start_min=a - t, start_max=a + t, end_min=b - t + 1)


def _started_by(a: int, b: int, t: int) -> Box | None:
    return Box(start_min=a - t, start_max=a + t, end_max=b + t - 1)


def _finishes(a: int, b: int, t: int) -> Box | None:
    return Box(start_max=a + t - 1, end_min=b - t, end_max=b + t)


def _finished_by(a: int, b: int, t: int) -> Box | None:
    return Box(start_min=a - t + 1, end_min=b - t, end_max=b + t)


def _equals(a: int, b: int, t: int) -> Box | None:
    return Box(start_min=a - t, start_max=a + t, end_min=b - t, end_max=b + t)


_BOXES: dict[Allen, Callable[[int, int, int], Box | None]] = {
    Allen.BEFORE: _before,
    Allen.AFTER: _after,
    Allen.MEETS: _meets,
    Allen.MET_BY: _met_by,
    Allen.OVERLAPS: _overlaps,
    Allen.OVERLAPPED_BY: _overlapped_by,
    Allen.DURING: _during,
    Allen.CONTAINS: _contains,
    Allen.STARTS: _starts,
    Allen.STARTED_BY: _started_by,
    Allen.FINISHES: _finishes,
    Allen.FINISHED_BY: _finished_by,
    Allen.EQUALS: _equals,
}


def contains(box: Box, start: int | None, end: int | None) -> bool:
    """Whether an event with these times lies in the box; see ``Box`` on the unknown ones."""
    if start is None:
        if box.start_min is not None or box.start_max is not None:
            return False
    elif (box.start_min is not None and start < box.start_min) or (
        box.start_max is not None and start > box.start_max
    ):
        return False
    if end is None:
        return box.end_max is None
    return (box.end_min is None or end >= box.end_min) and (
        box.end_max is None or end <= box.end_max
    )
