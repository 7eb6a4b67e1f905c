"""Which X can meet which Y: keys for an equi-join, and the condition that decides.

Law: if a temporal operator admits the pair (X, Y), the pair shares a key, and the condition
says of every pair exactly what the definition says. So a left-semi join on the keys with
the condition as residue is exact, and no pair is looked at that shares no key.

- A window of fixed length (AFTER, and relations that hold two ends together): buckets
  as long as the window; Y has the one of its moment and the next, X one.
- Y lasts and X is a moment (DURING, relations across a border of X): Y's length decides
  its class, each with buckets as long as its longest; Y has at most two of them, X one of
  every class.
- X lasts and Y is a moment (``contains``): the same, the other way round.
- An open Y has no length in time: it counts for the numbers (seq, next], which is an
  interval too, so it is found by X's number in classes of lengths in numbers.

Powers of two make a bucket a shift: no division, nothing overflows (times fit in 49 bits,
limits are cut to 50). Keys that coincide by chance cost a comparison, never an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import and_
from typing import NamedTuple, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as f

from kbn.model.operators import After, Allen, During, Relation
from kbn.model.time import START_TIME

#: No two times are further apart: longer limits and tolerances say the same.
FOREVER = 1 << 50
#: The longest of each class, as a power of two: 1 ms, 64 ms, 1 s, 16 s, 4 min … all of time.
_TIMES = (0, 6, 10, 14, 18, 22, 26, 30, 34, 38, 53)
_NUMBERS = (6, 10, 14, 18, 22, 26, 30, 34, 38)
_ALL_NUMBERS = 63
#: Kinds of keys, so that they do not meet by chance: the low bits of a key.
_LASTING, _NUMBERED, _SPANNED, _FIXED = 0, 64, 128, 192
_LOW = 8

X = ("seq", "uid", "start_ms", "end_ms", "begun", "ended")
Y = ("y_seq", "y_next", "y_uid", "y_start", "y_end")
Joined: TypeAlias = After | During | Relation


class Keys(NamedTuple):
    """Either side of a join: an array to explode, and the key that each member makes."""

    #: What to explode; null where no pair can be admitted.
    over: Column
    key: Callable[[Column], Column]


class Meeting(NamedTuple):
    """Keys of X and of Y, the condition on a pair, and whether an X may have several keys."""

    x: Keys
    y: Keys
    holds: Column
    several: bool


def meeting(name: str, op: Joined, *, max_open: int | None, last_seq: int) -> Meeting:
    """For ``name op {F}``, over frames with the columns ``X`` and ``Y``."""
    moment = f.col("start_ms" if name == START_TIME else "end_ms")
    if isinstance(op, After):
        limit = min(op.limit, FOREVER)
        keys = _fixed(f.col("y_end"), moment - 1, limit - 1)
        holds = (f.col("y_end") < moment) & (f.col("y_end") >= moment - limit)
    elif isinstance(op, During):
        keys = _lasting(moment, 0, last_seq)
        holds = (f.col("y_start") <= moment) & (_is_open() | (f.col("y_end") >= moment))
        holds &= _not_too_long(moment, max_open)
    else:
        tolerance = min(op.tolerance, FOREVER)
        keys = _related_keys(op.kind, tolerance, last_seq)
        holds = related(op.kind, tolerance) & _not_too_long(moment, max_open)
    return Meeting(*keys, holds & _in_force(), not _is_alone(op))


def _is_alone(op: Joined) -> bool:
    return isinstance(op, After) or (isinstance(op, Relation) and op.kind in _NEAR)


def _in_force() -> Column:
    """Y is another event, and this is the version of it that X finds."""
    before, until = f.col("y_seq") < f.col("seq"), f.col("y_next") >= f.col("seq")
    return before & (f.col("y_next").isNull() | until) & (f.col("y_uid") != f.col("uid"))


def _is_open() -> Column:
    return f.col("y_end").isNull()


def _not_too_long(moment: Column, max_open: int | None) -> Column:
    if max_open is None:
        return f.lit(True)
    return ~_is_open() | (moment - f.col("y_start") <= min(max_open, FOREVER))


def _related_keys(kind: Allen, tolerance: int, last_seq: int) -> tuple[Keys, Keys]:
    near = _NEAR.get(kind)
    if near is not None:
        y, x = near
        return _fixed(f.col(y), f.col(x) + tolerance, 2 * tolerance)
    if kind in (Allen.CONTAINS, Allen.OVERLAPS):
        return _begins_within(tolerance)
    # Within a closed Y, its borders relaxed, or an open one.
    return _lasting(f.col("begun"), tolerance, last_seq)


#: Relations that hold a border of Y to a border of X.
_NEAR = {
    Allen.MEETS: ("y_start", "ended"),
    Allen.MET_BY: ("y_end", "begun"),
    Allen.STARTS: ("y_start", "begun"),
    Allen.STARTED_BY: ("y_start", "begun"),
    Allen.EQUALS: ("y_start", "begun"),
    Allen.FINISHES: ("y_end", "ended"),
    Allen.FINISHED_BY: ("y_end", "ended"),
}


def _fixed(point: Column, latest: Column, length: int) -> tuple[Keys, Keys]:
    """Y's point lies in [latest - length, latest] of X."""
    bits = f.lit(length.bit_length() + _FIXED)
    x, y = _key(latest, bits), _key(point, bits)
    both = f.array(y, y + (1 << _LOW)) if length else f.array(y)
    return Keys(f.array(x), _itself), Keys(f.when(point.isNotNull(), both), _itself)


def _lasting(moment: Column, tolerance: int, last_seq: int) -> tuple[Keys, Keys]:
    """X's moment lies within a closed Y, its borders relaxed, or Y is open when X arrives."""
    numbers = [
        _NUMBERED + bits
        for bits in (*_NUMBERS, _ALL_NUMBERS)
        if bits < last_seq.bit_length() or bits == _ALL_NUMBERS
    ]
    times = [_LASTING + bits for bits in _TIMES]

    def x_key(each: Column) -> Column:
        return _key(f.when(each < _NUMBERED, moment).otherwise(f.col("seq")), each)

    low = f.when(_is_open(), f.col("y_seq")).otherwise(f.col("y_start") - tolerance)
    until = f.coalesce("y_next", f.lit(1 << 62))
    high = f.when(_is_open(), until).otherwise(f.col("y_end") + tolerance)
    length = high - low
    kind = f.when(_is_open(), _class(length, numbers)).otherwise(_class(length, times))
    y = f.when(f.col("y_start").isNotNull(), _interval(low, high, kind))
    return Keys(_literal([*times, *numbers]), x_key), Keys(y, _itself)


def _begins_within(tolerance: int) -> tuple[Keys, Keys]:
    """Y begins within X, X's borders relaxed."""
    low, high = f.col("begun") - tolerance, f.col("ended") + tolerance
    classes = [_SPANNED + bits for bits in _TIMES]
    x = _interval(low, high, _class(high - low, classes))
    known = low.isNotNull() & high.isNotNull()
    y = Keys(_literal(classes), partial(_key, f.col("y_start")))
    return Keys(f.when(known, x), _itself), y


def _itself(key: Column) -> Column:
    return key


def _literal(classes: Sequence[int]) -> Column:
    return f.array(*[f.lit(one) for one in classes])


def _class(length: Column, classes: Sequence[int]) -> Column:
    """The first class that is long enough; the last takes all."""
    *shorter, longest = classes
    chosen = f.lit(longest)
    for one in reversed(shorter):
        chosen = f.when(length <= (1 << one % 64), f.lit(one)).otherwise(chosen)
    return chosen


def _interval(low: Column, high: Column, kind: Column) -> Column:
    """The buckets of [low, high], of which there are one or two unless it is longer than them."""
    return f.array_distinct(f.array(_key(low, kind), _key(high, kind)))


def _key(value: Column, kind: Column) -> Column:
    """The bucket of a value, and in the low bits its kind and class: ``kind`` % 64 is the
    length of its buckets, as a power of two."""
    bucket = f.call_function("shiftright", value, kind.bitwiseAND(f.lit(63)))
    return f.shiftleft(bucket, _LOW).bitwiseOR(kind.cast("long"))


#: By kind: the comparisons, of X's start and end (a, b) with Y's (c, d).
_COMPARISONS: dict[Allen, tuple[str, ...]] = {
    Allen.MEETS: ("b=c", "a<b", "c<d"),
    Allen.MET_BY: ("d=a", "a<b", "c<d"),
    Allen.OVERLAPS: ("a<c", "c<b", "b<d"),
    Allen.OVERLAPPED_BY: ("c<a", "a<d", "d<b"),
    Allen.DURING: ("c<a", "b<d"),
    Allen.CONTAINS: ("a<c", "d<b"),
    Allen.STARTS: ("a=c", "b<d"),
    Allen.STARTED_BY: ("a=c", "d<b"),
    Allen.FINISHES: ("b=d", "c<a"),
    Allen.FINISHED_BY: ("b=d", "a<c"),
    Allen.EQUALS: ("a=c", "b=d"),
}
#: What the joins can find: the other two relations reach over all of time.
RELATIONS = frozenset(_COMPARISONS)


def related(kind: Allen, tolerance: int) -> Column:
    """Whether X stands in the relation to Y; without a start of either, or X's end, null."""
    columns = {
        "a": f.col("begun"),
        "b": f.col("ended"),
        "c": f.col("y_start"),
        "d": f.col("y_end"),
    }

    def compared(text: str) -> Column:
        left, sign, right = text[0], text[1], text[2]
        if sign == "=":
            return f.abs(columns[left] - columns[right]) <= tolerance
        less = columns[left] < columns[right] + tolerance
        # An open Y ends at infinity: nothing is greater.
        return _is_open() | less if right == "d" else less

    known = reduce(and_, (columns[one].isNotNull() for one in "abc"))
    return reduce(and_, map(compared, _COMPARISONS[kind]), known)
