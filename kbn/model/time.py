"""The temporal attributes and the range of times."""

from __future__ import annotations

PUB_ID = "PUB_ID"
PUB_TYPE = "KBN_PUB_TYPE"
START_TIME = "KBN_START_TIME"
END_TIME = "KBN_END_TIME"

TIME_ATTRIBUTES = (START_TIME, END_TIME)

#: Milliseconds since the epoch at the first instant of year 1 and the last of year 9999.
TIME_MIN = -62_135_596_800_000
TIME_MAX = 253_402_300_799_999

MILLISECONDS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
