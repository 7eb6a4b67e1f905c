"""Brute force for covering: enough values to tell any two filters apart.

The satisfying set of ``= != < <= > >= prefix any`` changes only at the operands
and at the successors of prefixes. So the operands, one value in each gap between
them, one beyond each end, and every value of the small classes decide covering
for filters over a fixed set of operands. For ``suffix``, ``contains`` and the bag
operators the words glued together and all small bags are a strong sample.

Names are independent and a filter is a conjunction, so nothing needs whole
notifications: what matches G on a name, as a set of witnesses, is held against
each constraint of F on it. Sets are the bits of one integer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from itertools import combinations_with_replacement, pairwise

from kbn.covering.region import successor
from kbn.matching.content import NUMBER, STRING, is_nan, type_class
from kbn.matching.naive import value_holds
from kbn.matching.world import NOTHING_KNOWN
from kbn.model import Bag, Constraint, Filter, Notification, Scalar, Value
from kbn.model.values import LONG_MAX, LONG_MIN, identity, members_of

NAN = math.nan
#: In no operand of any test, so it says what holds of a value nobody thought of.
FRESH = "~"


def number_witnesses(operands: Iterable[float]) -> list[Value]:
    points = sorted({-math.inf, -1e9, 1e9, math.inf, *(x for x in operands if not is_nan(x))})
    gaps = [a + (b - a) / 2 for a, b in pairwise(points) if _finite(a, b)]
    found: list[Value] = []
    for point in [*points, *gaps]:
        found.append(float(point))
        if float(point).is_integer() and LONG_MIN <= point <= LONG_MAX:
            found.append(int(point))
    return found


def string_witnesses(operands: Iterable[str]) -> list[Value]:
    words = sorted({"", *operands})
    bounds = {*words, *(end for end in map(successor, words) if end is not None)}
    found = {*bounds, *(bound + "\x00" for bound in bounds), FRESH}
    found |= {a + b for a in words for b in words}
    found |= {FRESH + word for word in words} | {word + FRESH for word in words}
    found |= {a + FRESH + b for a in words[:5] for b in words[:5]}
    return sorted(found)


def bag_witnesses(members: list[Scalar], most: int = 3) -> list[Value]:
    return [
        Bag(chosen)
        for size in range(most + 1)
        for chosen in combinations_with_replacement(members, size)
    ]


def witnesses(operands: Iterable[Value]) -> list[Value]:
    """Values of every class, near the operands and between them."""
    given = list(operands)
    scalars = {identity(m): m for value in given for m in members_of(value)}
    numbers = [s for s in scalars.values() if type_class(s) == NUMBER]
    strings = [s for s in scalars.values() if type_class(s) == STRING]
    found: list[Value] = [None, False, True, NAN]
    found += number_witnesses(numbers)  # type: ignore[arg-type]
    found += string_witnesses(strings)  # type: ignore[arg-type]
    found += [value for value in given if isinstance(value, Bag)]
    found += bag_witnesses([*dict.fromkeys(numbers[:3]), 1.25, *strings[:2], FRESH, True, None], 2)
    found += bag_witnesses([*dict.fromkeys(numbers[:3]), 1.25, *strings[:2]], 3)
    found += [Bag([NAN]), Bag([NAN, 1])]
    return list({identity(value): value for value in found}.values())


def _finite(a: float, b: float) -> bool:
    return math.isfinite(a) and math.isfinite(b)


class BruteForce:
    """The definition of matching, tabulated for one set of witnesses."""

    def __init__(self, operands: Iterable[Value]) -> None:
        self.values = witnesses(operands)
        self._masks: dict[object, int] = {}

    def satisfying(self, constraint: Constraint) -> int:
        """The set of witnesses for which the constraint holds."""
        key = (constraint.op, identity(constraint.value))
        mask = self._masks.get(key)
        if mask is None:
            mask = 0
            for bit, value in enumerate(self.values):
                knowledge = NOTHING_KNOWN.knowledge
                if value_holds(constraint.op, value, constraint.value, knowledge):
                    mask |= 1 << bit
            self._masks[key] = mask
        return mask

    def possible(self, g: Filter) -> dict[str, int]:
        """Which witnesses each name of ``g`` may have; absent names may have any."""
        by_name: dict[str, list[int]] = {}
        for constraint in g:
            by_name.setdefault(constraint.name, []).append(self.satisfying(constraint))
        return {name: reduce(int.__and__, masks) for name, masks in by_name.items()}

    def counterexample(self, f: Filter, g: Filter) -> Notification | None:
        """A notification of witnesses that matches ``g`` and not ``f``."""
        possible = self.possible(g)
        if not all(possible.values()):
            return None
        for constraint in f:
            if constraint.name not in possible:
                return self._notification(possible)
            bad = possible[constraint.name] & ~self.satisfying(constraint)
            if bad:
                return self._notification({**possible, constraint.name: bad})
        return None

    def example(self, g: Filter) -> Notification | None:
        """A notification of witnesses that matches ``g``."""
        possible = self.possible(g)
        return self._notification(possible) if all(possible.values()) else None

    def _notification(self, masks: dict[str, int]) -> Notification:
        return Notification(
            {name: self.values[(mask & -mask).bit_length() - 1] for name, mask in masks.items()}
        )
