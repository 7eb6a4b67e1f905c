"""What temporal operators cost per publication: ``python -m benchmarks.nested --json``.

``depth-N``: one filter whose temporal operators stand N inside each other.
``width-N``: one filter with N temporal operators side by side over N different inner
filters, DURING, AFTER, FILTER and a relation in turn. A publication is admitted,
matched and applied with its decisions, and committed in groups, as a broker does it;
nothing is stored.
``length``: the same load after 300,000 events over that after 10,000 (``cost_ratio``):
what a publication costs must not grow with the history. ``plain``: publications
without temporal attributes beside a few inner filters.

The answers of the first publications are compared with the definition before
anything is timed. Every figure is the median of its rounds; growth comes from
rounds that alternate.
"""

from __future__ import annotations

import random
import time
from statistics import median

from benchmarks._report import Report, arguments
from kbn.language import parse_subscription
from kbn.matching.index import PredicateIndex
from kbn.matching.naive import matches
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import World
from kbn.model import Bag, Notification, Subscription
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME
from kbn.temporal import Admitted, Limits, TemporalEngine

DEPTHS = (1, 2, 3)
WIDTHS = range(1, 9)
CASES = (
    *(f"depth-{n}" for n in DEPTHS),
    *(f"width-{n}" for n in WIDTHS),
    "length",
    "plain",
)
#: How many publications a group commit takes together.
GROUP = 50
START, END = Bag(["START"]), Bag(["END"])
INSTANT = Bag(["START", "END", "INSTANT"])

_OPERATORS = (
    "KBN_END_TIME during {{ {} }}",
    "KBN_END_TIME after(2s) {{ {} }}",
    "price filter(>, last 200) {{ {} }}",
    "KBN_END_TIME relation(after) {{ {} }}",
)


def nested(depth: int) -> Subscription:
    """AFTER inside AFTER, a different level of the log at each."""
    text = "level = 0"
    for step in range(1, depth + 1):
        text = f"level = {step % 4} and KBN_END_TIME after(2s) {{ {text} }}"
    return parse_subscription(text)


def wide(width: int) -> Subscription:
    """Operators side by side, each over an inner filter of its own."""
    asked = [
        _OPERATORS[n % len(_OPERATORS)].format(f"level = {n % 4} and price > {n}")
        for n in range(width)
    ]
    return parse_subscription(" and ".join(asked))


class Rig:
    """An engine with some subscriptions, and a load that goes on for ever."""

    def __init__(self, asked: list[Subscription], seed: int = 1, plain: bool = False) -> None:
        self.draw = random.Random(seed)
        self.plain = plain
        self.now = 1_600_000_000_000
        self.number = 0
        self.engine = TemporalEngine(limits=Limits(events_per_filter=2**40, recent_events=1000))
        self.asked = asked
        self.index = PredicateIndex()
        for key, subscription in enumerate(asked):
            self.engine.acquire(subscription)
            self.index.add(key, subscription)
        self.open: list[tuple[str, dict[str, object]]] = []

    def events(self, count: int) -> list[Notification]:
        return [self._event() for _ in range(count)]

    def _event(self) -> Notification:
        """Four in ten are instants, three starts and three ends; one in ten is late."""
        draw = self.draw
        self.number += 1
        self.now += draw.randrange(200)
        said = {"level": draw.randrange(4), "price": draw.randrange(1000), "host": "h1", "n": 1}
        if self.plain:
            return Notification.trusted(said)
        at = self.now - (draw.randrange(100_000) if draw.random() < 0.1 else 0)
        chance = draw.random()
        if chance < 0.3 and self.open:
            name, start = self.open.pop(draw.randrange(len(self.open)))
            times = {PUB_ID: name, PUB_TYPE: END, END_TIME: max(at, start)}
        else:
            name = f"e{self.number}"
            times = {PUB_ID: name, START_TIME: at}
            if chance < 0.6:
                times[PUB_TYPE] = START
                self.open.append((name, at))
            else:
                times |= {PUB_TYPE: INSTANT, END_TIME: at}
        return Notification.trusted({**said, **times})

    def publish(self, event: Notification) -> set[object]:
        engine = self.engine
        admitted = engine.admit(event, f"u{engine.seq}", self.now, self.now, fresh=True)
        assert isinstance(admitted, Admitted)
        world = World(history=engine.history(admitted))
        found = self.index.match(event, world)
        engine.apply(engine.seq + 1, admitted)
        if not engine.seq % GROUP:
            engine.committed(engine.seq)
        return found

    def check(self, count: int) -> str | None:
        """Publish and compare with the definition; the first difference, in words."""
        naive = NaiveHistory()
        for number, event in enumerate(self.events(count)):
            admitted = self.engine.admit(event, f"u{self.engine.seq}", self.now, self.now)
            assert isinstance(admitted, Admitted)
            world = World(history=naive.about(admitted.entry))
            wanted = {k for k, asked in enumerate(self.asked) if matches(asked, event, world)}
            found = self.publish(event)
            naive.append(admitted.entry)
            if found != wanted:
                return f"publication {number}: {found} instead of {wanted}"
        return None

    def round(self, count: int) -> float:
        """Microseconds per publication."""
        events = self.events(count)
        publish = self.publish
        began = time.perf_counter()
        for event in events:
            publish(event)
        return (time.perf_counter() - began) / count * 1e6


def measure(report: Report, case: str, rig: Rig, rounds: int, count: int) -> None:
    wrong = rig.check(300)
    extra = {} if wrong is None else {"void": True, "reason": wrong}
    rig.round(count)
    figures = [rig.round(count) for _ in range(rounds)]
    report.add(case, "us_per_publication", median(figures), "us", rounds, **extra)


def length(report: Report, rounds: int, count: int, longest: int) -> None:
    asked = [nested(2), wide(4)]
    short, long = Rig(asked), Rig(asked)
    for rig, size in ((short, 10_000), (long, longest)):
        for event in rig.events(size):
            rig.publish(event)
    figures = [(short.round(count), long.round(count)) for _ in range(rounds)]
    report.add("length", "us_per_publication_10000", median(f[0] for f in figures), "us", rounds)
    report.add(
        "length", f"us_per_publication_{longest}", median(f[1] for f in figures), "us", rounds
    )
    ratio = median(after / before for before, after in figures)
    report.add("length", "cost_ratio", ratio, "1", rounds)


def main() -> None:
    json, cases, quick = arguments("nested", CASES)
    report = Report("nested", json)
    rounds, count = (3, 500) if quick else (7, 5000)
    for case in cases:
        kind, _, size = case.partition("-")
        if kind == "depth":
            measure(report, case, Rig([nested(int(size))]), rounds, count)
        elif kind == "width":
            measure(report, case, Rig([wide(int(size))]), rounds, count)
        elif kind == "plain":
            asked = [nested(1), wide(2), parse_subscription("price filter(<) { level = 9 }")]
            measure(report, case, Rig(asked, plain=True), rounds, count)
        else:
            length(report, rounds, 200 if quick else 1000, 30_000 if quick else 300_000)


if __name__ == "__main__":
    main()
