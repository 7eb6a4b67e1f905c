"""What a subscription costs to come and to go, while 100,000 others are there.

``churn-N``: N subscriptions of the stock load, each of its own subscriber, in the
subscription table with the predicate index, and above it the covering forest
that tells a broker what to ask of its master. Then each step adds one and takes
another away; the figures are those of the whole step through table and forest.
``link-N`` is the same with one subscriber for all, as the link of a child broker is:
there a new subscription is first compared with all that the link holds.

Before timing is believed, the filters forwarded and not withdrawn are compared
with the roots of a forest made afresh from what is left; a difference makes the
case void.
"""

from __future__ import annotations

import gc
import random
import time
from statistics import median, quantiles

from benchmarks._report import Report, arguments
from benchmarks.loads import range_filters, stock_filters
from kbn.covering import filter_covers
from kbn.model import Filter, Subscription
from kbn.routing.table import Change, Subscriber, SubscriptionTable
from kbn.routing.upward import UpwardFilters

CASES = ("churn-100000", "churn-range-100000", "link-10000")


class Rig:
    """A table, the filters above it, and what the master would know."""

    def __init__(self, shared: bool) -> None:
        self.table: SubscriptionTable[None] = SubscriptionTable()
        self.upward = UpwardFilters()
        self.forwarded: set[Filter] = set()
        self.shared = Subscriber[None]("link", None) if shared else None

    def insert(self, number: int, asked: Subscription) -> None:
        subscriber = self.shared or Subscriber(f"s{number}", None)
        self._follow(self.table.subscribe(subscriber, asked))

    def remove(self, number: int, asked: Subscription) -> None:
        if self.shared is None:
            self._follow(self.table.unsubscribe(f"s{number}"))
        else:
            self._follow(self.table.unsubscribe(self.shared.id, asked))

    def _follow(self, change: Change[None]) -> None:
        forward, withdraw = self.upward.apply(change)
        self.forwarded.update(forward)
        self.forwarded.difference_update(withdraw)

    def fault(self) -> dict[str, object]:
        """Why the figures must not be believed, if so."""
        if self.forwarded != set(self.upward.roots()):
            return {"void": True, "reason": "what was forwarded is not what is maximal"}
        afresh = UpwardFilters()
        afresh.apply(Change(tuple(self.table.units.values())))
        mine, theirs = set(self.forwarded), set(afresh.roots())
        for f in mine ^ theirs:
            others = theirs if f in mine else mine
            if not any(filter_covers(g, f) and filter_covers(f, g) for g in others):
                return {"void": True, "reason": f"{f!r} is maximal in one forest only"}
        return {}


def churn(report: Report, case: str, quick: bool) -> None:
    size = int(case.rsplit("-", 1)[1])
    steps = 500 if quick else 5000
    load = range_filters if "range" in case else stock_filters
    filters = list(load(size + steps))
    rig = Rig(shared=case.startswith("link"))
    for number, asked in enumerate(filters[:size]):
        rig.insert(number, asked)
    leaving = random.Random("leaving").sample(range(size), steps)
    inserted, removed = [], []
    gc.collect()
    gc.freeze()
    for number, gone in enumerate(leaving, size):
        began = time.perf_counter()
        rig.insert(number, filters[number])
        added = time.perf_counter()
        rig.remove(gone, filters[gone])
        inserted.append((added - began) * 1e6)
        removed.append((time.perf_counter() - added) * 1e6)
    gc.unfreeze()
    extra: dict[str, object] = {"roots": len(rig.forwarded), **rig.fault()}
    for name, taken in (("insert", inserted), ("remove", removed)):
        report.add(case, f"{name}_us_p50", median(taken), "us", steps, **extra)
        report.add(case, f"{name}_us_p99", quantiles(taken, n=100)[98], "us", steps, **extra)
        report.add(case, f"{name}_us_max", max(taken), "us", steps, **extra)


def main() -> None:
    options = arguments("subscribe", CASES)
    report = Report("subscribe", options.json)
    for case in options.cases:
        churn(report, case, options.quick)


if __name__ == "__main__":
    main()
