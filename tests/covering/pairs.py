"""Pairs of filters of which one is likely to cover the other.

Operands come from a small pool that is drawn anew from time to time; F is made
by weakening what G asks, so that ``covers`` says yes often enough to be caught
lying, and by the same moves in the wrong direction, so that it says no.
"""

from __future__ import annotations

import math
import random

from kbn.matching.content import type_class
from kbn.model import Bag, Constraint, Filter, Scalar, Value
from kbn.model.operators import ORDERINGS, STRING_OPERATORS, BagKind, BagOp, Content

NUMBERS: list[Scalar] = [-2, -1.5, 0, -0.0, 1, 1.0, 1.5, 2, 2.5, 3, 3.0, math.inf, -math.inf]
WORDS: list[Scalar] = ["", "a", "ab", "abc", "b", "ba", "bab", "c", "\ud7ff", "\U0010ffff"]
WORDS += ["a\U0010ffff", "b\ud7ff"]
#: Neighbours without a value between them: sound to use, too tight to prove a gap with.
TIGHT: list[Scalar] = [5e-324, 0.0, 2**53, 2.0**53, 2**53 + 1, 2**63 - 1, "a\x00", "b\x00"]
ODD: list[Scalar] = [True, False, None, math.nan]

COMPLETE = frozenset(Content) - {Content.SUFFIX, Content.CONTAINS}
_CONTENT = list(Content)
_SUBS = [None, *_CONTENT]


class Pool:
    """A few operands that stand close together, and filters over them."""

    def __init__(self, rng: random.Random, *, tight: bool = False) -> None:
        self.rng = rng
        self.tight = tight
        numbers = rng.sample(NUMBERS, 5)
        words = rng.sample(WORDS, 4)
        if self.tight:
            numbers = numbers[:3] + rng.sample([x for x in TIGHT if not isinstance(x, str)], 3)
            words += [x for x in TIGHT if isinstance(x, str)]
        self.scalars: list[Value] = [*numbers, *words, *rng.sample(ODD, 3)]
        members = [*numbers[:3], *words[:2], rng.choice(ODD)]
        self.bags = [
            Bag(rng.choices(members, k=size)) for size in (0, 1, 1, 2, 2, 2, 3, rng.randint(1, 4))
        ]
        self.operands: list[Value] = [*self.scalars, *self.bags]

    def constraint(self, name: str) -> Constraint:
        """One of a kind of content or bag constraint, or a content one with a bag."""
        rng = self.rng
        if rng.random() < 0.25:
            op = BagOp(rng.choice(list(BagKind)), rng.choice(_SUBS))
            return Constraint(name, op, rng.choice(self.bags))
        return self._content(name, rng.choice(_CONTENT))

    def complete_constraint(self, name: str) -> Constraint:
        """One of the class for which covering promises to be complete."""
        return self._content(name, self.rng.choice(_COMPLETE))

    def _content(self, name: str, op: Content) -> Constraint:
        rng = self.rng
        if op is Content.ANY:
            return Constraint(name, op)
        if op in STRING_OPERATORS and rng.random() < 0.9:
            return Constraint(name, op, rng.choice([s for s in self.scalars if type(s) is str]))
        if op in ORDERINGS or rng.random() < 0.8:
            return Constraint(name, op, rng.choice(self.scalars))
        return Constraint(name, op, rng.choice(self.bags))

    def weakened(self, constraint: Constraint) -> Constraint:
        """A constraint that looks like it and may follow from it."""
        rng = self.rng
        op, operand = constraint.op, constraint.value
        move = rng.randrange(5)
        if move == 0:
            return constraint
        if isinstance(op, BagOp):
            if move <= 2:
                op = BagOp(rng.choice(list(BagKind)), op.sub if move == 1 else rng.choice(_SUBS))
            return Constraint(constraint.name, op, operand if move == 1 else rng.choice(self.bags))
        if op is Content.ANY:
            return constraint
        if move == 1:
            return Constraint(constraint.name, rng.choice(_WEAKER[op]), operand)
        if move == 2:
            return Constraint(constraint.name, rng.choice(_WEAKER[op]), rng.choice(self.scalars))
        if move == 3:
            return Constraint(constraint.name, op, rng.choice(self.scalars))
        return Constraint(constraint.name, Content.NE, rng.choice(self.operands))

    def pair(self, *, complete: bool) -> tuple[Filter, Filter]:
        """F and G; with ``complete`` both of the class of that name."""
        rng = self.rng
        draw = self.complete_constraint if complete else self.constraint
        g: list[Constraint] = []
        for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
            drawn = [draw(rng.choice("aaab")) for _ in range(4)]
            # Classes that do not meet only make one more contradiction; those are plenty.
            g.append(next((c for c in drawn if not any(_clash(c, d) for d in g)), drawn[0]))
        f = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            made = self.weakened(rng.choice(g)) if rng.random() < 0.8 else draw(rng.choice("aab"))
            f.append(made if not complete or made.op in COMPLETE else draw("a"))
        return Filter(f), Filter(g)


def _clash(c: Constraint, d: Constraint) -> bool:
    """Whether the two ask one name for values of different classes."""
    return (
        c.name == d.name
        and isinstance(c.op, Content)
        and isinstance(d.op, Content)
        and not {c.op, d.op} & {Content.NE, Content.ANY}
        and (type_class(c.value) != type_class(d.value) or Content.EQ in (c.op, d.op))
    )


_COMPLETE = sorted(COMPLETE, key=_CONTENT.index)

_WEAKER: dict[Content, list[Content]] = {
    Content.EQ: [op for op in _CONTENT if op is not Content.ANY],
    Content.NE: [Content.NE],
    Content.LT: [Content.LT, Content.LE, Content.NE],
    Content.LE: [Content.LE, Content.LT, Content.NE],
    Content.GT: [Content.GT, Content.GE, Content.NE],
    Content.GE: [Content.GE, Content.GT, Content.NE],
    Content.PREFIX: [Content.PREFIX, Content.GE, Content.LT, Content.CONTAINS, Content.NE],
    Content.SUFFIX: [Content.SUFFIX, Content.CONTAINS, Content.GE, Content.NE],
    Content.CONTAINS: [Content.CONTAINS, Content.GE, Content.NE],
}
