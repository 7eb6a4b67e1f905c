"""Semantic operators: from a term to the operands it stands in relation to.

Which operands a value reaches is asked of the knowledge once, and remembered
as long as the knowledge is the same object: an ontology is never changed in
place, a new one is a new object. Operands that came later are asked when the
value is next seen; those that went are taken out of the answers that name them.

A value below many terms reaches many nodes, so a value that keeps coming gets
one node laid together from them, until one of them changes. Then a
semantic constraint costs what an equality costs.

Knowledge that lists what a value satisfies (``Reaching``) is asked once per value,
and an operand that comes later finds the values it concerns by itself; other
knowledge is asked one question per operand.

Other knowledge is told ahead with ``prepare``, in slices: what operands mean under it
is then laid out beside what they mean now, and the change itself is one reference.

Cost: a value seen before, one probe; a new one, what it satisfies, or one question
per operand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from itertools import accumulate
from typing import Generic, TypeVar

from kbn.matching.index.checks import Check, Probe
from kbn.matching.world import Knowledge, Reaching
from kbn.model.operators import Related, Semantic
from kbn.model.values import Bag, Scalar, Value, identity

N = TypeVar("N")

#: So many values are remembered; the one that came first makes room.
REMEMBERED = 2048
#: A value that satisfies more operands than this is asked about each instead.
LISTED = 1024
#: A value's nodes are laid together when they were walked so often without a change,
OFTEN = 8
#: and as long as all views of this operator together do not hold more keys than this.
HELD = 200_000
#: So many operands get their meaning in one slice of ``prepare``.
SLICE = 500

#: Lays nodes together, unless they hold more keys than allowed; says how many they held.
Merge = Callable[[Collection[N], int], tuple[list[N], int] | None]


class _Operand(Generic[N]):
    """An operand with its child."""

    __slots__ = ("child", "key", "term")

    def __init__(self, key: Hashable, term: Scalar, child: N) -> None:
        self.key = key
        self.term = term
        self.child = child


class _Meanings(Generic[N]):
    """What the operands mean to one knowledge, if it is ``Reaching``: both ways."""

    __slots__ = ("alike", "complete", "knowledge", "of", "reaching")

    def __init__(self, knowledge: Knowledge | None) -> None:
        self.knowledge = knowledge
        self.reaching: Reaching | None = knowledge if isinstance(knowledge, Reaching) else None
        #: By the key of an operand; and the operands by what they mean.
        self.of: dict[Hashable, Hashable] = {}
        self.alike: dict[Hashable, dict[Hashable, _Operand[N]]] = {}
        #: Whether every operand was given its meaning.
        self.complete = False

    def give(self, op: Semantic | Related, operand: _Operand[N]) -> None:
        if self.reaching is None:
            return
        means = self.reaching.operand_key(op, operand.term)
        if means is not None:
            self.of[operand.key] = means
            self.alike.setdefault(means, {})[operand.key] = operand

    def take(self, key: Hashable) -> None:
        means = self.of.pop(key, None)
        alike = self.alike.get(means)
        if alike is not None:
            alike.pop(key, None)
            if not alike:
                del self.alike[means]


class _Answer(Generic[N]):
    """What a value reaches.

    ``satisfies`` are the keys of all it could reach, if they could be listed; then it
    is always up to date. Else it knows the first ``asked`` operands of the log.
    Invariant: ``view``, if there is one, stands for all that is ``reached`` as it
    is now; ``held`` is how many keys it took.
    """

    __slots__ = ("asked", "held", "key", "reached", "satisfies", "uses", "view")

    def __init__(self, key: Hashable, satisfies: Collection[Hashable] | None) -> None:
        self.key = key
        self.satisfies = satisfies
        self.asked = 0
        self.reached: dict[Hashable, N] = {}
        self.view: list[N] | None = None
        self.held = 0
        self.uses = 0


class Terms(Generic[N]):
    """``value op operand`` for one semantic operator.

    Invariants: ``_log`` holds every operand in the order it came, None where one
    has gone; ``_gone`` counts those; ``_operands`` tells each one's place in it.
    ``_named_by`` has, by operand, exactly the remembered answers that reach it.
    Under ``Reaching`` knowledge ``_meanings`` has every operand under what it means,
    and ``_concerned`` every listed answer under all it satisfies; ``_views`` are the
    views of listed answers to strings, for the shortest way. ``_ahead`` has the
    meanings under knowledge that is to come, as far as they were given.
    """

    __slots__ = (
        *("_ahead", "_answers", "_concerned", "_gone", "_held", "_knowledge", "_log"),
        *("_meanings", "_merge", "_named_by", "_op", "_operands", "_views"),
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
        self._meanings: _Meanings[N] = _Meanings(None)
        self._ahead: _Meanings[N] | None = None
        self._named_by: dict[Hashable, set[_Answer[N]]] = {}
        self._concerned: dict[Hashable, set[_Answer[N]]] = {}
        self._views: dict[object, list[N]] = {}

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
        operand = _Operand(key, term, child)
        self._log.append(operand)
        self._meanings.give(self._op, operand)
        if self._ahead is not None:
            self._ahead.give(self._op, operand)
        means = self._meanings.of.get(key)
        if means is not None:
            for answer in self._concerned.get(means, ()):
                self._name(answer, operand)

    def cut(self, key: Hashable) -> None:
        place = self._operands.pop(key)
        operand = self._log[place]
        assert operand is not None
        self._log[place] = None
        for answer in self._named_by.pop(key, ()):
            del answer.reached[key]
            self._outdate(answer)
        self._meanings.take(key)
        if self._ahead is not None:
            self._ahead.take(key)
        self._gone += 1
        if self._gone > 64 and self._gone > len(self._operands):
            self._close_ranks()

    def reach(self, value: Value, probe: Probe) -> Iterable[N]:
        knowledge = probe.world.knowledge
        if knowledge is self._knowledge:
            view = self._views.get(value)
            if view is not None:
                return view
        else:
            self._learn(knowledge)
        if isinstance(value, Bag):
            return ()
        key = value if type(value) is str else identity(value)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._open(key, value)
        if answer.satisfies is None and answer.asked < len(self._log):
            self._ask(answer, value, knowledge)
        return self._walk(answer) if answer.view is None else answer.view

    def touch(self, key: Hashable) -> None:
        """What lies below this operand has changed: views that show it are outdated."""
        for answer in self._named_by.get(key, ()):
            self._outdate(answer)

    def prepare(self, knowledge: Knowledge) -> Iterator[None]:
        """Give the operands their meaning under knowledge to come; yields between slices.

        Operands may come and go meanwhile. The last to prepare counts.
        """
        ahead: _Meanings[N] = _Meanings(knowledge)
        self._ahead = ahead
        for at, operand in enumerate(list(self._log), 1):
            if operand is not None:
                place = self._operands.get(operand.key)
                if place is not None and self._log[place] is operand:
                    ahead.give(self._op, operand)
            if at % SLICE == 0:
                yield
                if self._ahead is not ahead:
                    return
        ahead.complete = True

    def _walk(self, answer: _Answer[N]) -> Iterable[N]:
        nodes = answer.reached.values()
        answer.uses += 1
        if answer.uses == OFTEN:
            merged = self._merge(nodes, HELD - self._held) if len(nodes) > 1 else (list(nodes), 0)
            if merged is not None:
                answer.view, answer.held = merged
                self._held += answer.held
                if answer.satisfies is not None and isinstance(answer.key, str):
                    self._views[answer.key] = answer.view
        return nodes

    def _outdate(self, answer: _Answer[N]) -> None:
        if answer.view is not None:
            self._views.pop(answer.key, None)
            self._held -= answer.held
            answer.view, answer.held = None, 0
        answer.uses = 0

    def _name(self, answer: _Answer[N], operand: _Operand[N]) -> None:
        answer.reached[operand.key] = operand.child
        self._named_by.setdefault(operand.key, set()).add(answer)
        self._outdate(answer)

    def _ask(self, answer: _Answer[N], value: Scalar, knowledge: Knowledge) -> None:
        for operand in self._log[answer.asked :]:
            # A question that raises leaves the answer where it was.
            if operand is not None and knowledge.holds(self._op, value, operand.term):
                self._name(answer, operand)
            answer.asked += 1

    def _open(self, key: Hashable, value: Scalar) -> _Answer[N]:
        """An answer, complete if what it satisfies can be listed; the oldest makes room."""
        if len(self._answers) >= REMEMBERED:
            self._drop(self._answers.pop(next(iter(self._answers))))
        satisfies = None
        reaching = self._meanings.reaching
        if reaching is not None:
            satisfies = reaching.operand_keys(self._op, value)
            if satisfies is not None and len(satisfies) > LISTED:
                satisfies = None
        answer = self._answers[key] = _Answer[N](key, satisfies)
        for means in satisfies or ():
            self._concerned.setdefault(means, set()).add(answer)
            for operand in self._meanings.alike.get(means, {}).values():
                self._name(answer, operand)
        return answer

    def _drop(self, oldest: _Answer[N]) -> None:
        self._outdate(oldest)
        for named in oldest.reached:
            self._named_by[named].discard(oldest)
        for means in oldest.satisfies or ():
            others = self._concerned.get(means)
            if others is not None:
                others.discard(oldest)
                if not others:
                    del self._concerned[means]

    def _learn(self, knowledge: Knowledge) -> None:
        """Other knowledge: all answers are forgotten, operands mean something else."""
        self._knowledge = knowledge
        self._answers, self._views, self._concerned, self._named_by = {}, {}, {}, {}
        self._held = 0
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.complete and ahead.knowledge is knowledge:
            self._meanings = ahead
            return
        self._meanings = _Meanings(knowledge)
        for operand in self._log:
            if operand is not None:
                self._meanings.give(self._op, operand)

    def _close_ranks(self) -> None:
        """Drop the gaps of the log; answers keep what they know."""
        before = [0, *accumulate(operand is not None for operand in self._log)]
        for answer in self._answers.values():
            answer.asked = before[answer.asked]
        self._log = [operand for operand in self._log if operand is not None]
        self._operands = {o.key: i for i, o in enumerate(self._log) if o is not None}
        self._gone = 0
