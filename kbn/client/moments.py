"""Times as people have them: milliseconds since 1970, ``datetime``, or how long ago.

A ``datetime`` without a zone is read as UTC: a broker has no local time.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from kbn.errors import ValueRangeError

#: A point in time.
Moment: TypeAlias = int | datetime
#: A point in time, or how long ago it was.
Since: TypeAlias = int | datetime | timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def now() -> int:
    """This moment, in milliseconds."""
    return time.time_ns() // 1_000_000


def milliseconds(moment: Moment) -> int:
    """The moment in milliseconds since 1970; raises ``ValueRangeError`` for what is none."""
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (aware - _EPOCH) // _MILLISECOND
    if isinstance(moment, bool) or not isinstance(moment, int):
        raise ValueRangeError(f"a time is milliseconds or a datetime, not {moment!r}")
    return moment


def since_when(since: Since) -> int:
    """The same, counting a ``timedelta`` back from now."""
    if isinstance(since, timedelta):
        return now() - since // _MILLISECOND
    return milliseconds(since)
