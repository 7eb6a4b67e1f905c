"""What changes between two hierarchies, and for whom.

Law: a subscription is ``affected`` iff one of its semantic constraints holds for
other IRIs under the new hierarchy than under the old. (It may still match the same
events; that depends on what comes.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kbn.knowledge.hierarchy import Hierarchy
from kbn.knowledge.hierarchy.pairs import Pairs
from kbn.knowledge.hierarchy.speaking import semantic_parts, unknown_terms
from kbn.language import print_subscription
from kbn.language.printer import print_constraint
from kbn.model.filters import Subscription


class Part(NamedTuple):
    """One constraint that holds for other terms than before."""

    constraint: str
    gained: tuple[str, ...]
    lost: tuple[str, ...]


class Affected(NamedTuple):
    """A subscription that would match differently."""

    subscription: str
    parts: tuple[Part, ...]
    unknown: tuple[str, ...]


class Difference(NamedTuple):
    """Added and removed, by what it is about; statements as ``a is_a b`` and the like."""

    added: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def empty(self) -> bool:
        return not self.added and not self.removed


def differences(old: Hierarchy, new: Hierarchy) -> dict[str, Difference]:
    """By ``terms``, ``classes``, ``properties``, ``types`` and ``relations``."""
    before, after = _statements(old), _statements(new)
    return {
        about: Difference(
            tuple(sorted(after[about] - before[about])),
            tuple(sorted(before[about] - after[about])),
        )
        for about in before
    }


def _statements(known: Hierarchy) -> dict[str, frozenset[str]]:
    short = known.prefixes.shorten
    names = [[short(iri) for iri in held] for held in known.names_of]
    literals = [repr(literal.value) for literal in known.literals]

    def told(pairs: Pairs, verb: str) -> Iterable[str]:
        for a, b in pairs:
            ends = names[b] if b < len(names) else [literals[b - len(names)]]
            if a != b or b >= len(names) or len(ends) > 1:
                for left in names[a]:
                    for right in ends:
                        if left != right:
                            yield f"{left} {verb} {right}"

    relations = (
        statement
        for prop, pairs in known.relations.items()
        for statement in told(pairs, names[prop][0])
    )
    return {
        "terms": frozenset(map(short, known.iris)),
        "classes": frozenset(told(known.class_up, "more_specific")),
        "properties": frozenset(told(known.property_up, "more_specific")),
        "types": frozenset(told(known.types, "is_a")),
        "relations": frozenset(relations),
    }


def affected(
    subscriptions: Iterable[Subscription], old: Hierarchy, new: Hierarchy
) -> list[Affected]:
    """Those that would match differently, with what they gain and lose."""
    found = []
    for subscription in subscriptions:
        parts: dict[Part, None] = {}
        for constraint, op, operands in semantic_parts(subscription):
            for operand in operands:
                before = old.iris_of(old.extent(op, operand))
                after = new.iris_of(new.extent(op, operand))
                if before != after:
                    gained = tuple(sorted(map(new.prefixes.shorten, after - before)))
                    lost = tuple(sorted(map(old.prefixes.shorten, before - after)))
                    parts[Part(print_constraint(constraint), gained, lost)] = None
        if parts:
            unknown = tuple(unknown_terms(subscription, new))
            found.append(Affected(print_subscription(subscription), tuple(parts), unknown))
    return found
