"""Consistent random histories: what a broker would have accepted, from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from kbn.model.notifications import Notification
from kbn.model.publications import LogEntry, Part
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME
from kbn.model.values import Bag, Value

NAMES = ("a", "b", "pos.x", "two words", "é", "nul\x00name")
VALUES: tuple[Value, ...] = (
    None, True, False, 0, 1, 2, -1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1,
    0.0, -0.0, 0.5, 1.0, 1.5, 2.0**53, 9.2e18, 1e300, 5e-324,
    float("nan"), float("inf"), float("-inf"),
    "", "a", "A", "ab", "abc", "bab", "c\x00", "\x00", "\x01", "\x02x", "\x00\x01",
    "é", "\U0010ffff", "a%b_c",
    Bag(), Bag([1]), Bag([1, 1, 2]), Bag([1.0, "a"]), Bag(["a", "b", "a"]), Bag([None, True]),
    Bag([float("nan")]), Bag(["c\x00", 2**53 + 1]),
)  # fmt: skip
_SEEN = {
    Part.START: Bag(["START"]),
    Part.END: Bag(["END"]),
    Part.INSTANT: Bag(["START", "END", "INSTANT"]),
}


def entry(  # noqa: PLR0917
    seq: int,
    uid: str,
    part: Part = Part.PLAIN,
    start: int | None = None,
    end: int | None = None,
    arrived: int | None = None,
    **attributes: Value,
) -> LogEntry:
    """One entry, its temporal attributes filled in; plain ones happen at ``start``."""
    at = seq if start is None else start
    if part is Part.PLAIN:
        start = end = at
    said: dict[str, Value] = {}
    if part is not Part.PLAIN:
        said = {PUB_ID: uid, PUB_TYPE: _SEEN[part]}
        if start is not None:
            said[START_TIME] = start
        if end is not None:
            said[END_TIME] = end
    came = seq if arrived is None else arrived
    return LogEntry(seq, uid, part, at, came, start, end, Notification({**said, **attributes}))


def history(seed: int, size: int, *, first: int = 1) -> Iterator[LogEntry]:
    """About ``size`` entries: plain ones, instants, and events that start and end in any order."""
    draw = random.Random(f"history {seed}")
    waiting: list[LogEntry] = []
    seq, clock = first - 1, 0
    for number in range(size):
        seq += draw.choice((1, 1, 1, 3))
        clock += draw.choice((0, 1, 1, 5, -2))
        uid = draw.choice(("", "\x00", "é")) + f"e{seed}-{number}"
        said = {name: draw.choice(VALUES) for name in draw.sample(NAMES, draw.randrange(5))}
        when = draw.randrange(2000)
        kind = draw.random()
        if waiting and kind < 0.25:
            late = waiting.pop(draw.randrange(len(waiting)))
            yield late._replace(seq=seq, arrived=clock)
        elif kind < 0.5:
            yield entry(seq, uid, Part.PLAIN, when, None, clock, **said)
        elif kind < 0.65:
            yield entry(seq, uid, Part.INSTANT, when, when, clock, **said)
        else:
            until = when + draw.choice((0, 1, 3, 50, 1000))
            more = {name: draw.choice(VALUES) for name in draw.sample(NAMES, draw.randrange(3))}
            halves = [
                entry(seq, uid, Part.START, when, None, clock, **said),
                entry(seq, uid, Part.END, None, until, clock, **more),
            ]
            if draw.random() < 0.2:
                halves.reverse()
            waiting.append(halves[1])
            yield halves[0]
