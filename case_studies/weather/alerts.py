"""The National Weather Service's alerts, read as bulletins.

The service answers with GeoJSON: features whose properties are one message each. Rules:
an ``Alert`` is a START at its onset (else when it took effect) under the message's own
id; an ``Update`` ends what it refers to when it was sent, and starts anew; a ``Cancel``
is the END of what it refers to; so is the moment an alert ends (else expires), once that
is reached. A message counts for the counties of Nebraska it names; others are skipped and
counted, and so are messages of other kinds, and tests. Where a message refers to ones
that are not here, the newest of them is ended: somebody may have heard of it before.
Run as a program it hands them to a broker (``relay.py``).
"""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from case_studies.weather.bulletins import END, START, WARNING, WATCH, Alert, Bulletin, in_order
from case_studies.weather.places import County, by_fips

#: The service's words for what the study speaks of.
EVENTS = {
    "Severe Thunderstorm": "tstorm",
    "Tornado": "tornado",
    "Flash Flood": "flood",
    "Flood": "flood",
}
#: Nebraska in the codes of the census and of the weather service.
SAME_STATE, UGC_STATE = "031", "NEC"
#: What a message is skipped for, in more words.
REASONS = {
    "other event": "other event (no watch or warning of thunderstorms, tornadoes or floods)",
    "county elsewhere": "county elsewhere (not in Nebraska)",
    "not actual": "not actual (a test or a draft)",
}
#: An answer beyond this is not what one asked for.
LARGEST = 50_000_000


class AlertsError(ValueError):
    """What was read are no alerts; the message says what is wrong and where."""


@dataclass
class Reading:
    """What was made of an answer."""

    bulletins: list[Bulletin] = field(default_factory=list)
    #: Messages taken, and what was skipped by reason.
    taken: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        skipped = ", ".join(f"{n} × {REASONS.get(why, why)}" for why, n in self.skipped.items())
        return f"{self.taken} messages taken; skipped: {skipped or 'nothing'}"


@dataclass(frozen=True, slots=True)
class _Message:
    id: str
    kind: str
    alert: Alert
    sent: int
    begins: int
    ends: int | None
    #: Ids it refers to, the oldest first.
    refers: tuple[str, ...]


def is_address(place: str) -> bool:
    """Whether it is asked over the network."""
    return place.startswith(("https://", "http://"))


def fetch(place: str) -> object:
    """The JSON of a file, or of an ``https://`` or ``http://`` address that the user gave.

    Raises ``AlertsError`` and ``OSError``.
    """
    try:
        if is_address(place):
            asking = {"User-Agent": "kbn-weather-study", "Accept": "application/geo+json"}
            request = urllib.request.Request(place, headers=asking)
            with urllib.request.urlopen(request, timeout=30) as answer:
                text = answer.read(LARGEST + 1)
        else:
            text = Path(place).read_bytes()
        if len(text) > LARGEST:
            raise AlertsError(f"{place}: more than {LARGEST} bytes")
        return json.loads(text)
    except ValueError as error:
        raise AlertsError(f"{place}: {error}") from None


def read(answer: object, now: int | None = None) -> Reading:
    """Bulletins in order; with ``now`` only those of moments that have been reached.

    Without it the answer is a recording, and everything in it has come to its end.
    """
    if not isinstance(answer, Mapping) or not isinstance(answer.get("features"), list):
        raise AlertsError("no alerts: an object with a list of 'features' is expected")
    reading = Reading()
    messages = []
    for number, feature in enumerate(answer["features"]):
        try:
            message = _message(feature["properties"], reading.skipped)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise AlertsError(f"features[{number}]: {error!r}") from None
        if message is not None:
            messages.append(message)
    reading.taken = len(messages)
    said = _bulletins(sorted(messages, key=lambda message: message.sent))
    reading.bulletins = in_order(b for b in said if now is None or b.at <= now)
    return reading


def _message(said: Mapping[str, Any], skipped: Counter[str]) -> _Message | None:
    if said.get("status", "Actual") != "Actual":
        skipped["not actual"] += 1
        return None
    kind = said["messageType"]
    if kind not in ("Alert", "Update", "Cancel"):
        skipped["other message type"] += 1
        return None
    words, _, severity = str(said["event"]).rpartition(" ")
    type_ = EVENTS.get(words)
    if type_ is None or severity.lower() not in (WATCH, WARNING):
        skipped["other event"] += 1
        return None
    counties = _counties(said["geocode"], skipped)
    if not counties:
        skipped["no county of Nebraska"] += 1
        return None
    begins = _moment(said.get("onset") or said["effective"])
    ends = said.get("ends") or said.get("expires")
    alert = Alert(str(said["id"]), type_, severity.lower(), counties, "weather service")
    refers = sorted(said.get("references") or (), key=lambda other: _moment(other["sent"]))
    return _Message(
        id=alert.id,
        kind=kind,
        alert=alert,
        sent=_moment(said["sent"]),
        begins=begins,
        ends=None if ends is None else max(begins, _moment(ends)),
        refers=tuple(str(other["identifier"]) for other in refers),
    )


def _counties(codes: Mapping[str, Any], skipped: Counter[str]) -> tuple[County, ...]:
    """Those of Nebraska; every county of another state is counted."""
    found: dict[str, County] = {}
    same = [str(code) for code in codes.get("SAME") or ()]
    if not same:  # some messages name counties by the service's own codes only
        same = [_same(str(code)) for code in codes.get("UGC") or () if str(code)[2:3] == "C"]
    for code in same:
        county = by_fips().get(code[1:])
        if county is None:
            skipped["county elsewhere"] += 1
        else:
            found[county.name] = county
    return tuple(found.values())


def _same(ugc: str) -> str:
    """``NEC081`` as ``031081``; of another state something that no county has."""
    return SAME_STATE + ugc[3:] if ugc.startswith(UGC_STATE) else ugc


def _bulletins(messages: Iterable[_Message]) -> Iterable[Bulletin]:
    """In the order they were sent: what is open, and what each message does about it."""
    started: dict[str, _Message] = {}
    ended: dict[str, int] = {}
    unheard: list[Bulletin] = []
    for message in messages:
        if message.kind != "Alert":
            here = [other for other in message.refers if other in started]
            for other in here:
                ended[other] = min(ended.get(other, message.sent), message.sent)
            if not here and message.refers:
                alert = message.alert
                gone = Alert(
                    message.refers[-1], alert.type, alert.severity, alert.counties, alert.source
                )
                unheard.append(Bulletin(message.sent, END, gone))
        if message.kind != "Cancel":
            started[message.id] = message
    for message in started.values():
        yield Bulletin(message.begins, START, message.alert)
        end = ended.get(message.id, message.ends)
        if message.ends is not None and end is not None:
            end = min(end, message.ends)
        if end is not None:
            yield Bulletin(max(end, message.begins), END, message.alert)
    yield from unheard


def _moment(text: str) -> int:
    """Milliseconds since 1970 of a time with its zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


if __name__ == "__main__":
    import sys

    from case_studies.weather.relay import main

    sys.exit(main())
