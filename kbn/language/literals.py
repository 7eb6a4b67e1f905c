"""Constants as text: strings with SENP's escapes, longs, doubles.

Law: ``read_string(write_string(s)) == s``, and ``read_double`` reads back what
``kbn.model.spelling`` wrote, for every value of the model. What a terminal would
not show, or would obey, is written as octal escapes of its UTF-8 bytes.
"""

from __future__ import annotations

import math
import re

from kbn.errors import ValueRangeError
from kbn.model.spelling import ESCAPED_CHARACTERS, NAMED_ESCAPES
from kbn.model.values import LONG_MAX, LONG_MIN

_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
#: Longer runs of digits are refused before Python is asked to read them.
_MAX_DIGITS = 400


class EscapeError(ValueRangeError):
    """An escape that stands for no byte; ``offset`` counts from the opening quote."""

    def __init__(self, message: str, offset: int) -> None:
        self.offset = offset
        super().__init__(message)


def read_string(literal: str) -> str:
    """What a quoted literal stands for; raises ``EscapeError``.

    An octal escape is one byte, so a character beyond ASCII is several of them,
    and the bytes of the whole string must be UTF-8.
    """
    body = literal[1:-1]
    if "\\" not in body:
        return body
    held = bytearray()
    done = 0
    for found in _ESCAPE.finditer(body):
        held += body[done : found.start()].encode()
        held += _escaped_bytes(found[1], found.start() + 1)
        done = found.end()
    held += body[done:].encode()
    try:
        return held.decode("utf-8")
    except UnicodeDecodeError:
        raise EscapeError("the bytes of this string are not UTF-8", 0) from None


def _escaped_bytes(escape: str, offset: int) -> bytes:
    if escape[0] in "01234567":
        byte = int(escape, 8)
        if byte > 0o377:
            raise EscapeError(f"\\{escape} is no byte: octal escapes end at \\377", offset)
        return bytes((byte,))
    return ESCAPED_CHARACTERS.get(escape, escape).encode()


def write_string(text: str) -> str:
    """The literal, in quotes."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_write_character, text)) + '"'


def _write_character(char: str) -> str:
    if char in NAMED_ESCAPES:
        return "\\" + NAMED_ESCAPES[char]
    if char.isprintable():
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode())


def read_long(digits: str) -> int:
    """A signed 64-bit number; raises ``ValueRangeError``."""
    held = int(digits) if len(digits) <= _MAX_DIGITS else LONG_MAX + 1
    if not LONG_MIN <= held <= LONG_MAX:
        raise ValueRangeError("the number does not fit in a signed 64-bit long")
    return held


def read_double(digits: str) -> float:
    """A finite double; raises ``ValueRangeError``."""
    held = float(digits)
    if not math.isfinite(held):
        raise ValueRangeError("the number is too large for a double")
    return held
