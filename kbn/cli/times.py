"""Times on the command line: ISO 8601 (UTC if it names no zone), milliseconds, or an age."""

from __future__ import annotations

import re

import typer

_WHOLE = re.compile(r"-?[0-9]+")


def read_at(text: str | None) -> int | None:
    """Milliseconds of ``2026-11-18T10:00:00Z`` or ``1763460000000``; None stays None."""
    if text is None:
        return None
    found = _moment(text)
    if found is None:
        raise typer.BadParameter(
            f"{text!r} is no time: write 2026-11-18T10:00:00Z, or milliseconds since 1970"
        )
    return found


def read_since(text: str | None) -> int | None:
    """The same, or an age such as ``24h``, counted back from now."""
    import time

    from kbn.errors import ValueRangeError
    from kbn.language.durations import read_duration

    if text is None:
        return None
    found = _moment(text)
    if found is None:
        try:
            found = time.time_ns() // 1_000_000 - read_duration(text)
        except ValueRangeError:
            raise typer.BadParameter(
                f"{text!r} is neither an age such as 24h (a whole number and ms, s, min, h or d),"
                " nor a time such as 2026-11-18T10:00:00Z or milliseconds since 1970"
            ) from None
    return found


def _moment(text: str) -> int | None:
    from datetime import datetime

    from kbn.client.moments import milliseconds

    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return milliseconds(datetime.fromisoformat(text))
    except ValueError:
        return None
