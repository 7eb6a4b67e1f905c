"""How many questions of covering one core answers a second.

``pair-1`` and ``pair-3`` have one and three constraints on different names,
``conjunction`` several on one name, ``bag`` two bag operators, ``canonical`` untidy
subscriptions of two alternatives; ``stock`` is a population of the stock load
and also says which share of it is covered by another. ``covers_per_s`` asks
filters whose facts are known, as a table asks them; ``first_per_s`` reads the
covered one anew, as for a subscription that has just come.

Before timing, every covered pair is tried with events at and between its
operands: one that matches only the covered side makes the case void.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from statistics import median

from benchmarks._report import Report, arguments
from benchmarks.loads import stock_events, stock_filters
from kbn.covering import canonical, filter_covers
from kbn.covering.filters import Facts, facts_imply
from kbn.matching.naive import filter_matches, matches
from kbn.model import Bag, Constraint, Filter, Notification, Subscription
from kbn.model.operators import BagKind, BagOp, Content

CASES = ("pair-1", "pair-3", "conjunction", "bag", "canonical", "stock")
_TOP = 50


def pair_1(draw: random.Random) -> Filter:
    return Filter([_range("a", draw)])


def pair_3(draw: random.Random) -> Filter:
    symbol = Constraint("s", Content.PREFIX, draw.choice(["I", "IB", "IBM"]))
    return Filter([symbol, _range("a", draw), _range("b", draw)])


def conjunction(draw: random.Random) -> Filter:
    low = draw.randrange(_TOP)
    high = low + draw.randrange(1, _TOP)
    return Filter(
        [
            Constraint("a", Content.GE, low),
            Constraint("a", Content.LE, float(high)),
            Constraint("a", Content.NE, draw.choice([low, high])),
        ]
    )


def bag(draw: random.Random) -> Filter:
    def asked(name: str, kind: BagKind, sub: Content | None) -> Constraint:
        members = [draw.randrange(5) for _ in range(draw.randint(1, 4))]
        return Constraint(name, BagOp(kind, sub), Bag(members))

    return Filter([asked("a", BagKind.SUPERBAG, None), asked("b", BagKind.SUBBAG, Content.LE)])


def untidy(draw: random.Random) -> Subscription:
    """Two alternatives with duplicates and constraints that follow from others."""
    return Subscription(
        Filter([*f, *f.constraints[:1], Constraint("a", Content.ANY), _range("b", draw)])
        for f in (conjunction(draw), pair_3(draw))
    )


def _range(name: str, draw: random.Random) -> Constraint:
    op = draw.choice([Content.LT, Content.LE, Content.GT, Content.GE])
    return Constraint(name, op, draw.randrange(_TOP))


_MAKERS: dict[str, Callable[[random.Random], Filter]] = {
    "pair-1": pair_1,
    "pair-3": pair_3,
    "conjunction": conjunction,
    "bag": bag,
}


def events(case: str, n: int) -> list[Notification]:
    """Events that lie on the operands of the case, between them and beyond them."""
    draw = random.Random(f"covering events {case}")

    def value() -> float | Bag:
        if case == "bag":
            return Bag(draw.choices(range(-1, 7), k=draw.randint(0, 5)))
        return draw.randrange(-1, 2 * _TOP + 2) / draw.choice((1, 2))

    words = ["I", "IB", "IBM", "IC", "X"]
    return [Notification({"a": value(), "b": value(), "s": draw.choice(words)}) for _ in range(n)]


def seconds(work: Callable[[], object], rounds: int) -> float:
    """The median time of one round, without the collector's pauses."""
    taken = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
        gc.enable()
    return median(taken)


def unsound(pairs: list[tuple[Filter, Filter]], tried: list[Notification]) -> dict[str, object]:
    """What to add to a line if a covered pair has a counterexample."""
    for f, g in pairs:
        if filter_covers(f, g):
            for event in tried:
                if filter_matches(g, event) and not filter_matches(f, event):
                    return {"void": True, "reason": f"{f!r} does not cover {g!r}: {event!r}"}
    return {}


def bench_pairs(report: Report, case: str, quick: bool) -> None:
    draw = random.Random(f"covering {case}")
    made = [_MAKERS[case](draw) for _ in range(200)]
    pairs = [(draw.choice(made), draw.choice(made)) for _ in range(2_000 if quick else 20_000)]
    void = unsound(pairs[:1_000], events(case, 200))
    rounds = 3 if quick else 7
    _report_pairs(report, case, pairs, rounds, void)


def bench_stock(report: Report, case: str, quick: bool) -> None:
    """The share counts filters that some other one covers; of two equal ones, one."""
    filters = [f for s in stock_filters(1_000 if quick else 10_000) for f in s]
    draw = random.Random("covering stock")
    by_symbol: dict[object, list[Filter]] = {}
    for f in filters:
        by_symbol.setdefault(f.constraints[0].operand, []).append(f)
    # Pairs of one symbol: a table asks no others, its index has told them apart.
    alike = [held for held in by_symbol.values() if len(held) > 1]
    pairs = [
        (f, g)
        for held in draw.choices(alike, k=2_000 if quick else 20_000)
        for f, g in [draw.sample(held, 2)]
    ]
    rounds = 3 if quick else 7
    void = unsound(pairs[:1_000], list(stock_events(500)))
    _report_pairs(report, case, pairs, rounds, void)
    covered = 0
    for held in by_symbol.values():
        distinct = list(dict.fromkeys(held))
        covered += len(held) - len(distinct)
        for g in distinct:
            covered += any(f is not g and filter_covers(f, g) for f in distinct)
    share = covered / len(filters)
    report.add(case, "share_covered", share, "1", 1, filters=len(filters), **void)


def _report_pairs(
    report: Report,
    case: str,
    pairs: list[tuple[Filter, Filter]],
    rounds: int,
    void: dict[str, object],
) -> None:
    found = sum(filter_covers(f, g) for f, g in pairs)

    def known() -> None:
        for f, g in pairs:
            filter_covers(f, g)

    def first() -> None:
        for f, g in pairs:
            facts_imply(Facts(g.constraints), f)

    extra = {"covered": round(found / len(pairs), 3), **void}
    report.add(case, "covers_per_s", len(pairs) / seconds(known, rounds), "1/s", rounds, **extra)
    report.add(case, "first_per_s", len(pairs) / seconds(first, rounds), "1/s", rounds, **extra)


def bench_canonical(report: Report, case: str, quick: bool) -> None:
    draw = random.Random("covering canonical")
    given = [untidy(draw) for _ in range(300 if quick else 2_000)]
    void: dict[str, object] = {}
    tried = events(case, 50)
    for subscription in given[:200]:
        form = canonical(subscription)
        if any(matches(form, event) != matches(subscription, event) for event in tried):
            void = {"void": True, "reason": f"{form!r} is not {subscription!r}"}

    def work() -> None:
        for subscription in given:
            canonical(subscription)

    rounds = 3 if quick else 7
    report.add(case, "forms_per_s", len(given) / seconds(work, rounds), "1/s", rounds, **void)


def main() -> None:
    options = arguments("covering", CASES)
    report = Report("covering", options.json)
    for case in options.cases:
        if case == "stock":
            bench_stock(report, case, options.quick)
        elif case == "canonical":
            bench_canonical(report, case, options.quick)
        else:
            bench_pairs(report, case, options.quick)


if __name__ == "__main__":
    main()
