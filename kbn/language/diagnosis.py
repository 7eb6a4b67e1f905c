"""Errors in people's words: what stood there, what could have, and often why.

A parser knows terminals; a person wants *an operator*, *a value*, *'and'*. The
table below groups terminals into such words, and the hints name the mistakes that
people make most: a bare word for a string, ``==``, capital keywords, a reserved
word as a name, ``not``, a time operator without a time.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from kbn.errors import KbnError, LimitError, TemporalReferenceError, TextError
from kbn.language.spelling import RESERVED

_OPERATORS = frozenset(
    {
        *("EQ", "NE", "LT", "LE", "GT", "GE", "PREFIX", "SUFFIX", "CONTAINS", "SUBSTRING"),
        *("EQUIVALENT", "NOT_EQUIVALENT", "MORE_SPECIFIC", "LESS_SPECIFIC", "IS_A", "IS_NOT_A"),
        *("ANY", "IN", "RELATED", "SUBBAG", "SUPERBAG", "BAGEQ"),
        *("DURING", "AFTER", "FILTER", "RELATION"),
    }
)
_SCALARS = frozenset({"LONG", "DOUBLE", "STRING", "TERM", "TRUE", "FALSE", "NULL"})
_WORDS = {
    "AND": "'and'",
    "OR": "'or'",
    "LAST": "'last'",
    "LONG": "a whole number",
    "DURATION": "a duration such as 2s",
    "EQ": "'='",
    "_LPAR": "'('",
    "_RPAR": "')'",
    "_LSQB": "'['",
    "_RSQB": "']'",
    "_LBRACE": "'{'",
    "_RBRACE": "'}'",
    "_COMMA": "','",
    "_PLUSMINUS": "'±'",
    "$END": "end of text",
}

#: What stands on a start or an end, written as it is used most.
_OF_A_TIME = {"after": "end after(2s)", "during": "start during"}


class Misplaced(Exception):  # noqa: N818 - private to the readers, who know the text
    """An error of the model or of a constant, and the offset it belongs to."""

    def __init__(self, at: int, error: KbnError, expected: tuple[str, ...] = ()) -> None:
        self.at = at
        self.error = error
        self.expected = expected
        super().__init__(str(error))


def text_error(problem: str, text: str, at: int, expected: tuple[str, ...] = ()) -> TextError:
    """A ``TextError`` at an offset; lines end with a newline, both counts start at 1."""
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return TextError(problem, text=text, line=line, column=column, expected=expected)


def placed(misplaced: Misplaced, text: str) -> KbnError:
    """The error with its line, column and caret.

    Limits and temporal references keep their class, fields and code; everything
    else becomes a ``TextError``.
    """
    error = misplaced.error
    made = text_error(error.message, text, misplaced.at, misplaced.expected)
    if isinstance(error, LimitError):
        return LimitError(made.message, limit=error.limit, allowed=error.allowed)
    if isinstance(error, TemporalReferenceError):
        error.message = made.message
        error.args = (made.message,)
        return error
    return made


def unexpected_token(word: str, at: int, accepts: AbstractSet[str], text: str) -> TextError:
    """The error for a well-formed word in the wrong place; ``""`` is the end of the text."""
    problem = f"unexpected {word}" if word[:1] == '"' else f"unexpected '{word}'"
    if not word:
        problem = "the text ends too early"
    elif hint := _hint(word, at, accepts, text):
        problem += f": {hint}"
    return text_error(problem, text, at, expected(accepts))


def unexpected_character(at: int, accepts: AbstractSet[str], text: str) -> TextError:
    """The error for a place where no word of the language begins."""
    rest = text[at : at + 40]
    if rest[0] == '"':
        problem = "this string has no closing quote"
    elif found := re.match(r"[+-]?\.?[0-9][\w.+-]*", rest):
        problem = f"'{found[0]}' is no number: write 5, -5, 0.5 or 5e-3"
        if "DURATION" in accepts:
            problem = f"'{found[0]}' is no duration: write a whole number and ms, s, min, h or d"
    elif rest[0] == ":":
        problem = "unexpected ':': an IRI is written in quotes"
    elif rest[0] == "'":
        problem = "unexpected ': strings are written in double quotes"
    elif rest[0].isalpha():
        problem = f"unexpected '{rest[0]}': a name with such letters is written in quotes"
    else:
        problem = f"unexpected character {rest[0]!r}"
    return text_error(problem, text, at, expected(accepts))


def expected(accepts: AbstractSet[str]) -> tuple[str, ...]:
    """Terminals as the words a person would use, the most telling first."""
    left = set(accepts)
    words: list[str] = []
    if "NAME" in left:
        if {"AFTER", "CONTAINS"} <= left:
            return ("a relation such as overlaps",)
        words.append("a name")
        left -= {"NAME", "STRING", "START", "END", "RELATION"}
    if len(left & _OPERATORS) > 1:
        words.append("an operator")
        left -= _OPERATORS
    if left >= _SCALARS:
        words.append("a value")
        left -= _SCALARS
        if "_RSQB" not in left:
            left.discard("_LSQB")
    elif left == {"STRING", "TERM"}:
        return ("a property such as geo:isWestOf", "an IRI in quotes")
    if "_RSQB" in left:
        left.discard("_COMMA")
    words.extend(word for terminal, word in _WORDS.items() if terminal in left)
    return tuple(words)


def _hint(word: str, at: int, accepts: AbstractSet[str], text: str) -> str:
    names = "NAME" in accepts
    values = accepts >= _SCALARS
    if names and word in _OF_A_TIME and re.match(r"\s*[({]", text[at + len(word) :]):
        return f"say `{_OF_A_TIME[word]} {{ … }}`: which time of the event"
    if names and word in RESERVED:
        return f'a reserved word; as a name it is written "{word}"'
    if word == "=" and text[at - 1 : at] == "=":
        return "equality is written '='"
    if not names and word.lower() in RESERVED and word not in RESERVED:
        return f"keywords are lower case, '{word.lower()}'"
    if "IN" in accepts and re.search(r"(?<![\w$./])not\s+\Z", text[:at]):
        return "there is no 'not': use !="
    if text.startswith(":", at + len(word)):
        return "an IRI is written in quotes"
    if values and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$./]*", word):
        return f'a string is written in quotes, "{word}"'
    return ""
