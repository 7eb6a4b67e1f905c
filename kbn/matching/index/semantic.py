"""Semantic operators: from a term to the operands it stands in relation to.

Which operands a value reaches is asked of the knowledge once, and remembered
as long as the knowledge is the same object: an ontology is never changed in
place, a new one is a new object. Operands that came later are asked when the
value is next seen; those that went are taken out of the answers that name them.

A value below many terms reaches many nodes, so a value that keeps coming gets
one node laid together from them, until one of them changes. Then a
semantic constraint costs what an equality costs.

Cost: a value seen before, one probe; a new one, one question per operand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from itertools import accumulate
from typing import Generic, TypeVar

from kbn.matching.index.checks import Check, Probe
from kbn.matching.world import Knowledge
from kbn.model.operators import Related, Semantic
from kbn.model.values import Bag, Scalar, Value, identity

N = TypeVar("N")

#: So many values are remembered; the one that came first makes room.
REMEMBERED = 2048
#: A value's nodes are laid together when they were walked so often without a change,
OFTEN = 8
#: and as long as all views of this operator together do not hold more keys than this.
HELD = 200_000

#: Lays nodes together, unless they hold more keys than allowed; says how many they held.
Merge = Callable[[Collection[N], int], tuple[list[N], int] | None]


class _Operand(Generic[N]):
    """An operand with its child, and the values whose answers name it."""

    __slots__ = ("child", "key", "named_by", "term")

    def __init__(self, key: Hashable, term: Scalar, child: N) -> None:
        self.key = key
        self.term = term
        self.child = child
        self.named_by: set[_Answer[N]] = set()


class _Answer(Generic[N]):
    """What a value reaches among the first ``asked`` operands of the log.

    Invariant: ``view``, if there is one, stands for all that is ``reached`` as it
    is now; ``held`` is how many keys it took.
    """

    __slots__ = ("asked", "held", "reached", "uses", "view")

    def __init__(self) -> None:
        self.asked = 0
        self.reached: dict[Hashable, N] = {}
        self.view: list[N] | None = None
        self.held = 0
        self.uses = 0


class Terms(Generic[N]):
    """``value op operand`` for one semantic operator.

    Invariants: ``_log`` holds every operand in the order it came, None where one
    has gone; ``_gone`` counts those; ``_operands`` tells each one's place in it.
    An operand is ``named_by`` exactly the remembered answers that reach it.
    """

    __slots__ = (
        *("_answers", "_gone", "_held", "_knowledge", "_log", "_merge", "_op", "_operands"),
    )

    def __init__(self, op: Semantic | Related, merge: Merge[N]) -> None:
        self._op = op
        self._merge = merge
        self._held = 0
        self._operands: dict[Hashable, int] = {}
        self._log: list[_Operand[N] | None] = []
        self._gone = 0
        self._answers: dict[Hashable, _Answer[N]] = {}
        self._knowledge: Knowledge | None = None

    def __len__(self) -> int:
        return len(self._operands)

    def child(self, key: Hashable) -> N | None:
        operand = self._log[self._operands[key]] if key in self._operands else None
        return None if operand is None else operand.child

    def grow(self, key: Hashable, check: Check | None, child: N) -> None:
        assert check is not None, "a semantic operand comes with its constraint"
        term = check.constraint.value
        assert not isinstance(term, Bag), "a bag is no term"
        self._operands[key] = len(self._log)
        self._log.append(_Operand(key, term, child))

    def cut(self, key: Hashable) -> None:
        place = self._operands.pop(key)
        operand = self._log[place]
        assert operand is not None
        self._log[place] = None
        for answer in operand.named_by:
            del answer.reached[key]
            self._outdate(answer)
        self._gone += 1
        if self._gone > 64 and self._gone > len(self._operands):
            self._close_ranks()

    def reach(self, value: Value, probe: Probe) -> Iterable[N]:
        knowledge = probe.world.knowledge
        if knowledge is not self._knowledge:
            self._forget()
            self._knowledge = knowledge
        if isinstance(value, Bag):
            return ()
        key = value if type(value) is str else identity(value)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._open(key)
        if answer.asked < len(self._log):
            self._ask(answer, value, knowledge)
        return answer.view or self._walk(answer)

    def touch(self, key: Hashable) -> None:
        """What lies below this operand has changed: views that show it are outdated."""
        operand = self._log[self._operands[key]]
        assert operand is not None
        for answer in operand.named_by:
            self._outdate(answer)

    def _walk(self, answer: _Answer[N]) -> Iterable[N]:
        nodes = answer.reached.values()
        answer.uses += 1
        if answer.uses == OFTEN and len(nodes) > 1:
            merged = self._merge(nodes, HELD - self._held)
            if merged is not None:
                answer.view, answer.held = merged
                self._held += answer.held
        return nodes

    def _outdate(self, answer: _Answer[N]) -> None:
        self._held -= answer.held
        answer.view, answer.held, answer.uses = None, 0, 0

    def _ask(self, answer: _Answer[N], value: Scalar, knowledge: Knowledge) -> None:
        for operand in self._log[answer.asked :]:
            # A question that raises leaves the answer where it was.
            if operand is not None and knowledge.holds(self._op, value, operand.term):
                answer.reached[operand.key] = operand.child
                self._outdate(answer)
                operand.named_by.add(answer)
            answer.asked += 1

    def _open(self, key: Hashable) -> _Answer[N]:
        """An answer that knows nothing yet; the oldest makes room for it."""
        if len(self._answers) >= REMEMBERED:
            oldest = self._answers.pop(next(iter(self._answers)))
            self._outdate(oldest)
            for named in oldest.reached:
                operand = self._log[self._operands[named]]
                if operand is not None:
                    operand.named_by.discard(oldest)
        answer = self._answers[key] = _Answer()
        return answer

    def _forget(self) -> None:
        self._answers.clear()
        self._held = 0
        for operand in self._log:
            if operand is not None:
                operand.named_by.clear()

    def _close_ranks(self) -> None:
        """Drop the gaps of the log; answers keep what they know."""
        before = [0, *accumulate(operand is not None for operand in self._log)]
        for answer in self._answers.values():
            answer.asked = before[answer.asked]
        self._log = [operand for operand in self._log if operand is not None]
        self._operands = {o.key: i for i, o in enumerate(self._log) if o is not None}
        self._gone = 0
