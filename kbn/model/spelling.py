"""Spellings that the text form and the wire share: doubles and escapes.

Law: ``float(double_text(x))`` is ``x`` for every finite double. Digits are the
shortest that read back; the layout is Java's, because Siena's peers read it:
plain for 1e-3 ≤ |x| < 1e7, else ``d.dddE[-]n``, always with a ``.``, never with ``+``.
"""

from __future__ import annotations

import math

from kbn.errors import UnsupportedError

#: What stands behind the backslash, by the character it stands for.
NAMED_ESCAPES = {
    "\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f", "\v": "v", "\a": "a",
    '"': '"', "\\": "\\",
}  # fmt: skip
#: The character, by the letter behind the backslash; other letters stand for themselves.
ESCAPED_CHARACTERS = {letter: char for char, letter in NAMED_ESCAPES.items()}


def double_text(value: float) -> str:
    """``80.0``, ``-0.0``, ``1.0E10``; ``UnsupportedError`` for NaN and the infinities."""
    text = repr(value)
    if 1e-3 <= value < 1e7 or -1e7 < value <= -1e-3 or value == 0:
        return text
    if not math.isfinite(value):
        raise UnsupportedError(f"{text} cannot be written: no form has NaN or infinity")
    # repr has the shortest digits in a layout of its own: take the digits and the
    # place of the point, and lay them out again.
    sign = "-" if text[0] == "-" else ""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    power = int(exponent or 0) + len(whole) - 1
    leading = len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power - leading}"
