"""From bytes to packets: the plain decoder, which defines what a packet means.

Law: ``decode(encode(p)) == p`` for every packet, and every other input either
means a packet or raises ``WireError`` with a code and a position.
Cost: linear in the bytes.
Source: Siena 1.3's header, with the fields of sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from senp._payloads import PayloadDecoder
from senp._tokens import END, STRING, WORD
from senp.errors import WireError
from senp.packets import MAX_TTL, VERSION, Limits, Packet, Payload

_INDEX = {name: index for index, name in enumerate(Packet._fields)}
_SEQ = _INDEX["seq"]


class Decoder(PayloadDecoder):
    """A cursor that reads one whole packet; ``seq`` is the header's, as soon as it is known."""

    __slots__ = ("seq",)

    def __init__(self, text: str, limits: Limits, position: int = 0) -> None:
        super().__init__(text, limits, position)
        self.seq: int | None = None

    def packet(self) -> Packet:
        """The whole packet."""
        if self.begin() != WORD or self.value != "senp":
            raise self.unexpected("'senp'")
        self.advance()
        fields = self._header()
        fields[-1] = self.last_payload()
        return Packet._make(fields)

    def last_payload(self) -> Payload:
        """What follows the header's ``}``: a payload or nothing, then the end."""
        closed = self.stop
        if self.advance() == END:
            self.stop = closed
            self.finish()
            return None
        if self.kind != WORD:
            raise self.unexpected("a payload")
        return self.payload()

    # The header

    def _header(self) -> list[object]:
        self._expect("{")
        fields: list[object] = list(_DEFAULT_FIELDS)
        while self.kind != "}":
            if self.kind != WORD:
                raise self.unexpected("a header field or '}'")
            name = str(self.value)
            read = _FIELDS.get(name)
            if read is None:
                raise WireError(f"unknown header field {name[:32]!r}", position=self.start)
            self.advance()
            self._expect("=")
            fields[_INDEX[name]] = read(self)
            self.seq = cast("int | None", fields[_SEQ])
            self.advance()
        return fields

    def field_version(self) -> int:
        version = self._long("a number")
        if version != VERSION:
            raise WireError(
                f"version {version} is not spoken here, only {VERSION}",
                position=self.start,
                code="unsupported",
            )
        return version

    def field_ttl(self) -> int:
        return min(self._long("a number"), MAX_TTL)

    def field_long(self) -> int:
        return self._long("a number")

    def field_position(self) -> int:
        return self._at_least(0)

    def field_seq(self) -> int:
        return self._at_least(1)

    def field_flag(self) -> bool:
        if self.kind != WORD or self.value not in ("true", "false"):
            raise self.unexpected("'true' or 'false'")
        return self.value == "true"

    def field_string(self) -> str:
        if self.kind not in (STRING, WORD):
            raise self.unexpected("a string")
        return str(self.value)

    def field_id(self) -> str:
        text = self.field_string()
        if len(text) > self.limits.max_id or len(text.encode()) > self.limits.max_id:
            raise WireError(
                f"an id has at most {self.limits.max_id} bytes", position=self.start, code="limit"
            )
        return text

    def field_to(self) -> str | tuple[str, ...]:
        if self.kind != "[":
            return self.field_id()
        start = self.start
        receivers = []
        while self.advance() != "]":
            receivers.append(self.field_id())
        if not receivers:
            raise WireError("a list of receivers is not empty", position=start)
        return receivers[0] if len(receivers) == 1 else tuple(receivers)

    def _at_least(self, least: int) -> int:
        value = self._long("a number")
        if value < least:
            raise WireError(f"expected at least {least}, found {value}", position=self.start)
        return value


_FIELDS: dict[str, Callable[[Decoder], object]] = {
    "version": Decoder.field_version,
    "method": Decoder.field_string,
    "ttl": Decoder.field_ttl,
    "id": Decoder.field_id,
    "to": Decoder.field_to,
    "handler": Decoder.field_string,
    "seq": Decoder.field_seq,
    "code": Decoder.field_string,
    "reason": Decoder.field_string,
    "pos": Decoder.field_position,
    "uid": Decoder.field_string,
    "at": Decoder.field_long,
    "history": Decoder.field_flag,
    "since": Decoder.field_long,
    "durable": Decoder.field_flag,
    "token": Decoder.field_string,
    "user": Decoder.field_string,
    "password": Decoder.field_string,
}
_DEFAULT_FIELDS = tuple(Packet())


def decode_plain(text: str, limits: Limits) -> Packet:
    """Decode a packet's bytes, given as Latin-1 text, without any short cut."""
    decoder = Decoder(text, limits)
    try:
        return decoder.packet()
    except WireError as error:
        error.seq = decoder.seq
        raise
