"""The covering order for people: each subscription below a tightest one that covers it.

Law: a parent covers its child, and no other subscription stands between them.
Of equivalent ones the first is the parent of the others. Cost: a covering test
for each pair; meant for a screenful, not for routing.
"""

from __future__ import annotations

from collections.abc import Sequence

from kbn.covering.filters import covers
from kbn.covering.semantic import TermOrder
from kbn.model.filters import Subscription


def covering_tree(
    asked: Sequence[Subscription], order: TermOrder | None = None
) -> list[int | None]:
    """For each subscription the index of its parent, None for the maximal ones."""
    count = len(asked)
    above: list[set[int]] = [set() for _ in asked]
    for i in range(count):
        for j in range(count):
            if i != j and covers(asked[i], asked[j], order=order):
                above[j].add(i)
    for j, coverers in enumerate(above):
        # Of two that cover each other the later one stays below.
        coverers -= {i for i in coverers if j in above[i] and i > j}
    return [max(c, key=lambda i: (len(above[i]), i)) if c else None for c in above]
