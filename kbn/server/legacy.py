"""Outgoing connections: to the handlers of legacy subscribers and to the master.

A ``ka`` peer greets with one byte before the connection counts as open; it may
hang up whenever it is idle (Siena does after five seconds), which is reported
at once, so that the next frame goes to a new connection. A ``senp`` handler
gets a connection for each packet. A name is resolved here, and every address
it stands for is checked again: a client must not lead us to a private host by
a public name.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

from kbn.broker.addresses import KAS, SENP, Address, handler_refusal
from kbn.broker.instructions import Connect
from kbn.broker.stimuli import Peer
from kbn.server.session import Connection
from senp import ACCEPTED

if TYPE_CHECKING:
    from kbn.server.shell import Shell


class ForbiddenAddressError(OSError):
    """The name resolves only to addresses the client may not have us call."""


async def resolve(wanted: Connect, shell: Shell) -> tuple[str, int]:
    """An address to connect to, as numbers; raises ``OSError``."""
    address = wanted.address
    found = await asyncio.get_running_loop().getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM
    )
    refusal: str | None = f"{address.host} has no address"
    for *_, place in found:
        host = str(place[0])
        refusal = None
        if not wanted.trusted:
            refusal = handler_refusal(
                host, local=wanted.local, allowed=shell.settings.handlers_allowed
            )
        if refusal is None:
            return host, address.port
    raise ForbiddenAddressError(refusal)


class OutgoingConnection(Connection):
    """A ``ka`` connection we made; open once the other side has greeted."""

    def __init__(self, shell: Shell, wanted: Connect) -> None:
        super().__init__(shell)
        self.link = wanted.link
        self.address = wanted.address
        self.greeted = False
        self._refused = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.attach(transport)
        self._timer = self.shell.later(self.shell.settings.handshake, self.abort)

    def data_received(self, data: bytes) -> None:
        if not self.greeted:
            if data[:1] != ACCEPTED:
                self._refused = True
                self.abort()
                return
            self.greeted = True
            self._stop_timer()
            self.shell.opened(self, Peer(str(self.address)))
            data = data[1:]
        if data:
            super().data_received(data)

    def write_waiting(self) -> None:
        if self.greeted:
            super().write_waiting()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_timer()
        if self._refused:
            error = ConnectionError("the other side refused the connection")
        elif not self.greeted and error is None:
            error = ConnectionError("the other side did not greet")
        super().connection_lost(error)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class OutgoingPackets(Connection):
    """A ``senp`` handler: one connection after the other, one packet each, in order.

    A packet is taken from its outbox only when a connection stands for it.
    """

    def __init__(self, shell: Shell, wanted: Connect, host: str, port: int) -> None:
        super().__init__(shell)
        self.link = wanted.link
        self.address = wanted.address
        self._place = (host, port)
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._busy = False

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._deliver())

    def write_waiting(self) -> None:
        self._more.set()

    @property
    def unwritten(self) -> int:
        return int(self._busy)

    async def _deliver(self) -> None:
        reason = ""
        try:
            writer: asyncio.StreamWriter | None = await self._call()
            self.shell.opened(self, Peer(str(self.address)))
            while True:
                await self._more.wait()
                self._more.clear()
                self._busy = True
                while True:
                    if writer is None:
                        if not self.shell.has_waiting(self.link):
                            break
                        writer = await self._call()
                    frames = self.shell.take(self.link, 1)
                    if frames:
                        writer.write(frames[0][2:])
                    await self._hang_up(writer)
                    writer = None
                self._busy = False
                if self.closing:
                    break
        except OSError as error:
            reason = str(error) or type(error).__name__
        self._busy = False
        self.shell.lost(self, reason)

    async def _call(self) -> asyncio.StreamWriter:
        timeout = self.shell.settings.handshake / 1000
        _, writer = await asyncio.wait_for(asyncio.open_connection(*self._place), timeout)
        return writer

    async def _hang_up(self, writer: asyncio.StreamWriter) -> None:
        writer.close()
        await asyncio.wait_for(writer.wait_closed(), self.shell.settings.handshake / 1000)

    def close(self) -> None:
        self.closing = True
        self._more.set()

    def abort(self) -> None:
        self.closing = True
        if self._task is not None:
            self._task.cancel()
            self.shell.lost(self, "")


async def call(wanted: Connect, shell: Shell) -> None:
    """Make the connection an instruction asked for; failures are reported as ``Closed``."""
    try:
        timeout = shell.settings.handshake / 1000
        host, port = await asyncio.wait_for(resolve(wanted, shell), timeout)
        if wanted.address.scheme == SENP:
            packets = OutgoingPackets(shell, wanted, host, port)
            shell.adopt(packets)
            packets.start()
            return
        connection = OutgoingConnection(shell, wanted)
        shell.adopt(connection)
        security = _client_tls(wanted.address, shell)
        await asyncio.wait_for(
            asyncio.get_running_loop().create_connection(
                lambda: connection,
                host,
                port,
                ssl=security,
                server_hostname=wanted.address.host if security is not None else None,
            ),
            timeout,
        )
    except (OSError, ValueError) as error:
        shell.failed(wanted.link, str(error) or type(error).__name__)


def _client_tls(address: Address, shell: Shell) -> ssl.SSLContext | None:
    return shell.client_tls() if address.scheme == KAS else None
