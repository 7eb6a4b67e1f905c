"""How long before the warning at home a town was told: what the whole study is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from case_studies.weather.bulletins import START, WARNING, Bulletin
from case_studies.weather.places import TOWNS, county_at

MINUTE = 60_000
#: A warning later than that is another storm's.
LATEST = 180 * MINUTE


def minutes(
    bulletins: Sequence[Bulletin], told: Mapping[str, Sequence[Bulletin]]
) -> dict[str, int]:
    """By town: minutes from the first it was told to the next warning of its own county."""
    found: dict[str, int] = {}
    for town in TOWNS:
        home = county_at(town.place)
        for heard in told.get(town.name, ()):
            later = [
                b.at - heard.at
                for b in bulletins
                if b.part == START and b.alert.severity == WARNING and home in b.alert.counties
            ]
            ahead = [wait for wait in later if 0 < wait <= LATEST]
            if ahead and home not in heard.alert.counties:
                found[town.name] = min(ahead) // MINUTE
                break
    return found


def in_words(ahead: Mapping[str, int]) -> str:
    """``York was told 40 minutes before its own warning, Geneva 52.``; empty if nobody was."""
    first, *rest = [f"{town} {many}" for town, many in ahead.items()] or [""]
    if not first:
        return ""
    name, many = first.rsplit(" ", 1)
    more = "".join(f", {other}" for other in rest)
    return f"{name} was told {many} minutes before its own warning{more}."
