"""Regions: which values the constraints on one name leave possible.

Law: every value that satisfies the constraints is in the region. For ``= != < <=
> >= prefix any`` the region is exact when numbers and strings are taken as
dense; ``suffix``, ``contains`` and bag operators are kept beside the interval,
and asked wherever a single value has to be decided.

An ordering or a textual operator admits one type class only, so a region is one
of five things: *empty*, a *single* value, an interval of one class (``kind``),
both bools, or *open*: what ``any`` and ``!=`` leave of all values, NaN, null and
bags among them. A prefix is the interval from itself to its successor.

Cost: a few comparisons for each constraint, and one evaluation of them all at
each closed end of the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from kbn.matching.content import BOOL, NUMBER, STRING, content_holds, is_nan, type_class
from kbn.model.operators import ORDERINGS, STRING_OPERATORS, Content
from kbn.model.values import Value

#: A content constraint without its name.
Test: TypeAlias = tuple[Content, Value]
#: A further condition that a value must meet, such as a bag operator.
Guard: TypeAlias = Callable[[Value], bool]

_LAST_CODE_POINT = 0x10FFFF
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000


class Region:
    """What the ``tests`` and ``guards`` on one name leave possible; see the module."""

    __slots__ = (
        "empty",
        "guards",
        "high",
        "high_open",
        "kind",
        "low",
        "low_open",
        "point",
        "scalar",
        "single",
        "tests",
    )

    tests: Sequence[Test]
    guards: Sequence[Guard]
    #: No value is possible at all.
    empty: bool
    #: Exactly the values equal to ``point`` are possible.
    single: bool
    point: Value
    #: The one type class that is possible; None when several are.
    kind: str | None
    #: No bag is possible.
    scalar: bool
    #: The interval, of the class ``kind``; a string interval without end has ``high`` None.
    low: Any
    low_open: bool
    high: Any
    high_open: bool

    def __init__(
        self, tests: Sequence[Test], guards: Sequence[Guard] = (), scalar: bool = False
    ) -> None:
        self.tests = tests
        self.guards = guards
        self.empty = self.single = False
        self.point = None
        self.kind = None
        self.scalar = scalar
        self.low = self.high = None
        self.low_open = self.high_open = False
        self._build()

    def admits(self, value: Value) -> bool:
        """Whether this very value satisfies everything that can be asked of it here."""
        for op, operand in self.tests:
            if not content_holds(op, value, operand):
                return False
        return all(guard(value) for guard in self.guards)

    def _build(self) -> None:
        for op, operand in self.tests:
            if op is Content.EQ:
                self._become(operand)
                return
            if op in ORDERINGS:
                kind = type_class(operand)
                if kind not in (NUMBER, STRING, BOOL) or is_nan(operand):
                    self.empty = True
                    return
            elif op in STRING_OPERATORS:
                kind = type_class(operand)
                if kind != STRING:
                    self.empty = True
                    return
            else:
                continue
            if self.kind is None:
                self._enter(kind)
            elif self.kind != kind:
                self.empty = True
                return
            self._narrow(op, operand)
        if self.kind == BOOL:
            left = [value for value in (False, True) if self.admits(value)]
            self.empty = not left
            if len(left) == 1:
                self._become(left[0])
        elif self.kind is not None:
            self._close()

    def _become(self, value: Value) -> None:
        """Only ``value`` is left, if the other constraints let it stand."""
        self.kind = type_class(value)
        self.scalar = self.scalar or self.kind != "bag"
        self.point = value
        self.single = self.admits(value) and not (self.scalar and self.kind == "bag")
        self.empty = not self.single

    def _enter(self, kind: str) -> None:
        self.kind = kind
        self.scalar = True
        if kind == NUMBER:
            # The infinities are values too: the ends of the line, and on it.
            self.low, self.high = -math.inf, math.inf
        elif kind == STRING:
            self.low = ""
            self.high_open = True

    def _narrow(self, op: Content, operand: Any) -> None:
        if self.kind == BOOL:
            return
        if op is Content.LT or op is Content.LE:
            self._below(operand, op is Content.LT)
        elif op is Content.GT or op is Content.GE:
            self._above(operand, op is Content.GT)
        elif op is Content.PREFIX:
            self._above(operand, False)
            self._below(successor(operand), True)

    # Of two equal bounds either is kept: _close asks all constraints at a closed end.

    def _above(self, bound: Any, exclusive: bool) -> None:
        if bound > self.low:
            self.low, self.low_open = bound, exclusive

    def _below(self, bound: Any, exclusive: bool) -> None:
        if bound is None:
            return
        if self.high is None or bound < self.high:
            self.high, self.high_open = bound, exclusive

    def _close(self) -> None:
        """Open the ends that are excluded after all; see what is left."""
        if not self.low_open and not self.admits(self.low):
            self.low_open = True
        if not self.high_open and not self.admits(self.high):
            self.high_open = True
        if self.high is None:
            return
        if self.low == self.high:
            self.empty = self.low_open or self.high_open
            self.single = not self.empty
            self.point = self.low
        else:
            self.empty = self.low > self.high


def successor(prefix: str) -> str | None:
    """The least string above every string that starts with ``prefix``; None if none is.

    Surrogates are no characters, so U+D7FF is followed by U+E000.
    """
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1])
        if code == _LAST_CODE_POINT:
            continue
        code = _AFTER_SURROGATES if code == _BEFORE_SURROGATES else code + 1
        return prefix[: end - 1] + chr(code)
    return None


def common_prefix(region: Region) -> str:
    """The longest string with which every string of the interval starts."""
    if region.kind != STRING or region.high is None:
        return ""
    low: str = region.low
    for end in range(len(low), 0, -1):
        if below(region, successor(low[:end]), True):
            return low[:end]
    return ""


def bounds(region: Region) -> tuple[Any, Any]:
    """The ends of an interval of numbers or strings; None where it has none."""
    if region.kind not in (NUMBER, STRING):
        return None, None
    if region.single:
        return region.point, region.point
    low, high = region.low, region.high
    if region.kind == STRING:
        return low or None, high
    return (None if low == -math.inf else low), (None if high == math.inf else high)


def below(region: Region, bound: Any, exclusive: bool) -> bool:
    """Whether the whole interval lies below ``bound`` (None: no bound)."""
    if bound is None:
        return True
    high = region.high
    if high is None:
        return False
    return bool(high < bound or (high == bound and (region.high_open or not exclusive)))


def above(region: Region, bound: Any, exclusive: bool) -> bool:
    """Whether the whole interval lies above ``bound``."""
    low = region.low
    return bool(low > bound or (low == bound and (region.low_open or not exclusive)))
