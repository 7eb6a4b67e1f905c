"""Inbound connections: bytes to packets to one stimulus a read, and frames back.

``Connection`` is what the shell knows of any transport, inbound or outgoing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from kbn.broker.stimuli import Arrival, Peer
from senp import (
    ACCEPTED,
    MAX_PACKET,
    METHODS,
    REFUSED,
    FrameReader,
    Limits,
    Packet,
    WireError,
    decode_with_body,
)

if TYPE_CHECKING:
    from kbn.server.shell import Shell

#: The transport says "enough" past this, "go on" below a quarter of it. What lies
#: in its buffer counts as delivered, so it is kept small.
WRITE_HIGH = 256 * 1024

#: Who a peer is; made from its transport once the connection stands.
Identify = Callable[[asyncio.BaseTransport], Peer]


#: Seconds of reading what cannot be read after which the rest of the frames waits its turn.
PATIENCE = 0.001


def read_packets(
    frames: list[bytes], limits: Limits, patience: float | None = None
) -> list[Arrival | WireError]:
    """Decode each frame; what cannot be decoded stands in its place.

    With ``patience``, stops early after a frame that could not be decoded once so
    many seconds have passed: there may be fewer answers than frames.
    """
    arrivals: list[Arrival | WireError] = []
    begun = time.perf_counter()
    for frame in frames:
        if (
            patience is not None
            and arrivals
            and isinstance(arrivals[-1], WireError)
            and time.perf_counter() - begun > patience
        ):
            break
        try:
            # A named tuple of the pair, without the constructor's detour: once a packet.
            arrival = tuple.__new__(Arrival, decode_with_body(frame, limits))
        except WireError as error:
            arrivals.append(error)
            continue
        packet = arrival.packet
        arrivals.append(arrival if packet.method in METHODS else unknown_method(packet, frame))
    return arrivals


def unknown_method(packet: Packet, frame: bytes) -> WireError:
    """The refusal of a method nobody knows; the place is known only while the bytes are here."""
    named = frame.find(packet.method.encode(), max(frame.find(b"method"), 0))
    return WireError(
        f"there is no method '{packet.method[:40]}'",
        position=max(named - (frame[named - 1 : named] == b'"'), 0),
        code="unknown_method",
        seq=packet.seq,
    )


class Connection(asyncio.Protocol):
    """A stream of frames, both ways. Subclasses know how it comes to be."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.link = 0
        #: Counts against the limit on connections.
        self.inbound = False
        self.paused = False
        self.closing = False
        #: Why nothing is read from the transport just now.
        self._pauses: set[str] = set()
        #: Frames that wait until a penalty is over.
        self._rest: list[bytes] = []
        #: Whose penalties this one's count among.
        self._host = ""
        self._penalised = False
        self.transport: asyncio.Transport | None = None
        self._frames = FrameReader()
        self._limits = shell.limits

    def attach(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(WRITE_HIGH, WRITE_HIGH // 4)
        self._host = str((transport.get_extra_info("peername") or ("",))[0])

    def data_received(self, data: bytes) -> None:
        frames = self._frames.feed(data)
        if frames:
            self._handle(frames)

    def _handle(self, frames: list[bytes]) -> None:
        begun = time.perf_counter()
        arrivals = read_packets(frames, self._limits, PATIENCE)
        bad = any(isinstance(arrival, WireError) for arrival in arrivals)
        self.shell.received(self.link, arrivals)
        if bad:
            self._rest = frames[len(arrivals) :]
            taken = time.perf_counter() - begun
            self.pause_reading("penalty")
            self._penalised = True
            wait = self.shell.penalties.begin(self._host, taken)
            self.shell.later(round(wait * 1000), self._forgive)

    def _end_penalty(self) -> None:
        if self._penalised:
            self._penalised = False
            self.shell.penalties.end(self._host)

    def _forgive(self) -> None:
        """The penalty is over: first what came before it, then what comes."""
        rest, self._rest = self._rest, []
        self._end_penalty()
        if self.closing or self.transport is None or self.transport.is_closing():
            return
        self.resume_reading("penalty")
        if rest:
            self._handle(rest)  # may pause again before anything is read

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self.shell.want_write(self.link)

    @property
    def reading(self) -> bool:
        return not self._pauses

    def pause_reading(self, why: str) -> None:
        """Read no more until every reason not to is gone."""
        if self.transport is not None and not self.transport.is_closing():
            if not self._pauses:
                self.transport.pause_reading()
            self._pauses.add(why)

    def resume_reading(self, why: str) -> None:
        if why in self._pauses:
            self._pauses.discard(why)
            if not self._pauses and self.transport is not None and not self.transport.is_closing():
                self.transport.resume_reading()

    @property
    def unwritten(self) -> int:
        """Bytes the transport still holds."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return 0
        return transport.get_write_buffer_size()

    def write_waiting(self) -> None:
        """Write frames until there are no more or the transport has enough."""
        if self.transport is None or self.transport.is_closing():
            return
        take, link = self.shell.take, self.link
        while not self.paused:
            frames = take(link, WRITE_HIGH)
            if not frames:
                return
            self.transport.write(b"".join(frames))

    def close(self) -> None:
        """Close once what was handed to the transport is written."""
        self.closing = True
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        self.closing = True
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._end_penalty()
        if self._rest and self.link:
            # What it said before it left counts, also what waited for a penalty to end.
            rest, self._rest = self._rest, []
            self.shell.received(self.link, read_packets(rest, self._limits))
        reason = "" if error is None else str(error)
        if not reason and self._frames.pending:
            reason = "the stream ended inside a frame"
        self.shell.lost(self, reason)
        # Each keeps the other: let go, so that memory returns without a search for cycles.
        self.transport = None


class InboundConnection(Connection):
    """Somebody called on a ``ka`` port: greeted with one byte, 1 or, if we are full, 0."""

    def __init__(self, shell: Shell, identify: Identify) -> None:
        super().__init__(shell)
        self._identify = identify

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.attach(transport)
        assert self.transport is not None
        if not self.shell.admits():
            self.transport.write(REFUSED)
            self.close()
            return
        self.transport.write(ACCEPTED)
        self.shell.arrived(self, self._identify(transport))


class InboundPacket(Connection):
    """Somebody called on a ``senp`` port: all bytes up to the end are one packet."""

    def __init__(self, shell: Shell, identify: Identify) -> None:
        super().__init__(shell)
        self._identify = identify
        self._held = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.attach(transport)
        if not self.shell.admits():
            self.close()
            return
        self.shell.arrived(self, self._identify(transport))
        self._timer = self.shell.later(self.shell.settings.handshake, self.abort)

    def data_received(self, data: bytes) -> None:
        # One byte more than a packet may have is enough for the decoder to refuse it.
        self._held += data[: MAX_PACKET + 1 - len(self._held)]

    def eof_received(self) -> bool:
        if self.link and self._held:
            packet = bytes(self._held)
            self._held.clear()
            self.shell.received(self.link, read_packets([packet], self._limits))
        return False

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(error)
