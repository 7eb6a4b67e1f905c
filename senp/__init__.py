"""SENP, the wire: bytes to packets and back, without sockets, clock or logging.

``decode`` and ``encode`` are inverse on packets; ``FrameReader`` and
``encode_frame`` are the ``ka`` framing around them. Who touches a spelling here
touches every peer: the cases in ``tests/vectors/senp`` state all of them.
``_decode`` defines what bytes mean; ``_fast`` may only ever agree with it.
"""

from __future__ import annotations

from kbn.model import Notification, Subscription, Value
from senp import _encode
from senp._decode import Decoder
from senp._fast import decode_text
from senp.errors import WireError
from senp.framing import ACCEPTED, REFUSED, FrameReader, encode_frame
from senp.packets import (
    DEFAULT_LIMITS,
    DEFAULT_TTL,
    MAX_ID,
    MAX_PACKET,
    METHODS,
    SESSION_METHODS,
    SIENA_METHODS,
    Limits,
    Packet,
    Pattern,
    Payload,
)

__all__ = [
    "ACCEPTED",
    "DEFAULT_LIMITS",
    "DEFAULT_TTL",
    "MAX_ID",
    "MAX_PACKET",
    "METHODS",
    "REFUSED",
    "SESSION_METHODS",
    "SIENA_METHODS",
    "FrameReader",
    "Limits",
    "Packet",
    "Pattern",
    "Payload",
    "WireError",
    "decode",
    "decode_event",
    "decode_subscription",
    "decode_with_body",
    "encode",
    "encode_event",
    "encode_frame",
    "encode_header",
    "encode_payload",
    "encode_subscription",
    "encode_value",
    "join",
]


def decode(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Packet:
    """The packet these bytes mean; raises ``WireError`` and nothing else."""
    return decode_text(_text(data, limits), limits)[0]


def decode_with_body(data: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[Packet, bytes | None]:
    """The packet, and its ``event{…}`` as it came if that is the canonical spelling.

    A body that is given equals ``encode_payload(packet.payload)``, so a broker
    that passes the event on unchanged need not encode it again. None says
    nothing but that the payload must be encoded.
    """
    packet, body = decode_text(_text(data, limits), limits, want_body=True)
    return packet, None if body is None else data[body:]


def decode_event(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Notification:
    """The notification that ``event{…}`` alone means."""
    payload = _decode_payload(data, limits, ("event",))
    assert isinstance(payload, Notification)
    return payload


def decode_subscription(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Subscription:
    """The subscription that ``filter{…}`` or ``filters{…}`` alone means."""
    payload = _decode_payload(data, limits, ("filter", "filters"))
    assert isinstance(payload, Subscription)
    return payload


def encode(packet: Packet) -> bytes:
    """The canonical bytes; ``UnsupportedError`` for NaN, infinity and the like."""
    header = _encode.header_text(packet)
    if packet.payload is None:
        return header.encode("ascii")
    return f"{header} {_encode.payload_text(packet.payload)}".encode("ascii")


def encode_header(packet: Packet) -> bytes:
    """``senp{…}`` alone, whatever the payload; see ``join``."""
    return _encode.header_text(packet).encode("ascii")


def encode_payload(payload: Payload) -> bytes:
    """The payload alone, to be joined to many headers; empty for None."""
    return _encode.payload_text(payload).encode("ascii")


def join(header: bytes, payload: bytes) -> bytes:
    """One packet of an encoded header and a payload encoded once for all receivers."""
    return header + b" " + payload if payload else header


def encode_event(event: Notification) -> bytes:
    """``event{…}`` alone."""
    return _encode.event_text(event.attributes).encode("ascii")


def encode_subscription(subscription: Subscription) -> bytes:
    """``filter{…}`` or ``filters{…}`` alone."""
    return _encode.subscription_text(subscription).encode("ascii")


def encode_value(value: Value) -> bytes:
    """One value, such as ``80.0``, ``"a"`` or ``["START" "END"]``."""
    return _encode.value_text(value).encode("ascii")


def _text(data: bytes, limits: Limits) -> str:
    if len(data) > limits.max_packet:
        raise WireError(
            f"a packet has at most {limits.max_packet} bytes, this one {len(data)}",
            position=limits.max_packet,
            code="too_large",
        )
    return data.decode("latin-1")


def _decode_payload(data: bytes, limits: Limits, keywords: tuple[str, ...]) -> Payload:
    decoder = Decoder(_text(data, limits), limits)
    decoder.begin()
    if decoder.value not in keywords:
        raise decoder.unexpected(" or ".join(f"'{keyword}'" for keyword in keywords))
    return decoder.payload()
