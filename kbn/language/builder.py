"""The Python form: ``(attr("price") < 80) & attr("symbol").prefix("IB")``.

The same words as the text form, building the same tree. Comparisons and methods
of an attribute make *expressions*; ``&`` and ``|`` combine them; ``subscription()``
ends them, and every function that takes a subscription takes an expression as it
is (``as_subscription``). Python's own ``and``, ``or``, ``not``, ``in`` and chained
comparisons cannot be given this meaning and are refused with advice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NoReturn, TypeAlias

from kbn.errors import UnsupportedError, ValueRangeError
from kbn.language.durations import read_duration
from kbn.language.expansion import (
    EVERYTHING,
    Alternatives,
    conjunction,
    disjunction,
    to_subscription,
)
from kbn.language.parse import parse_subscription
from kbn.language.printer import print_name, print_subscription
from kbn.language.shorthand import TIME_OF, Item
from kbn.language.spelling import RELATIONS, read_operator
from kbn.model import Bag, Constraint, Filter, Scalar, Subscription, Value
from kbn.model.filters import Operand
from kbn.model.operators import (
    DEFAULT_WINDOW,
    After,
    Allen,
    BagKind,
    BagOp,
    Content,
    During,
    Operator,
    Related,
    Relation,
    Semantic,
    Simple,
    Window,
)

#: A value as Python programs have it; a list or tuple is a bag.
Constant: TypeAlias = Value | Sequence[Scalar]
#: ``timedelta``, text such as ``"2s"``, or milliseconds.
Duration: TypeAlias = timedelta | str | int

_ADVICE = (
    "has no truth value: combine with & and |, each comparison in parentheses, as in"
    ' (attr("a") > 1) & (attr("a") < 5); for membership use .in_([...])'
)


class Expression:
    """Constraints combined by ``&`` and ``|``; immutable."""

    __slots__ = ("_alternatives",)

    def __init__(self, alternatives: Alternatives) -> None:
        self._alternatives = alternatives

    def __and__(self, other: Expression) -> Expression:
        if not isinstance(other, Expression):
            return NotImplemented
        return Expression(conjunction((self._alternatives, other._alternatives)))

    def __or__(self, other: Expression) -> Expression:
        if not isinstance(other, Expression):
            return NotImplemented
        return Expression(disjunction((self._alternatives, other._alternatives)))

    def __bool__(self) -> NoReturn:
        raise TypeError(f"an expression {_ADVICE}")

    def subscription(self) -> Subscription:
        """The tree, with ``start`` and ``end`` expanded."""
        return to_subscription(self._alternatives)

    def __str__(self) -> str:
        return print_subscription(self.subscription())

    def __repr__(self) -> str:
        return f"<expression {self}>"


Subscribable: TypeAlias = str | Subscription | Filter | Constraint | Expression


def as_subscription(asked: Subscribable) -> Subscription:
    """The subscription meant by a text, an expression, or a part of the tree."""
    if isinstance(asked, Subscription):
        return asked
    if isinstance(asked, Expression):
        return asked.subscription()
    if isinstance(asked, str):
        return parse_subscription(asked)
    if isinstance(asked, Filter):
        return Subscription((asked,))
    if isinstance(asked, Constraint):
        return Subscription.of(asked)
    raise TypeError(
        f"{type(asked).__name__} is no subscription: give a text, an expression or a Subscription"
    )


class Attribute:
    """A name, waiting for an operator. ``start`` and ``end`` are two of these."""

    __slots__ = ("_name", "_word")

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, word: str | None = None) -> None:
        self._name = name
        self._word = word

    def _make(self, op: Operator, operand: Operand = None) -> Expression:
        return Expression(((Item(Constraint(self._name, op, operand), self._word),),))

    def _compare(self, op: Operator, operand: Constant) -> Expression:
        return self._make(op, _value(operand))

    # Content

    def __eq__(self, operand: Constant) -> Expression:  # type: ignore[override]
        return self._compare(Content.EQ, operand)

    def __ne__(self, operand: Constant) -> Expression:  # type: ignore[override]
        return self._compare(Content.NE, operand)

    def __lt__(self, operand: Constant) -> Expression:
        return self._compare(Content.LT, operand)

    def __le__(self, operand: Constant) -> Expression:
        return self._compare(Content.LE, operand)

    def __gt__(self, operand: Constant) -> Expression:
        return self._compare(Content.GT, operand)

    def __ge__(self, operand: Constant) -> Expression:
        return self._compare(Content.GE, operand)

    def prefix(self, operand: Constant) -> Expression:
        return self._compare(Content.PREFIX, operand)

    def suffix(self, operand: Constant) -> Expression:
        return self._compare(Content.SUFFIX, operand)

    def contains(self, operand: Constant) -> Expression:
        return self._compare(Content.CONTAINS, operand)

    def any(self) -> Expression:
        return self._make(Content.ANY)

    # Bags

    def subbag(self, operand: Constant, op: str | Simple | None = None) -> Expression:
        return self._compare(BagOp(BagKind.SUBBAG, _sub_operator(op)), operand)

    def superbag(self, operand: Constant, op: str | Simple | None = None) -> Expression:
        return self._compare(BagOp(BagKind.SUPERBAG, _sub_operator(op)), operand)

    def bageq(self, operand: Constant, op: str | Simple | None = None) -> Expression:
        return self._compare(BagOp(BagKind.BAGEQ, _sub_operator(op)), operand)

    def in_(self, members: Sequence[Scalar] | Bag) -> Expression:
        """Short for ``subbag`` of a bag."""
        held = _value(members)
        if not isinstance(held, Bag):
            raise UnsupportedError("in_ takes a list of values")
        return self._make(BagOp(BagKind.SUBBAG), held)

    # Semantics

    def equivalent(self, term: Constant) -> Expression:
        return self._compare(Semantic.EQUIVALENT, term)

    def not_equivalent(self, term: Constant) -> Expression:
        return self._compare(Semantic.NOT_EQUIVALENT, term)

    def more_specific(self, term: Constant) -> Expression:
        return self._compare(Semantic.MORE_SPECIFIC, term)

    def less_specific(self, term: Constant) -> Expression:
        return self._compare(Semantic.LESS_SPECIFIC, term)

    def is_a(self, term: Constant) -> Expression:
        return self._compare(Semantic.IS_A, term)

    def is_not_a(self, term: Constant) -> Expression:
        return self._compare(Semantic.IS_NOT_A, term)

    def related(self, property: str, term: Constant) -> Expression:
        return self._compare(Related(property), term)

    # History

    def during(self, inner: Subscribable) -> Expression:
        return self._make(During(), as_subscription(inner))

    def after(self, limit: Duration, inner: Subscribable) -> Expression:
        return self._make(After(milliseconds(limit)), as_subscription(inner))

    def filter(
        self, op: str | Simple | BagOp, inner: Subscribable, last: int = DEFAULT_WINDOW
    ) -> Expression:
        compare = read_operator(op) if isinstance(op, str) else op
        return self._make(Window(compare, last), as_subscription(inner))

    def relation(
        self, kind: str | Allen, inner: Subscribable, tolerance: Duration = 0
    ) -> Expression:
        allen = RELATIONS.get(kind) if isinstance(kind, str) else kind
        if allen is None:
            raise UnsupportedError(f"{kind!r} is no relation: use {', '.join(RELATIONS)}")
        return self._make(Relation(allen, milliseconds(tolerance)), as_subscription(inner))

    def __bool__(self) -> NoReturn:
        raise TypeError(f"an attribute {_ADVICE}")

    def __repr__(self) -> str:
        return f"<attribute {self._word or print_name(self._name)}>"


def attr(name: str) -> Attribute:
    """The attribute of that name; ``attr("start")`` is one that happens to be called so."""
    return Attribute(name)


start = Attribute(TIME_OF["start"], "start")
end = Attribute(TIME_OF["end"], "end")
#: The empty filter, which matches every notification.
everything = Expression(EVERYTHING)


def relation(kind: str | Allen, inner: Subscribable, tolerance: Duration = 0) -> Expression:
    """An Allen relation between the event that ends and a stored one."""
    return end.relation(kind, inner, tolerance)


def milliseconds(duration: Duration) -> int:
    """A duration in milliseconds; raises ``ValueRangeError`` for a part of one."""
    if isinstance(duration, str):
        return read_duration(duration)
    if isinstance(duration, timedelta):
        whole, rest = divmod(duration, timedelta(milliseconds=1))
        if rest:
            raise ValueRangeError(f"{duration} is no whole number of milliseconds")
        return whole
    return duration


def _value(operand: Constant) -> Value:
    if isinstance(operand, list | tuple):
        return Bag(operand)
    return operand  # type: ignore[return-value]  # the model refuses what is no value


def _sub_operator(op: str | Simple | None) -> Simple | None:
    if not isinstance(op, str):
        return op
    made = read_operator(op)
    if isinstance(made, BagOp):
        raise UnsupportedError("a sub-operator of a bag is never a bag operator")
    return made
