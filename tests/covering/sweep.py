"""A long, seeded check of covering against brute force.

    python -m tests.covering.sweep --pairs 1000000

prints one JSON object: how many pairs, how many were covered (vacuously, if G
cannot be matched), how many of those have a counterexample (unsound), how many
of the class for which completeness is promised were missed (incomplete), and
the seconds it took. Fails when either is not zero.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from kbn.covering import contradictory, filter_covers
from kbn.matching.naive import filter_matches
from kbn.model import Filter, Notification
from tests.covering.pairs import Pool
from tests.covering.witnesses import BruteForce

#: A new pool of operands after so many pairs.
EPOCH = 5_000
#: How many failures are kept for the reader.
SHOWN = 5


@dataclass
class Outcome:
    """The counters of a sweep, and the first failures."""

    pairs: int = 0
    covered: int = 0
    vacuous: int = 0
    promised: int = 0
    unsound: int = 0
    incomplete: int = 0
    failures: list[str] = field(default_factory=list)

    def failed(self, what: str, f: Filter, g: Filter, by: Notification | None = None) -> None:
        if len(self.failures) < SHOWN:
            self.failures.append(f"{what}: F={f!r} G={g!r} n={by!r}")


def pools(rng: random.Random, pairs: int) -> Iterator[tuple[Pool, BruteForce, int]]:
    for start in range(0, pairs, EPOCH):
        pool = Pool(rng, tight=start // EPOCH % 4 == 3)
        yield pool, BruteForce(pool.operands), min(EPOCH, pairs - start)


def sweep(pairs: int, seed: int = 1) -> Outcome:
    """Check so many random pairs; half of them of the class that is complete."""
    outcome = Outcome()
    rng = random.Random(seed)
    for pool, brute, count in pools(rng, pairs):
        for at in range(count):
            complete = at % 2 == 0
            f, g = pool.pair(complete=complete)
            check(outcome, brute, f, g, promised=complete and not pool.tight)
    return outcome


def check(outcome: Outcome, brute: BruteForce, f: Filter, g: Filter, *, promised: bool) -> None:
    """Hold one answer of ``filter_covers`` against brute force."""
    outcome.pairs += 1
    outcome.promised += promised
    counterexample = brute.counterexample(f, g)
    example = brute.example(g)
    if contradictory(g):
        outcome.vacuous += 1
        if example is not None and filter_matches(g, example):
            outcome.unsound += 1
            outcome.failed("not contradictory", f, g, example)
    elif example is None and promised:
        outcome.incomplete += 1
        outcome.failed("contradictory", f, g)
    if filter_covers(f, g):
        outcome.covered += 1
        # The definition itself has the last word on every counterexample.
        if counterexample is not None:
            assert filter_matches(g, counterexample)
            assert not filter_matches(f, counterexample)
            outcome.unsound += 1
            outcome.failed("unsound", f, g, counterexample)
    elif counterexample is None and promised:
        outcome.incomplete += 1
        outcome.failed("incomplete", f, g)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.covering.sweep")
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.perf_counter()
    outcome = sweep(given.pairs, given.seed)
    line = {
        "pairs": outcome.pairs,
        "covered": outcome.covered,
        "vacuous": outcome.vacuous,
        "promised": outcome.promised,
        "unsound": outcome.unsound,
        "incomplete": outcome.incomplete,
        "seconds": round(time.perf_counter() - began, 1),
    }
    sys.stdout.write(json.dumps(line) + "\n")
    for failure in outcome.failures:
        sys.stderr.write(failure + "\n")
    return 1 if outcome.unsound or outcome.incomplete else 0


if __name__ == "__main__":
    raise SystemExit(main())
