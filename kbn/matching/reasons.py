"""Why a temporal constraint held or not: the arithmetic, the event, the nearest miss.

The verdict is the definition's (``temporal``); this file looks again at the same
candidates and puts numbers into words. A *miss* is measured in milliseconds: how
far the event is from the bound that it does not meet, or, for a relation, the
least tolerance under which it would hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kbn.language.printer import print_operator, print_subscription, show_value
from kbn.matching.temporal import (
    RELATIONS,
    AskedHistory,
    allen_holds,
    compares,
    interval,
    most_recent,
)
from kbn.model.events import MergedEvent
from kbn.model.filters import Constraint
from kbn.model.notifications import Notification
from kbn.model.operators import After, Allen, During, Relation, Window
from kbn.model.values import Value

#: An event and how it misses: by how much, and in which words.
Miss = tuple[float, str]


def temporal_reason(
    asked: AskedHistory, constraint: Constraint, notification: Notification
) -> str:
    """The reason in words, for a constraint whose attribute is there."""
    op, inner = constraint.op, constraint.inner
    assert inner is not None, "only a temporal constraint has its reason in the history"
    found = asked.candidates(inner)
    reference = notification[constraint.name]
    if not found:
        stored = asked.stored()
        told = "the history is empty" if not stored else f"none of {stored:,} stored events"
        return told if not stored else f"{told} matches {{ {print_subscription(inner)} }}"
    if isinstance(op, Window):
        return _filter_reason(asked, constraint.name, op, reference, found)
    if isinstance(reference, bool) or not isinstance(reference, int):
        return f"{show_value(reference)} is no time"
    held = [y for y in found if asked.admits(op, reference, y)]
    if isinstance(op, After):
        return _after_reason(op, reference, held, found)
    if isinstance(op, During):
        return _during_reason(asked, reference, held, found)
    assert isinstance(op, Relation), f"{op!r} is temporal"
    return _relation_reason(asked, op, held, found)


def _nearest(misses: Iterable[Miss]) -> str:
    return f"the nearest was {min(misses)[1]}"


def _after_reason(
    op: After, reference: int, held: list[MergedEvent], found: list[MergedEvent]
) -> str:
    limit = f"limit {op.limit:,} ms"
    if held:
        y = max(held, key=lambda y: (y.end or 0, y.order))
        assert y.end is not None
        return (
            f"{reference} − {y.end} = {reference - y.end:,} ms:"
            f" event '{y.id}' ended that long before, {limit}"
        )

    def miss(y: MergedEvent) -> Miss:
        if y.end is None:
            return (float("inf"), f"event '{y.id}', which is still going on")
        before = reference - y.end
        if before > op.limit:
            return (before - op.limit, f"event '{y.id}', ended {before:,} ms before, {limit}")
        if before == 0:
            return (1, f"event '{y.id}', ended in the same millisecond, and after is strict")
        return (1 - before, f"event '{y.id}', ended {-before:,} ms later")

    return _nearest(map(miss, found))


def _during_reason(
    asked: AskedHistory, reference: int, held: list[MergedEvent], found: list[MergedEvent]
) -> str:
    if held:
        y = max(held, key=lambda y: y.order)
        until = f"{reference} ≤ {y.end}" if y.end is not None else "it is still going on"
        return f"{y.start} ≤ {reference} and {until}: within event '{y.id}'"
    most = asked.history.max_open

    def miss(y: MergedEvent) -> Miss:
        if y.start is None:
            return (float("inf"), f"event '{y.id}', whose start is not known")
        if y.start > reference:
            later = y.start - reference
            return (later, f"event '{y.id}', began {later:,} ms later")
        if y.end is not None:
            before = reference - y.end
            return (before, f"event '{y.id}', ended {before:,} ms before")
        assert most is not None, "an open event misses only by its age"
        age = reference - y.start
        return (age - most, f"event '{y.id}', open for {age:,} ms, at most {most:,} ms count")

    return _nearest(map(miss, found))


def _relation_reason(
    asked: AskedHistory, op: Relation, held: list[MergedEvent], found: list[MergedEvent]
) -> str:
    x = asked.event
    if x.start is None or x.end is None:
        return "the start of this event is not known, so it is in no relation"
    within = f" within {op.tolerance:,} ms" if op.tolerance else ""
    if held:
        y = max(held, key=lambda y: y.order)
        return f"{x.start} … {x.end} {op.kind.value} {_span(y)}{within}: event '{y.id}'"
    most = asked.history.max_open

    def miss(y: MergedEvent) -> Miss:
        assert x.start is not None
        assert x.end is not None
        if y.start is None:
            return (float("inf"), f"event '{y.id}', whose start is not known")
        if y.end is None and most is not None and x.end - y.start > most:
            age = x.end - y.start
            return (age, f"event '{y.id}', open for {age:,} ms, at most {most:,} ms count")
        pair = ((x.start, x.end), interval(y))
        stands = next(kind for kind in Allen if allen_holds(kind, 0, *pair))
        need = least_tolerance(op.kind, *pair)
        told = f"event '{y.id}', {_span(y)}: {x.start} … {x.end} {stands.value} it"
        if need != float("inf"):
            told += f", {op.kind.value} would need ±{int(need):,} ms"
        return (need, told)

    return _nearest(map(miss, found))


def _span(y: MergedEvent) -> str:
    return f"{y.start} … {'∞' if y.end is None else y.end}"


def least_tolerance(kind: Allen, x: tuple[int, int], y: tuple[int, float]) -> float:
    """The least tolerance under which the relation holds; infinite if none does."""
    needs: list[float] = []

    def recording(need: Callable[[float, float], float]) -> Callable[[float, float], bool]:
        def compare(a: float, b: float) -> bool:
            needs.append(0 if a == b and need is _apart else need(a, b))
            return True

        return compare

    RELATIONS[kind](recording(_beyond), recording(_apart), *x, *y)
    return max(needs)


def _beyond(a: float, b: float) -> float:
    return max(0, a - b + 1)


def _apart(a: float, b: float) -> float:
    return abs(a - b)


def _filter_reason(
    asked: AskedHistory, name: str, op: Window, reference: Value, found: list[MergedEvent]
) -> str:
    knowledge = asked.history.knowledge
    ordered = most_recent(found, len(found))
    place, hit = next(
        (
            (place, y)
            for place, y in enumerate(ordered, 1)
            if compares(op, name, reference, y, knowledge)
        ),
        (0, None),
    )
    asking = f"{show_value(reference)} {print_operator(op.op)}"
    if hit is not None:
        told = f"{asking} {show_value(hit.notification[name])} of event '{hit.id}'"
        if place <= op.limit:
            return f"{told}, number {place:,} of the last {min(op.limit, len(ordered)):,}"
        return f"none of the last {op.limit:,} events; the nearest was number {place:,}: {told}"
    said = [(y, y.notification[name]) for y in ordered[: op.limit] if name in y.notification]
    if not said:
        return f"none of the {len(ordered):,} events has an attribute '{name}'"
    y, value = min(said, key=lambda pair: _distance(reference, pair[1]))
    return (
        f"{asking} holds for none of the {len(said):,} values;"
        f" the nearest was {show_value(value)} of event '{y.id}'"
    )


def _distance(one: Value, other: Value) -> float:
    """How far apart two numbers are; everything else is as far as can be."""
    for value in (one, other):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return float("inf")
    assert isinstance(one, int | float)
    assert isinstance(other, int | float)
    return abs(one - other)
