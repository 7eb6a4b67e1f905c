"""How a publication's attributes are written in the log: exact, compact, plain ASCII.

The wire's own spelling, ``event{…}``, so a broker hands on the bytes it received.
NaN and the infinities have no spelling there (a transformation can compute them):
such an event is written as JSON, its doubles as hexadecimal text.
"""

from __future__ import annotations

import json

from kbn.errors import UnsupportedError
from kbn.model.notifications import Notification
from kbn.model.publications import LogEntry
from kbn.model.values import Bag, Scalar, Value
from senp import Limits, decode, encode_event

_HEADER = b'senp{version=1 method="PUB" ttl=30} '
_LIMITS = Limits(max_packet=2**31)


def write_body(notification: Notification) -> str:
    """The text of a body; ``read_body`` gives the same notification back, in every case."""
    try:
        return encode_event(notification).decode("ascii")
    except UnsupportedError:
        return json.dumps([[name, _to_json(value)] for name, value in notification.items()])


def read_body(text: str) -> Notification:
    """What ``write_body`` wrote."""
    if text.startswith("event{"):
        # By way of a packet, since that is the decoder's fast path.
        payload = decode(_HEADER + text.encode("ascii"), _LIMITS).payload
        assert isinstance(payload, Notification)
        return payload
    return Notification({name: _from_json(value) for name, value in json.loads(text)})


def texts(entries: list[LogEntry], bodies: list[bytes | None] | None) -> list[str]:
    """The text for each entry, taken from ``bodies`` where the caller has it."""
    if bodies is None:
        return [write_body(entry.notification) for entry in entries]
    return [
        write_body(entry.notification) if body is None else body.decode("ascii")
        for entry, body in zip(entries, bodies, strict=True)
    ]


def _to_json(value: Value) -> object:
    if isinstance(value, float):
        return {"d": value.hex()}
    if isinstance(value, Bag):
        return [_to_json(member) for member in value.members]
    return value


def _from_json(form: object) -> Value:
    if isinstance(form, list):
        return Bag(_scalar(member) for member in form)
    return _scalar(form)


def _scalar(form: object) -> Scalar:
    if isinstance(form, dict):
        return float.fromhex(form["d"])
    assert form is None or isinstance(form, bool | int | str)
    return form
