"""``ka`` framing: two bytes of length, most significant first, then the packet.

Law: the frames that come out do not depend on how the stream was cut.
Cost: each byte is copied at most twice, also when a peer sends one at a time:
what is incomplete is only looked at again when enough of it has come.
Source: Siena's persistent TCP connection.
"""

from __future__ import annotations

from senp.errors import WireError
from senp.packets import MAX_PACKET

#: The one byte with which the accepting side greets a ``ka`` connection.
ACCEPTED = b"\x01"
REFUSED = b"\x00"

_LENGTH_BYTES = 2


def encode_frame(packet: bytes) -> bytes:
    """The packet with its length in front; ``too_large`` if two bytes cannot say it."""
    size = len(packet)
    if size > MAX_PACKET:
        raise WireError(
            f"a packet of {size} bytes does not fit a frame of {MAX_PACKET}",
            position=MAX_PACKET,
            code="too_large",
        )
    return size.to_bytes(_LENGTH_BYTES, "big") + packet


class FrameReader:
    """Cuts a stream of bytes into packets, however it arrives.

    Any two bytes are a legal length, so the reader itself cannot fail; a packet
    that makes no sense is the decoder's to refuse.
    """

    __slots__ = ("_held", "_needed")

    #: The beginning of a frame that has not fully come, its length included.
    _held: bytearray
    #: How many bytes ``_held`` must have before looking at it again can help.
    _needed: int

    def __init__(self) -> None:
        self._held = bytearray()
        self._needed = _LENGTH_BYTES

    @property
    def pending(self) -> int:
        """Bytes of an incomplete frame; not 0 at the end of a stream means it was cut off."""
        return len(self._held)

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """Take the next bytes of the stream and return the packets they complete."""
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return []
            data = bytes(self._held)
            self._held.clear()
        elif not isinstance(data, bytes):
            data = bytes(data)
        packets = []
        position, end = 0, len(data)
        needed = _LENGTH_BYTES
        while end - position >= _LENGTH_BYTES:
            needed = _LENGTH_BYTES + (data[position] << 8) + data[position + 1]
            if end - position < needed:
                break
            packets.append(data[position + _LENGTH_BYTES : position + needed])
            position += needed
            needed = _LENGTH_BYTES
        if position < end:
            self._held += data[position:]
        self._needed = needed
        return packets
