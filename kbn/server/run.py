"""Puts a broker together from its configuration, runs it, and takes it down in order.

configuration ─▶ settings, principals, TLS ─▶ state ─▶ shell ─▶ listeners, HTTP
SIGTERM or SIGINT ─▶ listeners close ─▶ outboxes drain ─▶ connections close ─▶ exit 0
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import resource
import secrets
import signal
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datastore.factory import default_url, open_store
from datastore.store import Store
from kbn.broker.addresses import Address, parse_address
from kbn.broker.knowing import NOTHING_LOADED, Ontology
from kbn.broker.remembering import Kept
from kbn.broker.settings import Settings
from kbn.broker.state import BrokerState
from kbn.errors import RefusedError
from kbn.server.archiving import archivist, with_archive
from kbn.server.auth import Registry
from kbn.server.care import Care
from kbn.server.clock import Clock
from kbn.server.config import DEFAULT_HTTP, Config
from kbn.server.history import open_history
from kbn.server.http import HttpPort
from kbn.server.ids import EventIds
from kbn.server.librarian import Librarian
from kbn.server.listener import Listeners, bind
from kbn.server.logs import RateLimited, make_logger
from kbn.server.ports import http_hint
from kbn.server.shell import Shell
from senp import Limits

if TYPE_CHECKING:
    from datastore.delta.archivist import Archivist

NONE = "none"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a broker that stands can be reached."""

    identity: str
    listening: tuple[Address, ...]
    http: str | None
    store: str
    master: str | None
    #: What peers must say who they are by, ``token`` or ``user``; None if they need not.
    credentials: str | None = None


class Broker:
    """A running broker: ``start`` it, wait for ``stopped``, ``stop`` it."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.registry = Registry(config.principals)
        self.addresses = tuple(parse_address(url) for url in config.listen)
        check_exposure(config, self.addresses, self.registry)
        self._server_tls = server_tls(config)
        self._client_tls = client_tls(config)
        self._ready = False
        self.state: BrokerState
        self.shell: Shell
        #: Where it can be reached, once it stands.
        self.place: Place
        self._listeners: Listeners
        self._store: Store | None = None
        self._archivist: Archivist | None = None
        self._http: HttpPort | None = None

    async def start(self) -> Place:
        """Listen; raises ``OSError`` or ``KbnError`` with nothing left open."""
        config = self.config
        raise_file_limit()
        clock = Clock()
        log = RateLimited(make_logger(config.log), clock.now)
        ports = self._bind()
        identity = config.identity or choose_identity(config)
        advertised = config.advertise or str(ports[0][0])
        settings = make_settings(config, self.registry, identity, advertised)
        librarian = Librarian(Path(config.data_dir))
        known = await asyncio.to_thread(librarian.current)
        if known.broken:
            log.say("error", "ontology", f"semantic subscriptions are refused: {known.broken}")
        for warning in known.warnings:
            log.say("warning", "ontology", warning)
        try:
            self._store, kept = await asyncio.to_thread(remember, config, known)
        except BaseException:
            for _, bound in ports:
                bound.close()
            raise
        self.state = BrokerState(settings, clock.now(), kept, known)
        self.shell = Shell(
            self.state,
            clock,
            log,
            self.registry.verify,
            tls=self._client_tls,
            store=self._store,
            care=Care.of(config),
            librarian=librarian,
        )
        self._listeners = Listeners(self.shell, self._server_tls, self.registry.principals)
        try:
            for address, bound in ports:
                await self._listeners.open(address, bound)
            http = await self._open_http(log)
        except BaseException:
            await self._listeners.close()  # first: a loop lets go of open sockets only
            for _, bound in ports:
                bound.close()
            await self.shell.drain(0)
            self._close_store()
            raise
        loop = asyncio.get_running_loop()

        def say(level: str, message: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody reads it
                loop.call_soon_threadsafe(log.say, level, "archive", message)

        self._archivist = archivist(self._store, config, clock.now, say)
        self._ready = True
        self.place = Place(
            identity,
            tuple(a for a, _ in ports),
            http,
            store_url(config),
            config.master,
            self.registry.asks,
        )
        return self.place

    def _bind(self) -> list[tuple[Address, socket.socket]]:
        ports: list[tuple[Address, socket.socket]] = []
        try:
            for address in self.addresses:
                ports.append(bind(address))
        except BaseException:
            for _, bound in ports:
                bound.close()
            raise
        return ports

    async def _open_http(self, log: RateLimited) -> str | None:
        asked = self.config.http
        if asked == NONE:
            return None
        address = parse_address(f"ka://{asked or DEFAULT_HTTP}")
        port = HttpPort(self.state, lambda: self._ready, self._store)
        try:
            number = await port.open(address.host, address.port)
        except OSError as error:
            reason = (
                f"no HTTP on {asked or DEFAULT_HTTP}: {error.strerror or error}{http_hint(error)}"
            )
            if asked is not None:
                raise RefusedError("unreachable", reason) from None
            # Nobody asked for this port: a second broker on one machine goes on without.
            log.say("warning", "http", reason)
            return None
        self._http = port
        return f"http://{address.host}:{number}"

    async def stop(self) -> int:
        """Drain and close; returns how many deliveries were still waiting."""
        self._ready = False
        await self._listeners.close()
        left = await self.shell.drain(self.config.times.drain)
        if self._http is not None:
            await self._http.close()
        if self._archivist is not None:
            await asyncio.to_thread(self._archivist.stop)
        self._close_store()
        return left

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()


async def serve(config: Config, standing: Callable[[Place], None]) -> int:
    """Run a broker until it is told to stop; returns the exit code."""
    broker = Broker(config)
    place = await broker.start()
    told = broker.shell.off
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    standing(place)
    await told.wait()
    left = await broker.stop()
    log = broker.shell.log
    if left:
        log.say("warning", "stopped", f"{left} deliveries were still waiting")
    else:
        log.say("info", "stopped", f"{place.identity} drained and ended")
    log.flush(everything=True)
    return 0


def run(config: Config, standing: Callable[[Place], None]) -> int:
    """``serve`` on uvloop where it is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415  an extra: the standard loop does too

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(serve(config, standing))


def store_url(config: Config) -> str:
    """Where the history lives: as configured, else in the data directory."""
    return config.store or default_url(Path(config.data_dir))


def remember(config: Config, known: Ontology = NOTHING_LOADED) -> tuple[Store | None, Kept | None]:
    """Open the history and what earlier runs left in it; nothing for ``none``."""
    url = store_url(config)
    if url == NONE:
        return None, None
    if config.store is None:
        Path(config.data_dir).mkdir(parents=True, exist_ok=True)
    store = open_store(url)
    try:
        store = with_archive(store, url, config)
        return store, open_history(store, known)
    except BaseException:
        store.close()
        raise


def make_settings(config: Config, registry: Registry, identity: str, advertised: str) -> Settings:
    """The core's settings: milliseconds, sources of chance, principals."""
    limits, times = config.limits, config.times
    return Settings(
        identity=identity,
        new_id=EventIds(),
        jitter=random.random,
        advertised=advertised,
        master=config.master,
        master_protocol=config.master_protocol,
        master_token=config.master_token,
        limits=Limits(limits.packet, limits.depth, limits.constraints),
        credentials_required=registry.required,
        anonymous=registry.anonymous,
        handlers_allowed=config.networks,
        max_publication=limits.publication,
        max_connections=limits.connections,
        max_subscriptions=limits.subscriptions,
        high_water=limits.queue,
        backlog=limits.backlog,
        backlog_age=_ms(times.backlog),
        care=_ms(times.care),
        spool=limits.spool,
        policy=config.policy,
        handshake=_ms(times.handshake),
        idle=_ms(times.idle),
        unreachable=_ms(times.unreachable),
        retry_first=_ms(times.retry_first),
        retry_most=_ms(times.retry_most),
        probe=_ms(times.probe),
        stopwatch=time.perf_counter_ns,
    )


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def choose_identity(config: Config) -> str:
    """The name kept in the data directory, made on first use; of chance without a store."""
    made = f"kbn-{secrets.token_hex(4)}"
    if config.store == NONE:
        return made
    path = Path(config.data_dir) / "identity"
    try:
        return path.read_text(encoding="utf-8").strip() or made
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made + "\n", encoding="utf-8")
        return made


def check_exposure(config: Config, addresses: tuple[Address, ...], registry: Registry) -> None:
    """Refuse to listen beyond this machine with no principals, unless that is meant."""
    if config.insecure or registry.principals:
        return
    for address in addresses:
        if not address.is_loopback:
            raise RefusedError(
                "auth",
                f"{address} can be reached from other machines and no principals are configured:"
                " configure some, or say --insecure",
            )


def server_tls(config: Config) -> ssl.SSLContext | None:
    """What ``ka+senps`` ports use; None without a certificate."""
    tls = config.tls
    if tls.cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(tls.cert, tls.key)
        if tls.client_ca is not None:
            context.load_verify_locations(tls.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED if tls.client_required else ssl.CERT_OPTIONAL
    except (OSError, ssl.SSLError) as error:
        raise RefusedError("syntax", f"tls: cannot load the certificates: {error}") from None
    return context


def client_tls(config: Config) -> ssl.SSLContext | None:
    """What this broker uses towards its master and TLS handlers; None for the system's own."""
    tls = config.tls
    if tls.ca is None and tls.cert is None:
        return None
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        if tls.cert is not None:
            context.load_cert_chain(tls.cert, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise RefusedError("syntax", f"tls: cannot load the certificates: {error}") from None
    return context


def raise_file_limit() -> None:
    """A connection is a file: ask for as many as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
