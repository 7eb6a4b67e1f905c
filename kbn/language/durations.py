"""Durations: a whole number with a unit, ``250ms 2s 5min 1h 1d``; milliseconds inside."""

from __future__ import annotations

import re

from kbn.errors import ValueRangeError
from kbn.model.time import MILLISECONDS
from kbn.model.values import LONG_MAX

_DURATION = re.compile(r"([0-9]+)(ms|s|min|h|d)")
#: More digits than any 64-bit number has, even with leading zeros written for fun.
_MAX_DIGITS = 40


def read_duration(text: str) -> int:
    """The milliseconds of ``2s``; raises ``ValueRangeError``."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueRangeError(
            f"{text!r} is no duration: write a whole number and ms, s, min, h or d, such as 2s"
        )
    digits, unit = found.groups()
    held = int(digits) * MILLISECONDS[unit] if len(digits) <= _MAX_DIGITS else LONG_MAX + 1
    if held > LONG_MAX:
        raise ValueRangeError("the duration does not fit in a signed 64-bit long of milliseconds")
    return held


def print_duration(milliseconds: int) -> str:
    """The duration in the largest unit that divides it exactly; nothing is ``0ms``."""
    for unit, size in reversed(MILLISECONDS.items()):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"
