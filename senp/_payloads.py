"""The grammar of what follows a header: events, filters, operators.

Law: every method starts on the first token of what it reads and leaves the
cursor on the last one.
Cost: linear in the bytes. It recurses once per nested filter, and the depth is
checked before it does, so no input can exhaust the stack.
Source: Siena 1.3's grammar, with bags, alternatives and our operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from kbn.errors import KbnError
from kbn.model import Bag, Constraint, Filter, Notification, Scalar, Subscription, Value
from kbn.model.filters import MAX_ALTERNATIVES
from kbn.model.operators import (
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
from senp._tokens import DOUBLE, LONG, STRING, WORD, Tokens
from senp.errors import WireError
from senp.packets import Limits, Pattern, Payload

T = TypeVar("T")

_KEYWORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_SIMPLE: dict[str, Simple] = {
    op.wire: op for family in (Content, Semantic) for op in family if op is not Content.ANY
}
_BAGS = {kind.wire: kind for kind in BagKind}
_ALLEN = {relation.value: relation for relation in Allen}


class PayloadDecoder(Tokens):
    """A cursor that reads payloads within ``limits``."""

    __slots__ = ("limits",)

    def __init__(self, text: str, limits: Limits, position: int = 0) -> None:
        super().__init__(text, position)
        self.limits = limits

    def payload(self) -> Payload:
        """The payload at the cursor, then the end."""
        read = _PAYLOADS.get(str(self.value)) if self.kind == WORD else None
        if read is None:
            raise self.unexpected("'event', 'events', 'filter', 'filters' or 'pattern'")
        payload = read(self)
        self.finish()
        return payload

    # Events

    def event(self) -> Notification:
        """``event{ name=value …}``; the cursor ends on the closing brace."""
        self.advance()
        self._expect("{")
        attributes: dict[str, Value] = {}
        while self.kind != "}":
            name = self._name()
            self._expect("=")
            attributes[name] = self.value_here()
            self.advance()
        return Notification.trusted(attributes)

    def events(self) -> tuple[Notification, ...]:
        self.advance()
        self._expect("{")
        held = []
        while self.kind != "}":
            if self.kind != WORD or self.value != "event":
                raise self.unexpected("'event' or '}'")
            held.append(self.event())
            self.advance()
        return tuple(held)

    def _name(self) -> str:
        if self.kind not in (WORD, STRING):
            raise self.unexpected("an attribute name or '}'")
        name = str(self.value)
        self.advance()
        return name

    def value_here(self) -> Value:
        """The value at the cursor, which stays on its last token."""
        if self.kind != "[":
            return self._scalar("a value")
        members = []
        while self.advance() != "]":
            members.append(self._scalar("a member or ']'"))
        return Bag(members)

    def _scalar(self, expected: str) -> Scalar:
        kind = self.kind
        if kind == WORD:
            word = str(self.value)
            return _KEYWORDS.get(word, word)
        if kind in (STRING, LONG, DOUBLE):
            return self.value
        raise self.unexpected(expected)

    # Filters

    def subscription(self, depth: int = 1) -> Subscription:
        """``filter{…}`` or ``filters{…}``; the cursor ends on the closing brace."""
        if self.value == "filter":
            return Subscription((self._filter(depth),))
        start = self.start
        alternatives = self._filters(depth, MAX_ALTERNATIVES)
        if not alternatives:
            raise WireError("'filters' holds at least one filter", position=start)
        return Subscription(alternatives)

    def pattern(self) -> Pattern:
        return Pattern(self._filters(1, len(self.text)))

    def _filters(self, depth: int, most: int) -> tuple[Filter, ...]:
        self.advance()
        self._expect("{")
        held: list[Filter] = []
        while self.kind != "}":
            if self.kind != WORD or self.value != "filter":
                raise self.unexpected("'filter' or '}'")
            if len(held) == most:
                raise WireError(
                    f"more than {most} alternatives", position=self.start, code="limit"
                )
            held.append(self._filter(depth))
            self.advance()
        return tuple(held)

    def _filter(self, depth: int) -> Filter:
        if depth > self.limits.max_depth:
            raise WireError(
                f"filters nest deeper than {self.limits.max_depth}",
                position=self.start,
                code="limit",
            )
        self.advance()
        self._expect("{")
        constraints: list[Constraint] = []
        while self.kind != "}":
            if len(constraints) == self.limits.max_constraints:
                raise WireError(
                    f"more than {self.limits.max_constraints} constraints in a filter",
                    position=self.start,
                    code="limit",
                )
            constraints.append(self._constraint(depth))
            self.advance()
        return Filter(constraints)

    def _constraint(self, depth: int) -> Constraint:
        start = self.start
        name = self._name()
        try:
            op = self._operator()
            if op is Content.ANY:
                return Constraint(name, op)
            self.advance()
            if isinstance(op, During | After | Window | Relation):
                if self.kind != WORD or self.value not in ("filter", "filters"):
                    raise self.unexpected("'filter' or 'filters'")
                return Constraint(name, op, self.subscription(depth + 1))
            return Constraint(name, op, self.value_here())
        except WireError:
            raise
        except KbnError as error:
            raise WireError.wrapping(error, start) from error

    # Operators: each reads from its first token and ends on its last one.

    def _operator(self) -> Operator:
        kind = self.kind
        if kind in _BAGS:
            return self._bag_operator()
        if kind == "$=":
            return During()
        if kind == "$>":
            self.advance()
            return self._bounded(After, self._long("the limit in milliseconds"))
        if kind == "$~":
            return self._relation()
        if kind == "^":
            return self._window()
        return self._simple("an operator")

    def _simple(self, expected: str) -> Simple:
        kind = self.kind
        op = _SIMPLE.get(kind)
        if op is not None:
            return op
        if kind == WORD and self.value == "any":
            return Content.ANY
        if kind != "@(":
            raise self.unexpected(expected)
        self.advance()
        if self.kind not in (STRING, WORD):
            raise self.unexpected("the IRI of a property")
        related = Related(str(self.value))
        if self.advance() != ")":
            raise self.unexpected("')'")
        return related

    def _bag_operator(self) -> BagOp:
        kind = _BAGS[self.kind]
        if not self._next_is("("):
            return BagOp(kind)
        self.advance()
        self.advance()
        sub = self._simple("a content or semantic operator")
        if self.advance() != ")":
            raise self.unexpected("')'")
        return BagOp(kind, sub)

    def _relation(self) -> Relation:
        self.advance()
        relation = _ALLEN.get(str(self.value)) if self.kind == WORD else None
        if relation is None:
            raise self.unexpected("the name of a relation")
        if not self._next_is(LONG):
            return Relation(relation)
        self.advance()
        return self._bounded(lambda tolerance: Relation(relation, tolerance), self._long(""))

    def _window(self) -> Window:
        self.advance()
        op = self._bag_operator() if self.kind in _BAGS else self._simple("an operator")
        if not self._next_is(LONG):
            return Window(op)
        self.advance()
        return self._bounded(lambda limit: Window(op, limit), self._long(""))

    def _bounded(self, make: Callable[[int], T], bound: int) -> T:
        try:
            return make(bound)
        except KbnError as error:
            raise WireError.wrapping(error, self.start) from error

    def _next_is(self, kind: str) -> bool:
        """Whether the token behind the current one is of this kind; the cursor stays."""
        ahead = Tokens(self.text, self.stop)
        return ahead.advance() == kind

    def _expect(self, symbol: str) -> None:
        if self.kind != symbol:
            raise self.unexpected(f"'{symbol}'")
        self.advance()

    def _long(self, expected: str) -> int:
        if self.kind != LONG:
            raise self.unexpected(expected)
        return cast("int", self.value)


_PAYLOADS: dict[str, Callable[[PayloadDecoder], Payload]] = {
    "event": PayloadDecoder.event,
    "events": PayloadDecoder.events,
    "filter": PayloadDecoder.subscription,
    "filters": PayloadDecoder.subscription,
    "pattern": PayloadDecoder.pattern,
}
