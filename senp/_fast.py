"""A short cut for the packets that make up the traffic.

Law: equal to ``decode_plain`` on every input, in value and in error; whatever
this file does not recognise at once it leaves to the plain decoder.
Cost: two regular expressions for an event, whatever its size.
Source: our own measurements, ``python -m benchmarks.codec``.

It recognises headers with the fields of ordinary traffic in canonical spelling
and, behind them, events with one space before each attribute and none elsewhere.
Any other payload is read by the plain decoder from where the header ends.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain

from kbn.model import Bag, Notification, Value
from kbn.model.spelling import double_text
from senp._decode import Decoder, decode_plain
from senp._encode import bag_text, string_text
from senp._tokens import unescape
from senp.errors import WireError
from senp.packets import DEFAULT_LIMITS, MAX_ID, MAX_TTL, Limits, Packet, Payload

_CHARACTER = r"[ !#-\[\]-~]"  # printable ASCII without the quote and the backslash
_ID = rf'"({_CHARACTER}{{0,{MAX_ID}}}+)"'
_OTHER_ID = rf'"{_CHARACTER}{{0,{MAX_ID}}}+"'
_TEXT = rf'"({_CHARACTER}*+)"'
_LONG = r"(?:0|-?[1-9][0-9]{0,18}+)"
_COUNT = r"([1-9][0-9]{0,17}+)"

# No group that captures stands inside a possessive repetition: CPython 3.11 loses its span.
_HEADER = re.compile(
    r'senp\{version=1 method="([A-Z]++)" ttl=([1-9][0-9]{0,2}+)'
    rf"(?: id={_ID})?"
    rf"(?: to=(?:{_ID}|(\[{_OTHER_ID}(?: {_OTHER_ID})++\])))?"
    rf"(?: handler={_TEXT})?"
    rf"(?: seq={_COUNT})?(?: pos={_COUNT})?(?: uid={_TEXT})?(?: at={_COUNT})?\}}"
)
_NAME = r"[A-Za-z_][A-Za-z0-9_$./]*+"
_STRING = rf'"{_CHARACTER}*+(?:\\.{_CHARACTER}*+)*+"'
_DOUBLE = r"-?[0-9]++\.[0-9]++(?:[eE]-?[0-9]++)?+"
_SCALAR = rf"(?:{_STRING}|{_DOUBLE}|{_LONG}|true|false|null)(?=[ \]])"
_BAG = rf"\[(?:{_SCALAR}(?: {_SCALAR})*+)?+\]"
_REST = rf"{_DOUBLE}|true|false|null|{_BAG}"
_BEHIND = r"(?=[ }])"
_ATTRIBUTE = re.compile(rf" ({_NAME})=(?:({_STRING})|({_LONG}){_BEHIND}|({_REST}))")
_RECEIVER = re.compile(_TEXT)
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}

#: A bag's text is remembered up to this length, so that the cache stays small.
_REMEMBERED = 128
_SAFE_DIGITS = 18
_EVENT_START = len(" ")


def decode_text(text: str, limits: Limits, want_body: bool = False) -> tuple[Packet, int | None]:
    """The packet, and where its ``event{…}`` starts if that is spelled canonically.

    The second is found only if ``want_body`` asks for it.
    """
    match = _HEADER.match(text) if limits.max_id >= MAX_ID else None
    if match is None:
        return decode_plain(text, limits), None
    method, ttl, id_, to, many, handler, seq_text, pos, uid, at = match.groups()
    seq = int(seq_text) if seq_text else None
    end = match.end()
    payload: Payload = None
    body = None
    if end < len(text):
        found = _event(text, end, want_body) if text.startswith(" event{", end) else None
        if found is not None:
            payload, canonical = found
            body = end + _EVENT_START if canonical else None
        else:
            decoder = Decoder(text, limits, end)
            try:
                payload = decoder.last_payload()
            except WireError as error:
                error.seq = seq
                raise
    hops = int(ttl)
    # The constructor of a named tuple is a function in Python; this is what it calls.
    packet = tuple.__new__(
        Packet,
        (
            1,
            method,
            hops if hops < MAX_TTL else MAX_TTL,
            id_,
            tuple(_RECEIVER.findall(many)) if many else to,
            handler,
            seq,
            None,
            None,
            int(pos) if pos else None,
            uid,
            int(at) if at else None,
            False,
            None,
            False,
            None,
            None,
            None,
            payload,
        ),
    )
    return packet, body


def _event(text: str, start: int, want_body: bool) -> tuple[Notification, bool] | None:
    """The event that is all the rest of the text, and whether it is canonical."""
    found = _ATTRIBUTE.findall(text, start + len(" event{"))
    # Nothing lies between the attributes or behind them, if their parts, with a space
    # and an equals sign for each, are as long as what stands between the braces.
    spelled = len("".join(chain.from_iterable(found))) + 2 * len(found)
    if spelled != len(text) - start - len(" event{}") or text[-1] != "}":
        return None
    attributes: dict[str, Value] = {}
    canonical = want_body
    for name, string, long, rest in found:
        if string:
            attributes[name] = text_value = string[1:-1]
            if "\\" in text_value:
                unescaped = _unescaped(text_value)
                if unescaped is None:
                    return None
                attributes[name] = unescaped
                canonical = canonical and string_text(unescaped) == string
        elif long:
            attributes[name] = value = int(long)
            if len(long) > _SAFE_DIGITS and not -(2**63) <= value < 2**63:
                return None
        elif rest in _WORDS:
            attributes[name] = _WORDS[rest]
        elif rest[0] == "[":
            bag = _bag(rest) if len(rest) <= _REMEMBERED else _bag.__wrapped__(rest)
            if bag is None:
                return None
            attributes[name] = bag[0]
            canonical = canonical and bag[1]
        else:
            attributes[name] = double = float(rest)
            if double - double != 0:
                return None
            canonical = canonical and double_text(double) == rest
    return Notification.trusted(attributes), canonical and len(attributes) == len(found)


def _unescaped(raw: str) -> str | None:
    """The string; None where the plain decoder must complain."""
    try:
        return unescape(raw, 0)
    except WireError:
        return None


@lru_cache(maxsize=4096)
def _bag(text: str) -> tuple[Bag, bool] | None:
    """The bag, and whether it is canonical; None where the plain decoder must complain."""
    decoder = Decoder(text, DEFAULT_LIMITS)
    decoder.advance()
    try:
        bag = decoder.value_here()
    except WireError:
        return None
    assert isinstance(bag, Bag)
    return bag, bag_text(bag) == text
