"""From packets to bytes: one canonical text for each packet.

Law: ``decode(encode(p)) == p``; what Siena defined is written byte for byte as
Siena writes it (field order, spacing, escapes, the layout of doubles).
Cost: linear. Names and ids recur, so their spelling is remembered in bounded
caches; values do not, and are written afresh.
Source: Siena 1.3's protocol; our operators follow its spacing where a symbol
ends the operator, and take one space where a letter or a parenthesis does.

Everything is ASCII, for other bytes travel as octal escapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from kbn.errors import LimitError, UnsupportedError, ValueRangeError
from kbn.model import Bag, Constraint, Filter, Notification, Subscription, Value
from kbn.model.operators import (
    DEFAULT_WINDOW,
    After,
    BagOp,
    Content,
    During,
    Operator,
    Related,
    Relation,
    Window,
)
from kbn.model.spelling import NAMED_ESCAPES, double_text
from senp._tokens import is_identifier
from senp.packets import MAX_ID, Packet, Pattern, Payload

_ESCAPES = {
    chr(byte): "\\" + NAMED_ESCAPES.get(chr(byte), f"{byte:03o}")
    for byte in range(256)
    if byte < 0x20 or byte >= 0x7F or chr(byte) in NAMED_ESCAPES
}
_ESCAPED = re.compile(r"[^ !#-\[\]-~]")


# Values


def string_text(value: str) -> str:
    """A string in quotes, with everything but printable ASCII escaped."""
    if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    try:
        latin = value.encode("utf-8").decode("latin-1")
    except UnicodeEncodeError as error:
        raise ValueRangeError(f"a lone surrogate at index {error.start} is not UTF-8") from None
    return '"' + _ESCAPED.sub(lambda match: _ESCAPES[match[0]], latin) + '"'


def bag_text(bag: Bag) -> str:
    return "[" + " ".join([value_text(member) for member in bag.members]) + "]"


def value_text(value: Value) -> str:
    """The text of one value; ``UnsupportedError`` for what the wire cannot carry."""
    write = _WRITERS.get(type(value))
    if write is not None:
        return write(value)
    for kind, other in _WRITERS.items():
        if isinstance(value, kind):
            return other(value)
    raise UnsupportedError(f"{type(value).__name__} is no value of the wire")


_WRITERS: dict[type, Callable[..., str]] = {
    str: string_text,
    bool: lambda value: "true" if value else "false",
    int: int.__repr__,
    float: double_text,
    type(None): lambda _: "null",
    Bag: bag_text,
}


def name_text(name: str) -> str:
    """An attribute's name, in quotes unless it is an identifier."""
    return name if is_identifier(name) else string_text(name)


@lru_cache(maxsize=8192)
def _attribute_start(name: str) -> str:
    return f" {name_text(name)}="


@lru_cache(maxsize=8192)
def _id_text(name: str) -> str:
    if len(name.encode("utf-8", "surrogatepass")) > MAX_ID:
        raise LimitError(f"an id has at most {MAX_ID} bytes", limit="max_id", allowed=MAX_ID)
    return string_text(name)


# Payloads


def event_text(attributes: Mapping[str, Value]) -> str:
    """``event{ name=value …}`` in the order given."""
    parts = ["event{"]
    add = parts.append
    for name, value in attributes.items():
        # A name of any length is legal; only usual ones are worth remembering.
        add(_attribute_start(name) if len(name) <= MAX_ID else f" {name_text(name)}=")
        write = _WRITERS.get(type(value))
        add(write(value) if write is not None else value_text(value))
    add("}")
    return "".join(parts)


def filter_text(filter_: Filter) -> str:
    """``filter{ name op operand …}`` in the order given."""
    return "filter{" + "".join([constraint_text(c) for c in filter_.constraints]) + "}"


def subscription_text(subscription: Subscription) -> str:
    """``filter{…}`` for one alternative, ``filters{ filter{…} filter{…}}`` for several."""
    held = subscription.alternatives
    if len(held) == 1:
        return filter_text(held[0])
    return "filters{" + "".join([" " + filter_text(f) for f in held]) + "}"


def constraint_text(constraint: Constraint) -> str:
    """One constraint with the space before its name."""
    start = f" {name_text(constraint.name)} "
    op, operand = constraint.op, constraint.operand
    if isinstance(operand, Subscription):
        return f"{start}{_temporal_text(op)} {subscription_text(operand)}"
    if op is Content.ANY:
        return f"{start}any"
    spaced = isinstance(operand, Bag) or not isinstance(op, Content)
    return f"{start}{_plain_text(op)}{' ' if spaced else ''}{value_text(operand)}"


def _plain_text(op: Operator) -> str:
    """A content, semantic or bag operator."""
    if isinstance(op, Related):
        return f"@({string_text(op.property)})"
    if isinstance(op, BagOp):
        return op.kind.wire if op.sub is None else f"{op.kind.wire}({_plain_text(op.sub)})"
    if isinstance(op, During | After | Window | Relation):
        raise UnsupportedError("a temporal operator cannot stand inside another operator")
    return op.wire


def _temporal_text(op: Operator) -> str:
    """A temporal operator with its bound; a default bound is left out."""
    if isinstance(op, During):
        return "$="
    if isinstance(op, After):
        return f"$>{op.limit}"
    if isinstance(op, Relation):
        return f"$~{op.kind.value} {op.tolerance}" if op.tolerance else f"$~{op.kind.value}"
    if not isinstance(op, Window):
        raise UnsupportedError("only a temporal operator takes a filter as operand")
    text = "^" + _plain_text(op.op)
    if op.limit == DEFAULT_WINDOW:
        return text
    direct = isinstance(op.op, Content) and op.op is not Content.ANY
    return f"{text}{op.limit}" if direct else f"{text} {op.limit}"


def payload_text(payload: Payload) -> str:
    """Any payload; the empty text for none."""
    if isinstance(payload, Notification):
        return event_text(payload.attributes)
    if payload is None:
        return ""
    if isinstance(payload, Subscription):
        return subscription_text(payload)
    if isinstance(payload, Pattern):
        return "pattern{" + "".join([" " + filter_text(f) for f in payload.filters]) + "}"
    return "events{" + "".join([" " + event_text(e.attributes) for e in payload]) + "}"


# Headers


def header_text(packet: Packet) -> str:
    """``senp{…}`` with the fields that differ from their defaults, in their order."""
    text = f"senp{{version={packet.version} method={string_text(packet.method)} ttl={packet.ttl}"
    if packet.id is not None:
        text += f" id={_id_text(packet.id)}"
    if packet.to is not None:
        text += f" to={_receivers_text(packet.to)}"
    if packet.handler is not None:
        text += f" handler={string_text(packet.handler)}"
    if packet.seq is not None:
        text += f" seq={packet.seq}"
    if packet[_AFTER_SEQ:-1] != _NONE_AFTER_SEQ:
        text += _session_text(packet)
    return text + "}"


def _session_text(packet: Packet) -> str:
    text = ""
    for name, value in zip(_SESSION_FIELDS, packet[_AFTER_SEQ:-1], strict=True):
        if value is True:
            text += f" {name}=true"
        elif isinstance(value, str):
            text += f" {name}={string_text(value)}"
        elif value is not None and value is not False:
            text += f" {name}={value}"
    return text


_AFTER_SEQ = Packet._fields.index("seq") + 1
_SESSION_FIELDS = Packet._fields[_AFTER_SEQ:-1]
_NONE_AFTER_SEQ = Packet()[_AFTER_SEQ:-1]


def _receivers_text(to: str | tuple[str, ...]) -> str:
    if isinstance(to, str):
        return _id_text(to)
    if not to:
        raise UnsupportedError("a list of receivers is not empty")
    if len(to) == 1:
        return _id_text(to[0])
    return "[" + " ".join([_id_text(receiver) for receiver in to]) + "]"
