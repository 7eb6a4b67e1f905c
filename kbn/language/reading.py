"""The grammar at work: text in, the model's tree out.

Law: ``subscription(print_subscription(s)) == s``. Cost: linear in the text and in
the expanded alternatives. Only this module and ``building`` import Lark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, cast

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lark import PostLex

from kbn.errors import KbnError, LimitError
from kbn.language.building import Build
from kbn.language.diagnosis import Misplaced, placed, unexpected_character, unexpected_token
from kbn.model import Notification, Subscription
from kbn.model.filters import MAX_DEPTH

#: The most parentheses that may stand inside each other.
MAX_PARENTHESES = 100


class Reader:
    """The parser's tables, built once; reading keeps no state between texts."""

    def __init__(self) -> None:
        self._lark = Lark(
            Path(__file__).with_name("grammar.lark").read_text("utf-8"),
            parser="lalr",
            lexer="basic",
            start=["subscription", "event"],
            transformer=Build(),
            postlex=_Bounds(),
            maybe_placeholders=True,
        )

    def subscription(self, text: str) -> Subscription:
        return cast(Subscription, self._read(text, "subscription"))

    def event(self, text: str) -> Notification:
        return cast(Notification, self._read(text, "event"))

    def _read(self, text: str, start: str) -> object:
        try:
            return self._lark.parse(text, start=start)
        except Misplaced as misplaced:
            raise placed(misplaced, text) from None
        except UnexpectedInput as error:
            raise self._explained(error, text, start) from None

    def _explained(self, error: UnexpectedInput, text: str, start: str) -> KbnError:
        if isinstance(error, UnexpectedToken):
            token = error.token
            # The end of the text borrows the place of the last token.
            at = token.end_pos if token.type == "$END" else token.start_pos
            at = at or 0
            return unexpected_token(str(token), at, self._accepted_after(text[:at], start), text)
        assert isinstance(error, UnexpectedCharacters)
        at = cast(int, error.pos_in_stream)
        return unexpected_character(at, self._accepted_after(text[:at], start), text)

    def _accepted_after(self, before: str, start: str) -> set[str]:
        """The terminals that may follow a text that is right so far.

        The error itself cannot be asked: its parser has already closed whatever
        the wrong token seemed to close, and forgotten that ``and`` was possible.
        """
        parser = self._lark.parse_interactive(before, start=start)
        parser.exhaust_lexer()
        return set(parser.accepts())  # type: ignore[no-untyped-call]


class _Bounds(PostLex):
    """Refuses deep nesting while tokens pass by; all state is local to one parse."""

    always_accept = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        braces, parentheses = 1, 0
        for token in stream:
            match token.type:
                case "_LBRACE":
                    braces += 1
                    if braces > MAX_DEPTH:
                        _refuse(token, "filters", "max_depth", MAX_DEPTH)
                case "_RBRACE":
                    braces -= 1
                case "_LPAR":
                    parentheses += 1
                    if parentheses > MAX_PARENTHESES:
                        _refuse(token, "parentheses", "max_parentheses", MAX_PARENTHESES)
                case "_RPAR":
                    parentheses -= 1
            yield token


def _refuse(token: Token, what: str, limit: str, allowed: int) -> NoReturn:
    problem = f"{what} nest too deeply, at most {allowed} inside each other are allowed"
    raise Misplaced(token.start_pos or 0, LimitError(problem, limit=limit, allowed=allowed))
