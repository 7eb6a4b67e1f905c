"""The operator's port: health, readiness, metrics, and which subscriptions an event would match.

GET /healthz            200 while the process lives
GET /readyz             200 while it takes publications, 503 while it starts or drains
GET /metrics            Prometheus
GET /subs               every subscription, as JSON
GET /subs?test=EVENT    those that match the event, which is written as in ``kbn match``

What others asked for is told to this machine only.
A hand-sized server on purpose: five read-only answers need no framework.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from datastore.store import Store
from kbn.broker.addresses import KA, Address
from kbn.broker.state import BrokerState
from kbn.errors import KbnError
from kbn.language import parse_event, print_subscription
from kbn.server.metrics import CONTENT_TYPE, BrokerMetrics
from kbn.server.ports import BACKLOG, listening

#: Seconds a client may take to ask.
PATIENCE = 5.0
_MOST = 16 * 1024
_JSON = "application/json"
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}
_REASONS |= {403: "Forbidden", 503: "Service Unavailable"}

Answer = tuple[int, str, bytes]


class HttpPort:
    """Serves the answers above for one broker."""

    def __init__(
        self, state: BrokerState, ready: Callable[[], bool], store: Store | None = None
    ) -> None:
        self._state = state
        self._ready = ready
        self._metrics = BrokerMetrics(state, store)
        self._servers: list[asyncio.Server] = []

    async def open(self, host: str, port: int) -> int:
        """Listen on every address of the host; returns the port. Raises ``OSError``."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for place in dict.fromkeys(str(each[4][0]) for each in found):
                bound = listening(place, port)
                port = int(bound.getsockname()[1])
                self._servers.append(
                    await asyncio.start_server(
                        self._serve, sock=bound, limit=_MOST, backlog=BACKLOG
                    )
                )
        except BaseException:
            await self.close()
            raise
        return port

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                request = head.split(b"\r\n", 1)[0].decode("latin-1")
                status, kind, body = self.answer(request, local=_is_local(writer))
                writer.write(
                    f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client went away or never asked: nobody to tell
        finally:
            writer.close()

    def answer(self, request: str, *, local: bool) -> Answer:
        """What to say to a request line; ``local``: it comes from this machine."""
        parts = request.split(" ")
        if len(parts) != 3:
            return 400, "text/plain", b"that is no request\n"
        if parts[0] != "GET":
            return 405, "text/plain", b"only GET is offered\n"
        url = urlsplit(parts[1])
        if url.path == "/healthz":
            return 200, "text/plain", b"ok\n"
        if url.path == "/readyz":
            return (
                (200, "text/plain", b"ready\n")
                if self._ready()
                else (503, "text/plain", b"not ready\n")
            )
        if url.path == "/metrics":
            return 200, CONTENT_TYPE, self._metrics.page()
        if url.path == "/subs":
            if not local:
                return 403, "text/plain", b"subscriptions are told to this machine only\n"
            return self._subs(parse_qs(url.query).get("test"))
        return 404, "text/plain", b"try /healthz /readyz /metrics /subs /subs?test=EVENT\n"

    def _subs(self, test: list[str] | None) -> Answer:
        table = self._state.core.table
        if test is None:
            units = [table.units[number] for number in sorted(table.units)]
        else:
            try:
                units = table.match(parse_event(test[0]), self._state.core.world)
            except KbnError as error:
                said = {"code": error.code, "error": str(error)}
                return 400, _JSON, json.dumps(said).encode()
        rows = [
            {
                "subscriber": unit.subscriber.id,
                "subscription": print_subscription(unit.asked),
                "suspended": unit.subscriber.suspended,
            }
            for unit in units
        ]
        return 200, _JSON, json.dumps({"count": len(rows), "subscriptions": rows}).encode()


def _is_local(writer: asyncio.StreamWriter) -> bool:
    found = writer.get_extra_info("peername")
    return isinstance(found, tuple) and Address(KA, str(found[0]), 0).is_loopback
