"""The syntax tree of what subscribers ask: constraint, filter, subscription.

A *constraint* is name, operator, operand; a *filter* is a conjunction of
constraints; a *subscription* is one filter or several alternatives. Temporal
operators have a subscription as operand, so the three nest and live together
here. All are immutable, hashable and picklable, and compare by identity of
their values (see ``values``): the order that was written is kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeAlias

from kbn.errors import LimitError, TemporalReferenceError, UnsupportedError
from kbn.model.notifications import check_name
from kbn.model.operators import (
    After,
    Content,
    During,
    Operator,
    Relation,
    is_semantic,
    is_temporal,
)
from kbn.model.time import END_TIME, TIME_ATTRIBUTES
from kbn.model.values import Value, check_value, identity

#: The most alternatives a subscription, or the braces of one operator, may have.
MAX_ALTERNATIVES = 64
#: The most filters that may stand inside each other; the outermost counts 1.
MAX_DEPTH = 16


class _Node:
    """Immutability, equality and a cached hash over the key of a subclass."""

    __slots__ = ("_hash",)

    _hash: int

    def _key(self) -> Hashable:
        raise AssertionError("every node has a key")

    def _set(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_hash", hash(self._key()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__.lower()} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__.lower()} is immutable")

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, _Node) or type(other) is not type(self):
            return NotImplemented
        return self._hash == other._hash and self._key() == other._key()


class Constraint(_Node):
    """``name op operand``; the operand of ``any`` is None.

    Raises ``TemporalReferenceError`` for a temporal operator on a name that is
    no time, and ``UnsupportedError`` when operand and operator do not fit.
    """

    __slots__ = ("name", "op", "operand")

    name: str
    op: Operator
    operand: Operand

    def __init__(self, name: str, op: Operator, operand: Operand = None) -> None:
        check_name(name)
        if is_temporal(op):
            _check_reference(name, op)
            if not isinstance(operand, Subscription):
                raise UnsupportedError("the operand of a temporal operator is a filter")
        elif isinstance(operand, Subscription):
            raise UnsupportedError("only a temporal operator takes a filter as operand")
        elif op is Content.ANY:
            if operand is not None:
                raise UnsupportedError("'any' takes no operand")
        else:
            check_value(operand)
        self._set(name=name, op=op, operand=operand)

    @property
    def inner(self) -> Subscription | None:
        """The subscription inside a temporal operator's braces."""
        return self.operand if isinstance(self.operand, Subscription) else None

    @property
    def value(self) -> Value:
        """The operand of an operator that is not temporal."""
        if isinstance(self.operand, Subscription):
            raise TypeError("a temporal constraint has a subscription, not a value")
        return self.operand

    def _key(self) -> Hashable:
        operand = self.operand
        kept = operand if isinstance(operand, Subscription) else identity(operand)
        return (self.name, self.op, kept)

    def __reduce__(self) -> tuple[object, ...]:
        return (Constraint, (self.name, self.op, self.operand))

    def __repr__(self) -> str:
        return f"Constraint({self.name!r}, {self.op!r}, {self.operand!r})"


class Filter(_Node):
    """A conjunction of constraints; the empty one matches every notification."""

    __slots__ = ("constraints", "depth")

    constraints: tuple[Constraint, ...]
    depth: int

    def __init__(self, constraints: Iterable[Constraint] = ()) -> None:
        held = tuple(constraints)
        depth = 1 + max((c.inner.depth for c in held if c.inner is not None), default=0)
        if depth > MAX_DEPTH:
            raise LimitError(
                f"filters nest {depth} deep, at most {MAX_DEPTH} are allowed",
                limit="max_depth",
                allowed=MAX_DEPTH,
            )
        self._set(constraints=held, depth=depth)

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)

    def __len__(self) -> int:
        return len(self.constraints)

    def _key(self) -> Hashable:
        return self.constraints

    def __reduce__(self) -> tuple[object, ...]:
        return (Filter, (self.constraints,))

    def __repr__(self) -> str:
        return f"Filter({list(self.constraints)!r})"


class Subscription(_Node):
    """Alternative filters: it matches when any of them does.

    Equal alternatives are held once, in the place of the first.
    """

    __slots__ = ("alternatives", "depth")

    alternatives: tuple[Filter, ...]
    depth: int

    def __init__(self, alternatives: Iterable[Filter]) -> None:
        given = tuple(alternatives)
        if not given:
            raise UnsupportedError("a subscription has at least one filter")
        if len(given) > MAX_ALTERNATIVES:
            raise LimitError(
                f"{len(given)} alternatives, at most {MAX_ALTERNATIVES} are allowed",
                limit="max_alternatives",
                allowed=MAX_ALTERNATIVES,
            )
        held = tuple(dict.fromkeys(given))
        self._set(alternatives=held, depth=max(f.depth for f in held))

    @classmethod
    def of(cls, *constraints: Constraint) -> Subscription:
        """The subscription with one alternative made of these constraints."""
        return cls((Filter(constraints),))

    def __iter__(self) -> Iterator[Filter]:
        return iter(self.alternatives)

    def __len__(self) -> int:
        return len(self.alternatives)

    def _key(self) -> Hashable:
        return self.alternatives

    def __reduce__(self) -> tuple[object, ...]:
        return (Subscription, (self.alternatives,))

    def __repr__(self) -> str:
        return f"Subscription({list(self.alternatives)!r})"


Operand: TypeAlias = Value | Subscription


def constraints_within(subscription: Subscription) -> Iterator[Constraint]:
    """Every constraint, those inside the braces of temporal operators included."""
    for alternative in subscription:
        for constraint in alternative:
            yield constraint
            if constraint.inner is not None:
                yield from constraints_within(constraint.inner)


def needs_ontology(subscription: Subscription) -> bool:
    """Whether a semantic operator stands anywhere in it."""
    return any(is_semantic(c.op) for c in constraints_within(subscription))


def needs_history(subscription: Subscription) -> bool:
    """Whether a temporal operator stands in it."""
    return any(c.inner is not None for f in subscription for c in f)


def _check_reference(name: str, op: Operator) -> None:
    if isinstance(op, During | After) and name not in TIME_ATTRIBUTES:
        raise TemporalReferenceError(name, type(op).__name__.lower(), TIME_ATTRIBUTES)
    if isinstance(op, Relation) and name != END_TIME:
        raise TemporalReferenceError(name, "relation", (END_TIME,))
