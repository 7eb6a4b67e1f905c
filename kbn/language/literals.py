"""Constants as text: strings with SENP's escapes, longs, doubles.

Law: ``read_string(write_string(s)) == s`` and ``read_double(write_double(x))`` is
``x``, for every value of the model. A double is written with the shortest digits
that read back, always with a ``.`` or an exponent (so that it never reads as a
long), in the layout of the wire. What a terminal would not show, or would obey,
is written as octal escapes of its UTF-8 bytes.
"""

from __future__ import annotations

import math
import re

from kbn.errors import UnsupportedError, ValueRangeError
from kbn.model.values import LONG_MAX, LONG_MIN

_ESCAPED = {
    "\n": r"\n",
    "\t": r"\t",
    "\r": r"\r",
    "\b": r"\b",
    "\f": r"\f",
    "\v": r"\v",
    "\a": r"\a",
    '"': r"\"",
    "\\": r"\\",
}
_LETTERS = {written[1]: char for char, written in _ESCAPED.items()}
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
    return _LETTERS.get(escape, escape).encode()


def write_string(text: str) -> str:
    """The literal, in quotes."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_write_character, text)) + '"'


def _write_character(char: str) -> str:
    if char in _ESCAPED:
        return _ESCAPED[char]
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


def write_double(number: float) -> str:
    """Plain for 1e-3 ≤ |x| < 1e7, else ``d.dddE[-]n``; raises ``UnsupportedError``."""
    if not math.isfinite(number):
        raise UnsupportedError(f"{number} cannot be written: no form has NaN or an infinity")
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    # repr has the shortest digits in some layout of its own: take the digits and
    # the position of the point, and lay them out again.
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    power = len(whole) - leading - 1 + int(exponent or 0)
    digits = digits.rstrip("0")
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
