"""``kbn senp``: packets for people. Decode bytes to JSON, encode JSON to bytes."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from senp import Packet

app = typer.Typer(
    help="Read and write packets of the SENP wire protocol.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Framed = Annotated[
    bool, typer.Option("--framed", help="The ka framing: two bytes of length before each packet.")
]

#: Payload kinds by the JSON key that carries them.
_EVENT, _EVENTS, _SUBSCRIPTION, _PATTERN = "event", "events", "subscription", "pattern"


@app.command()
def decode(
    packet: Annotated[
        str | None, typer.Argument(metavar="PACKET", help="The packet; from stdin if not given.")
    ] = None,
    framed: Framed = False,
    as_json: AsJson = False,
) -> None:
    """Print what a packet says: its fields and its payload, or where it is wrong."""
    from senp import FrameReader
    from senp import decode as decode_packet

    data = os.fsencode(packet) if packet is not None else sys.stdin.buffer.read()
    if framed:
        reader = FrameReader()
        frames = reader.feed(data)
        if reader.pending:
            typer.echo(f"kbn: warning: {reader.pending} bytes of an unfinished frame", err=True)
    else:
        frames = [data if packet is not None else data.rstrip(b"\r\n")]
    for frame in frames:
        shown = _to_json(decode_packet(frame))
        if as_json:
            typer.echo(json.dumps(shown, ensure_ascii=False))
        else:
            for name, value in shown.items():
                said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                typer.echo(f"{name:12} {said}")


@app.command()
def encode(
    packet: Annotated[
        str | None,
        typer.Argument(metavar="JSON", help="A packet as `decode --json` prints it; or stdin."),
    ] = None,
    framed: Framed = False,
    as_json: AsJson = False,
) -> None:
    """Print the bytes of a packet given as JSON."""
    from senp import encode as encode_packet
    from senp import encode_frame

    text = packet if packet is not None else sys.stdin.buffer.read()
    encoded = encode_packet(_from_json(text))
    if framed:
        sys.stdout.buffer.write(encode_frame(encoded))
        sys.stdout.buffer.flush()
    elif as_json:
        typer.echo(json.dumps({"senp": encoded.decode("ascii")}))
    else:
        typer.echo(encoded.decode("ascii"))


def _to_json(packet: Packet) -> dict[str, Any]:
    from kbn.language import event_to_json, subscription_to_json
    from kbn.model import Notification, Subscription
    from senp import Pattern

    payload = packet.payload
    said: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in packet._asdict().items()
        if name != "payload" and value is not None and value is not False
    }
    if isinstance(payload, Notification):
        said[_EVENT] = event_to_json(payload)
    elif isinstance(payload, Subscription):
        said[_SUBSCRIPTION] = subscription_to_json(payload)
    elif isinstance(payload, Pattern):
        said[_PATTERN] = [subscription_to_json(Subscription([f])) for f in payload.filters]
    elif payload is not None:
        said[_EVENTS] = [event_to_json(event) for event in payload]
    return said


def _from_json(text: str | bytes) -> Packet:
    from kbn.errors import JsonFormError
    from kbn.language import event_from_json, parse_subscription, subscription_from_json
    from senp import Packet, Pattern, Payload

    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JsonFormError(f"not JSON: {error}", path="$") from None
    if not isinstance(said, dict):
        raise JsonFormError("a packet is an object", path="$")
    payload: Payload = None
    if _EVENT in said:
        payload = event_from_json(said.pop(_EVENT))
    elif _EVENTS in said:
        payload = tuple(event_from_json(event) for event in _list(said.pop(_EVENTS), _EVENTS))
    elif _SUBSCRIPTION in said:
        asked = said.pop(_SUBSCRIPTION)
        payload = (
            parse_subscription(asked) if isinstance(asked, str) else subscription_from_json(asked)
        )
    elif _PATTERN in said:
        steps = _list(said.pop(_PATTERN), _PATTERN)
        payload = Pattern(
            tuple(f for step in steps for f in subscription_from_json(step).alternatives)
        )
    defaults = Packet()._asdict()
    for name, value in said.items():
        if name not in defaults or name == "payload":
            raise JsonFormError("no such field of a packet", path=f"$.{name}")
        _check_field(name, value)
    if isinstance(said.get("to"), list):
        said["to"] = tuple(said["to"])
    return Packet(**said, payload=payload)


def _list(value: object, name: str) -> list[Any]:
    from kbn.errors import JsonFormError

    if not isinstance(value, list):
        raise JsonFormError("must be an array", path=f"$.{name}")
    return value


#: The least and the most of each number; None is the end of the longs.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "version": (1, 1),
    "ttl": (None, 127),
    "seq": (1, None),
    "pos": (0, None),
    "at": (None, None),
    "since": (None, None),
}
_FLAGS = frozenset({"history", "durable"})


def _check_field(name: str, value: object) -> None:
    from kbn.errors import JsonFormError
    from kbn.model.values import LONG_MAX, LONG_MIN

    if name in _NUMBERS:
        low, high = _NUMBERS[name]
        least = LONG_MIN if low is None else low
        most = LONG_MAX if high is None else high
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        wanted = f"a whole number from {least} to {most}"
    elif name in _FLAGS:
        fits, wanted = isinstance(value, bool), "true or false"
    elif name == "to" and isinstance(value, list):
        fits, wanted = all(isinstance(v, str) for v in value), "a string or strings"
    else:
        fits, wanted = isinstance(value, str), "a string"
    if not fits:
        raise JsonFormError(f"must be {wanted}", path=f"$.{name}")
