"""Listening sockets: one scheme a port, and who it is that calls."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping

from kbn.broker.addresses import KA, KAS, Address
from kbn.broker.settings import Principal
from kbn.broker.stimuli import Peer
from kbn.errors import RefusedError
from kbn.server.ports import BACKLOG, hint, listening
from kbn.server.session import Connection, InboundConnection, InboundPacket
from kbn.server.shell import Shell


def bind(address: Address) -> tuple[Address, socket.socket]:
    """A listening socket, and the address with the port that was given out for port 0.

    Raises ``RefusedError`` that says which address is taken or not ours.
    """
    try:
        bound = listening(address.host, address.port)
    except OSError as error:
        raise RefusedError(
            "unreachable",
            f"cannot listen on {address}: {error.strerror or error}{hint(error, address.port)}",
        ) from None
    return address._replace(port=bound.getsockname()[1]), bound


class Listeners:
    """The open ports of a broker."""

    def __init__(
        self, shell: Shell, tls: ssl.SSLContext | None, certified: Mapping[str, Principal]
    ) -> None:
        self._shell = shell
        self._tls = tls
        self._certified = certified
        self._servers: list[asyncio.Server] = []

    async def open(self, address: Address, bound: socket.socket) -> None:
        """Take calls on a socket that ``bind`` made."""
        security = None
        if address.scheme == KAS:
            if self._tls is None:
                raise RefusedError(
                    "unsupported", f"{address} needs a certificate: set tls.cert and tls.key"
                )
            security = self._tls
        kind = InboundConnection if address.scheme in (KA, KAS) else InboundPacket

        def accept() -> Connection:
            return kind(self._shell, self._identify)

        server = await asyncio.get_running_loop().create_server(
            accept, sock=bound, ssl=security, backlog=BACKLOG
        )
        self._servers.append(server)

    def _identify(self, transport: asyncio.BaseTransport) -> Peer:
        return identify(transport, self._certified.get)

    async def close(self) -> None:
        """Take no more calls; connections that stand are left alone."""
        for server in self._servers:
            server.close()
        self._servers.clear()


def identify(
    transport: asyncio.BaseTransport, principal_of: Callable[[str], Principal | None]
) -> Peer:
    """Where a connection comes from, and whom its client certificate stands for."""
    found = transport.get_extra_info("peername")
    if not isinstance(found, tuple):
        return Peer("(unknown)", local=False)
    host, port = str(found[0]), int(found[1])
    local = Address(KA, host, port).is_loopback
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    certificate = transport.get_extra_info("peercert")
    certified = None
    if certificate:
        names = [
            value
            for part in certificate.get("subject", ())
            for key, value in part
            if key == "commonName"
        ]
        certified = next((p for p in map(principal_of, names) if p is not None), None)
    return Peer(shown, local, certified)
