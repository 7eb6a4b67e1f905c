"""Covering of filters and subscriptions.

Law: ``covers(F, G)``: for every notification n (and history), G matches n
implies F matches n. *Sound* always. *Complete* for ``= != < <= > >= prefix any``,
several constraints on one name and contradictions included, treating numbers
and strings as dense; bools, null and single points exact. ``suffix`` and
``contains`` are decided pairwise; everything else only soundly.

A filter is a conjunction and names are independent, so F covers G when G cannot
be met at all, or when each constraint of F follows from all of G's constraints
on that name together. An absent attribute satisfies nothing: a name that G does
not constrain lets no constraint follow. Of subscriptions, each filter of G must
be covered by one of F; covering by a union is co-NP-complete and not tried.

Cost: G is read once into *facts* (some microseconds, kept for the filters seen
last); then a few comparisons for each constraint of F.
Source: after Siena's covering relation, whose gaps this closes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from kbn.covering.bag import BagFact, bag_follows
from kbn.covering.content import follows
from kbn.covering.region import Region, Test
from kbn.covering.semantic import SemanticOp, TermOrder, semantic_follows
from kbn.covering.temporal import temporal_covers
from kbn.model.filters import Constraint, Filter, Subscription
from kbn.model.operators import ORDERINGS, STRING_OPERATORS, BagOp, Content, Related, Semantic
from kbn.model.values import Bag, Value

#: How many filters' facts are kept. A table that holds more keeps ``Facts`` itself.
REMEMBERED = 1 << 16

#: Answers about pairs of subscriptions, within one question.
Asked: TypeAlias = dict[tuple[Subscription, Subscription], bool]

_SCALAR_OPERATORS = ORDERINGS | STRING_OPERATORS


class NameFacts:
    """What a filter says about one name: a region, and what no region can hold."""

    __slots__ = ("bags", "region", "semantics", "temporals")

    region: Region
    bags: tuple[BagFact, ...]
    semantics: tuple[tuple[SemanticOp, Value], ...]
    temporals: tuple[Constraint, ...]

    def __init__(self, constraints: Iterable[Constraint]) -> None:
        tests: list[Test] = []
        bags: list[BagFact] = []
        semantics: list[tuple[SemanticOp, Value]] = []
        temporals: list[Constraint] = []
        scalar = False
        for constraint in constraints:
            op = constraint.op
            if isinstance(op, Content):
                tests.append((op, constraint.value))
                scalar = scalar or op in _SCALAR_OPERATORS
            elif isinstance(op, BagOp):
                bags.append(BagFact(op, constraint.value))
            elif isinstance(op, Semantic | Related):
                semantics.append((op, constraint.value))
                scalar = True
            else:
                temporals.append(constraint)
        self.bags = tuple(bags)
        self.semantics = tuple(semantics)
        self.temporals = tuple(temporals)
        if not (bags or semantics or temporals):
            self.region = Region(tests, (), scalar)
            return
        impossible = _impossible(bags, semantics, temporals, scalar)
        for fact in bags:
            point = fact.point
            if point is not None:
                tests.append((Content.EQ, point))
            elif scalar and fact.as_test is not None:
                tests.append(fact.as_test)
        self.region = Region(tests, [fact.guard for fact in bags], scalar)
        if impossible:
            self.region.empty = True

    def imply(
        self,
        constraint: Constraint,
        order: TermOrder | None = None,
        asked: Asked | None = None,
    ) -> bool:
        """Whether ``constraint``, on this name, follows.

        ``asked`` remembers what was found out about subscriptions in braces.
        """
        op = constraint.op
        if isinstance(op, Content):
            return follows(op, constraint.value, self.region)
        if isinstance(op, BagOp):
            return bag_follows(
                op, constraint.value, self.region, self.bags, self.semantics, order=order
            )
        if isinstance(op, Semantic | Related):
            return semantic_follows(op, constraint.value, self.region, self.semantics, order)
        known: Asked = {} if asked is None else asked
        return any(
            temporal_covers(constraint, held, lambda f, g: _covers(f, g, order, known))
            for held in self.temporals
        )


class Facts:
    """What a filter says, name by name; ``contradictory`` if nothing can match it."""

    __slots__ = ("contradictory", "names")

    names: dict[str, NameFacts]
    contradictory: bool

    def __init__(self, constraints: Iterable[Constraint]) -> None:
        by_name: dict[str, list[Constraint]] = {}
        for constraint in constraints:
            by_name.setdefault(constraint.name, []).append(constraint)
        self.names = {name: NameFacts(held) for name, held in by_name.items()}
        self.contradictory = any(facts.region.empty for facts in self.names.values())


@lru_cache(maxsize=REMEMBERED)
def facts_of(asked: Filter) -> Facts:
    """The facts of a filter, read once for as long as it is remembered."""
    return Facts(asked.constraints)


def facts_imply(
    facts: Facts,
    wanted: Filter,
    order: TermOrder | None = None,
    asked: Asked | None = None,
) -> bool:
    """Whether whatever satisfies the facts matches ``wanted``."""
    if facts.contradictory:
        return True
    names = facts.names
    for constraint in wanted.constraints:
        held = names.get(constraint.name)
        if held is None or not held.imply(constraint, order, asked):
            return False
    return True


def filter_covers(f: Filter, g: Filter, order: TermOrder | None = None) -> bool:
    """For every notification n: g matches n implies f matches n. See the module."""
    return facts_imply(facts_of(g), f, order)


def covers(f: Subscription, g: Subscription, order: TermOrder | None = None) -> bool:
    """Whether each filter of ``g`` is covered by one filter of ``f``. See the module.

    ``order`` decides semantic constraints, for two subscriptions under its own
    ontology; without it they compare by equality.
    """
    return _covers(f, g, order, {})


def _covers(f: Subscription, g: Subscription, order: TermOrder | None, asked: Asked) -> bool:
    """``covers``, each pair once: nested alternatives would ask the same pair without end."""
    found = asked.get((f, g))
    if found is None:
        found = all(
            any(facts_imply(facts_of(narrower), wider, order, asked) for wider in f)
            for narrower in g
        )
        asked[f, g] = found
    return found


def contradictory(asked: Filter) -> bool:
    """Whether no notification can match, as far as covering can tell."""
    return facts_of(asked).contradictory


def _impossible(
    bags: Iterable[BagFact],
    semantics: Iterable[tuple[SemanticOp, Value]],
    temporals: Iterable[Constraint],
    scalar: bool,
) -> bool:
    """What only the other families can tell: a pairing that cannot be, a bag for a term,
    a temporal operator that looks for an event which cannot match."""
    return (
        any(fact.contradictory or (scalar and fact.refuses_scalars) for fact in bags)
        or any(isinstance(operand, Bag) for _, operand in semantics)
        or any(
            held.inner is not None and all(contradictory(inner) for inner in held.inner)
            for held in temporals
        )
    )
