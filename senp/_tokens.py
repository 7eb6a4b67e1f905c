"""From bytes to tokens, one at a time.

Law: tokens are read by longest match; between two of them separators (white
space, comma, semicolon) and unknown characters are skipped, but an unknown
character directly before a digit or a quote is an error, because there it was
meant (``.5``, ``+5``, ``%"a"``).
Cost: linear in the bytes; every repetition of the expression is possessive, so
no input makes it try twice.
Source: the tokens of Siena 1.3's protocol, plus the symbols of our operators.

The text is the packet's bytes read as Latin-1: one character is one byte, so
positions are byte offsets, and only strings are ever decoded as UTF-8.
"""

from __future__ import annotations

import math
import re

from kbn.model.spelling import ESCAPED_CHARACTERS
from kbn.model.values import LONG_MAX, LONG_MIN
from senp.errors import WireError

WORD = "word"
STRING = "string"
LONG = "long"
DOUBLE = "double"
END = "end"

_SEPARATORS = r" \t\n\r\f\v,;"
# `#`, `@` and `$` are unknown unless they begin one of our symbols.
_UNKNOWN = (
    rf'(?:[^A-Za-z_0-9"\-{{}}()\[\]=<>*!^\#@${_SEPARATORS}]'
    r'|\#(?![<>=])|@(?![=<>:(]|![=:])|\$(?![=>~]))(?![0-9"])'
)
_SKIPPED = rf"(?:[{_SEPARATORS}]++|{_UNKNOWN})*+"
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_$./]*+"
_SYMBOL = r"@!=|@!:|@[=<>:(]|\#[<>=]|\$[=>~]|<=|>=|>\*|\*<|!=|[{}()\[\]=<>*^]"

_TOKEN = re.compile(
    rf"{_SKIPPED}(?:"
    rf"({_IDENTIFIER})"
    r'|"((?:[^"\\]++|\\.)*+)"'
    r"|(-?[0-9]++(?![.eE]))"
    r"|(-?[0-9]++(?:\.[0-9]++(?![eE])|(?:\.[0-9]++)?+[eE]-?[0-9]++))"
    rf"|({_SYMBOL})"
    r"|(\Z))",
    re.DOTALL,
)
_SKIP = re.compile(_SKIPPED)
_BLANK = re.compile(rf"[{_SEPARATORS}]*+")
_IS_IDENTIFIER = re.compile(_IDENTIFIER)
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
_LONG_DIGITS = 19


def is_identifier(name: str) -> bool:
    """Whether a name may be written without quotes."""
    return _IS_IDENTIFIER.fullmatch(name) is not None


class Tokens:
    """A cursor: ``advance`` reads the next token into ``kind``, ``value`` and ``start``.

    ``kind`` is one of the constants above, or the symbol itself; ``value`` is
    the word, the decoded string or the number; ``start`` is its byte offset and
    ``stop`` the offset behind it.
    """

    __slots__ = ("kind", "start", "stop", "text", "value")

    text: str
    kind: str
    value: str | int | float
    start: int
    stop: int

    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.start = self.stop = position
        self.kind = END
        self.value = ""

    def advance(self) -> str:
        """Read the next token and return its kind; raise ``WireError`` if there is none."""
        match = _TOKEN.match(self.text, self.stop)
        if match is None:
            raise self._unreadable()
        group = match.lastindex or 0
        self.start = start = match.start(group)
        self.stop = match.end()
        if group == 5:
            self.kind = match[5]
        elif group == 1:
            self.kind = WORD
            self.value = match[1]
        elif group == 2:
            self.start = start - 1
            self.kind = STRING
            self.value = unescape(match[2], start)
        elif group == 3:
            self.kind = LONG
            self.value = read_long(match[3], start)
        elif group == 4:
            self.kind = DOUBLE
            self.value = read_double(match[4], start)
        else:
            self.kind = END
        return self.kind

    def begin(self) -> str:
        """Read the first token: nothing but separators may stand before it."""
        blank = self._blank()
        kind = self.advance()
        if self.start != blank:
            raise WireError("only white space may precede the packet", position=blank)
        return kind

    def finish(self) -> None:
        """Raise unless only separators follow the current token."""
        blank = self._blank()
        if blank != len(self.text):
            raise WireError("the packet should have ended", position=blank)

    def unexpected(self, expected: str) -> WireError:
        """The error for a current token that does not fit the grammar."""
        return WireError(f"expected {expected}, found {self._shown()}", position=self.start)

    def _blank(self) -> int:
        found = _BLANK.match(self.text, self.stop)
        return found.end() if found else self.stop

    def _shown(self) -> str:
        if self.kind == END:
            return "the end"
        if self.kind in (WORD, STRING, LONG, DOUBLE):
            return f"the {self.kind} {str(self.value)[:32]!a}"
        return f"'{self.kind}'"

    def _unreadable(self) -> WireError:
        skipped = _SKIP.match(self.text, self.stop)
        at = skipped.end() if skipped else self.stop
        byte = self.text[at]
        if byte == '"':
            return WireError("the string is not closed", position=at)
        if byte == "-" or byte.isdecimal():
            return WireError("the number is not complete", position=at)
        if byte == "!":
            return WireError("'!' is no operator", position=at)
        return WireError(
            f"{byte!a} may not stand directly before a number or a string", position=at
        )


def read_long(digits: str, position: int) -> int:
    """A signed 64-bit number; the digits are counted first, for ``int`` is quadratic."""
    magnitude = digits.lstrip("-0")
    if len(magnitude) <= _LONG_DIGITS:
        value = int(magnitude or "0")
        if digits[0] == "-":
            value = -value
        if LONG_MIN <= value <= LONG_MAX:
            return value
    raise WireError("the number does not fit in 64 bits", position=position)


def read_double(digits: str, position: int) -> float:
    """A finite double; one that is too large is an error, one too small is zero."""
    value = float(digits)
    if math.isinf(value):
        raise WireError("the number does not fit in a double", position=position)
    return value


def unescape(raw: str, position: int) -> str:
    """The string between the quotes; ``position`` is where it starts in the packet."""
    if "\\" not in raw:
        if raw.isascii():
            return raw
        plain = raw
    else:
        try:
            plain = _ESCAPE.sub(_unescaped, raw)
        except OverflowError:
            raise _octal_error(raw, position) from None
        if plain.isascii():
            return plain
    try:
        return plain.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError as error:
        at = position + _source_offset(raw, error.start)
        raise WireError("the string is not UTF-8", position=at) from None


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped[0] in "01234567":
        byte = int(escaped, 8)
        if byte > 0xFF:
            raise OverflowError
        return chr(byte)
    return ESCAPED_CHARACTERS.get(escaped, escaped)


def _octal_error(raw: str, position: int) -> WireError:
    for match in _ESCAPE.finditer(raw):
        if match[1][0] in "01234567" and int(match[1], 8) > 0xFF:
            position += match.start()
            break
    return WireError("an octal escape is at most \\377", position=position)


def _source_offset(raw: str, index: int) -> int:
    """Where byte ``index`` of the unescaped string was written."""
    shift = 0
    for match in _ESCAPE.finditer(raw):
        if match.start() - shift >= index:
            break
        shift += match.end() - match.start() - 1
    return index + shift
