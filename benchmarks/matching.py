"""How fast the predicate index answers: ``python -m benchmarks.matching --json``.

``stock-N`` and ``range-N`` (see ``loads``): publications per second, the answer
being the materialised set of subscriber ids; how many times faster than asking
each filter (``naive``); how many match. The answers of both are compared first.
``stock-growth``: what a publication costs against 100,000 filters, over what it
costs against 1,000 (``cost_ratio``); the same after subtracting from both what
it takes to make a set of the ids alone (``cost_ratio_beside_matches``); and the
growth of the matches. ``churn-index-100000``:
adding to and removing from a full index, alone.

Rounds of index and naive (or of small and large) alternate, so that a busy
machine disturbs both; every figure is the median of its rounds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from statistics import median, quantiles
from typing import NamedTuple

from benchmarks._report import Report, arguments
from benchmarks.loads import range_events, range_filters, stock_events, stock_filters
from kbn.matching.index import PredicateIndex
from kbn.matching.naive import matches
from kbn.model import Notification, Subscription

SIZES = (1000, 5000, 20_000, 100_000)
LOADS: dict[
    str, tuple[Callable[[int], Iterator[Subscription]], Callable[[int], Iterator[Notification]]]
] = {"stock": (stock_filters, stock_events), "range": (range_filters, range_events)}
#: Events per round: many for the index, few for naive, which asks every filter.
EVENTS = {"stock": 2000, "range": 200}
CASES = (
    *(f"{load}-{n}" for load in LOADS for n in SIZES),
    "stock-growth",
    "churn-index-100000",
)


class Rig(NamedTuple):
    """A load, ready to be run."""

    filters: list[Subscription]
    events: list[Notification]
    index: PredicateIndex

    def naive(self, event: Notification) -> set[int]:
        return {key for key, asked in enumerate(self.filters) if matches(asked, event)}

    def index_round(self) -> float:
        """Seconds per publication."""
        match = self.index.match
        began = time.perf_counter()
        for event in self.events:
            match(event)
        return (time.perf_counter() - began) / len(self.events)

    def naive_round(self, events: Sequence[Notification]) -> float:
        began = time.perf_counter()
        for event in events:
            self.naive(event)
        return (time.perf_counter() - began) / len(events)

    def matches_per_publication(self) -> float:
        return sum(len(self.index.match(event)) for event in self.events) / len(self.events)


def set_round(answers: Sequence[list[Hashable]]) -> float:
    """Seconds per publication to make a set of ids that are known already."""
    began = time.perf_counter()
    for answer in answers:
        set(answer)
    return (time.perf_counter() - began) / len(answers)


def rig(load: str, n: int) -> Rig:
    make_filters, make_events = LOADS[load]
    filters = list(make_filters(n))
    index = PredicateIndex()
    for key, asked in enumerate(filters):
        index.add(key, asked)
    return Rig(filters, list(make_events(EVENTS[load])), index)


def speed(report: Report, case: str, rounds: int) -> None:
    load, size = case.split("-")
    built = rig(load, int(size))
    few = max(2, 20_000 // int(size))
    compared = built.events[: 2 * few]
    different = sum(built.naive(event) != built.index.match(event) for event in compared)
    void: dict[str, object] = {}
    if different:
        reason = f"{different} of {len(compared)} answers differ from naive"
        void = {"void": True, "reason": reason}
    fast, slow = [], []
    for turn in range(rounds):
        at = turn * few % (len(built.events) - few)
        slow.append(built.naive_round(built.events[at : at + few]))
        fast.append(built.index_round())
    ratios = [naive / index for naive, index in zip(slow, fast, strict=True)]
    found = built.matches_per_publication()
    report.add(case, "publications_per_s", 1 / median(fast), "1/s", rounds, **void)
    report.add(case, "speedup_over_naive", median(ratios), "x", rounds, **void)
    report.add(case, "matches_per_publication", found, "ids", len(built.events), **void)


def growth(report: Report, rounds: int) -> None:
    rigs = (rig("stock", SIZES[0]), rig("stock", SIZES[-1]))
    answers = [[list(each.index.match(event)) for event in each.events] for each in rigs]
    whole, beside = [], []
    for _ in range(rounds):
        small, large = (each.index_round() for each in rigs)
        few, many = map(set_round, answers)
        whole.append(large / small)
        beside.append((large - many) / (small - few))
    matched = rigs[1].matches_per_publication() / rigs[0].matches_per_publication()
    report.add("stock-growth", "cost_ratio", median(whole), "x", rounds)
    report.add("stock-growth", "cost_ratio_beside_matches", median(beside), "x", rounds)
    report.add("stock-growth", "matches_ratio", matched, "x", len(rigs[0].events))


def churn(report: Report, steps: int) -> None:
    filters = list(stock_filters(100_000 + steps))
    index = PredicateIndex()
    for key, asked in enumerate(filters[:100_000]):
        index.add(key, asked)
    leaving = random.Random("leaving").sample(range(100_000), steps)
    insert, remove = [], []
    for key, gone in enumerate(leaving, 100_000):
        began = time.perf_counter()
        index.add(key, filters[key])
        added = time.perf_counter()
        index.remove(gone)
        insert.append((added - began) * 1e6)
        remove.append((time.perf_counter() - added) * 1e6)
    for name, taken in (("insert", insert), ("remove", remove)):
        report.add("churn-index-100000", f"{name}_us_p50", median(taken), "us", steps)
        p99 = quantiles(taken, n=100)[98]
        report.add("churn-index-100000", f"{name}_us_p99", p99, "us", steps)
        report.add("churn-index-100000", f"{name}_us_max", max(taken), "us", steps)


def main() -> None:
    options = arguments("matching", CASES)
    report = Report("matching", options.json)
    rounds = 3 if options.quick else 7
    for case in options.cases:
        if case == "stock-growth":
            growth(report, rounds)
        elif case == "churn-index-100000":
            churn(report, 500 if options.quick else 5000)
        else:
            speed(report, case, rounds)


if __name__ == "__main__":
    main()
