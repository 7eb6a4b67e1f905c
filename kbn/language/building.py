"""What each rule of the grammar makes: constraints, alternatives, values, events.

The methods run while the parser's table is walked, innermost first, so no parse
tree exists and nothing recurses. An error of the model is wrapped in ``Misplaced``
with the offset it belongs to; whoever has the text turns that into words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from lark import Token, Transformer, v_args

from kbn.errors import LimitError, TemporalReferenceError, UnsupportedError, ValueRangeError
from kbn.language.diagnosis import Misplaced
from kbn.language.durations import read_duration
from kbn.language.expansion import (
    EVERYTHING,
    Alternatives,
    TooManyError,
    conjunction,
    disjunction,
    to_subscription,
)
from kbn.language.literals import (
    EscapeError,
    read_double,
    read_long,
    read_string,
    write_string,
)
from kbn.language.shorthand import TIME_OF, Item
from kbn.language.spelling import BAG_KINDS, RELATIONS, SIMPLE
from kbn.model import Bag, Constraint, Notification, Scalar, Subscription, Value
from kbn.model.filters import Operand
from kbn.model.operators import (
    DEFAULT_WINDOW,
    After,
    BagKind,
    BagOp,
    Content,
    During,
    Operator,
    Related,
    Relation,
    Simple,
    Temporal,
    Window,
)
from kbn.model.time import END_TIME

_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}


class Reference(NamedTuple):
    """The left side of a constraint: ``word`` when it was written as the shorthand."""

    name: str
    word: str | None
    at: int


@v_args(inline=True)
class Build(Transformer[Token, object]):
    """One method per rule or alias of the grammar."""

    def subscription(self, held: Alternatives | None) -> Subscription:
        return to_subscription(EVERYTHING if held is None else held)

    def expression(self, *parts: Alternatives | Token) -> Alternatives:
        return _combine(disjunction, parts)

    def conjunction(self, *parts: Alternatives | Token) -> Alternatives:
        return _combine(conjunction, parts)

    def group(self, held: Alternatives | None) -> Alternatives:
        return EVERYTHING if held is None else held

    def braces(self, held: Alternatives | None) -> Subscription:
        return self.subscription(held)

    # Constraints

    def presence(self, where: Reference, op: Token) -> Alternatives:
        return _constraint(where, Content.ANY, None)

    def compare(self, where: Reference, op: Operator, operand: Value) -> Alternatives:
        return _constraint(where, op, operand)

    def member(self, where: Reference, op: Token, operand: Bag) -> Alternatives:
        return _constraint(where, BagOp(BagKind.SUBBAG), operand)

    def plain_bag(self, where: Reference, kind: BagKind, operand: Value) -> Alternatives:
        return _constraint(where, BagOp(kind), operand)

    def composed_bag(
        self,
        where: Reference,
        kind: BagKind,
        sub: Simple,
        operand: Value,
    ) -> Alternatives:
        return _constraint(where, BagOp(kind, sub), operand)

    def ask_history(self, where: Reference, op: Temporal, inner: Subscription) -> Alternatives:
        return _constraint(where, op, inner)

    def bare_relation(self, op: Relation, inner: Subscription) -> Alternatives:
        return _constraint(Reference(END_TIME, "end", 0), op, inner)

    def reference(self, token: Token) -> Reference:
        if token.type in ("START", "END"):
            return Reference(TIME_OF[token], str(token), _start_of(token))
        return self.name(token)

    def name(self, token: Token) -> Reference:
        return Reference(_text(token), None, _start_of(token))

    # Operators

    def word(self, token: Token) -> Token:
        return token

    def operator(self, token: Token) -> Simple:
        return SIMPLE[token]

    def property(self, token: Token) -> str:
        return _text(token)

    def related(self, word: Token, iri: str) -> Related:
        return Related(iri)

    def bag_kind(self, token: Token) -> BagKind:
        return BAG_KINDS[token]

    def bag_operator(
        self,
        kind: BagKind,
        sub: Simple | None = None,
    ) -> BagOp:
        return BagOp(kind, sub)

    def during(self, word: Token) -> During:
        return During()

    def after(self, word: Token, limit: Token) -> After:
        try:
            return After(_duration(limit))
        except LimitError as error:
            raise Misplaced(_start_of(limit), error) from None

    def window(
        self,
        word: Token,
        op: Simple | BagOp,
        last: Token | None,
        limit: Token | None,
    ) -> Window:
        if limit is None:
            return Window(op, DEFAULT_WINDOW)
        try:
            return Window(op, read_long(limit))
        except (LimitError, ValueRangeError) as error:
            raise Misplaced(_start_of(limit), error) from None

    def relation(
        self,
        word: Token,
        kind: Token,
        tolerance: Token | None,
    ) -> Relation:
        if kind not in RELATIONS:
            error = UnsupportedError(f"'{kind}' is no relation between intervals")
            raise Misplaced(_start_of(kind), error, tuple(RELATIONS))
        return Relation(RELATIONS[kind], 0 if tolerance is None else _duration(tolerance))

    def allen(self, token: Token) -> Token:
        return token

    # Values

    def scalar(self, token: Token) -> Scalar:
        try:
            match token.type:
                case "LONG":
                    return read_long(token)
                case "DOUBLE":
                    return read_double(token)
                case "STRING" | "TERM":
                    return _text(token)
        except ValueRangeError as error:
            raise Misplaced(_start_of(token), error) from None
        return _CONSTANTS[token.type]

    def bag(self, *members: Scalar) -> Bag:
        return Bag(members)

    # Events

    def pair(self, where: Reference, equals: Token, value: Value) -> tuple[Reference, Value]:
        return where, value

    def event(self, *pairs: tuple[Reference, Value]) -> Notification:
        held: dict[str, Value] = {}
        for where, value in pairs:
            if where.name in held:
                error = UnsupportedError(f"the name {write_string(where.name)} is given twice")
                raise Misplaced(where.at, error)
            held[where.name] = value
        return Notification(held)


def _combine(
    how: Callable[[Sequence[Alternatives]], Alternatives],
    parts: tuple[Alternatives | Token, ...],
) -> Alternatives:
    """``how`` over the operands of ``a and b and c``, which come with their words between."""
    if len(parts) == 1:
        return cast(Alternatives, parts[0])
    try:
        return how(cast(tuple[Alternatives, ...], parts[::2]))
    except TooManyError as error:
        word = cast(Token, parts[2 * error.part - 1])
        raise Misplaced(_start_of(word), error) from None


def _constraint(where: Reference, op: Operator, operand: Operand) -> Alternatives:
    try:
        return ((Item(Constraint(where.name, op, operand), where.word),),)
    except TemporalReferenceError as error:
        raise Misplaced(where.at, error) from None


def _start_of(token: Token) -> int:
    return token.start_pos or 0


def _text(token: Token) -> str:
    if token.type != "STRING":
        return str(token)
    try:
        return read_string(token)
    except EscapeError as error:
        raise Misplaced(_start_of(token) + error.offset, error) from None


def _duration(token: Token) -> int:
    try:
        return read_duration(token)
    except ValueRangeError as error:
        raise Misplaced(_start_of(token), error) from None
