"""What a client can be told."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypedDict

from kbn.broker.addresses import KA, KAS, Address, parse_address
from kbn.client.requests import Credentials
from kbn.errors import RefusedError

DEFAULT_URL = "ka://127.0.0.1:1969"


class Told(TypedDict, total=False):
    """The keywords of ``connect``; see ``Options`` for what they mean."""

    name: str | None
    token: str | None
    user: str | None
    password: str | None
    tls: ssl.SSLContext | None
    reconnect: bool
    timeout: float
    backoff: tuple[float, float]
    keepalive: float
    window: int
    queue: int
    durable: bool
    resume: int | None
    auto_confirm: bool
    on_connected: Callable[[bool], object] | None


@dataclass(frozen=True, slots=True)
class Options:
    """Everything a client can be told; times are in seconds."""

    url: str = DEFAULT_URL
    #: The session's name; one of chance, new with each connection, if None.
    name: str | None = None
    credentials: Credentials = field(default_factory=Credentials)
    tls: ssl.SSLContext | None = None
    reconnect: bool = True
    #: How long one attempt to connect may take.
    timeout: float = 10.0
    #: The first and the longest pause between attempts.
    backoff: tuple[float, float] = (0.1, 5.0)
    keepalive: float = 20.0
    #: The most unanswered publications.
    window: int = 1000
    #: The most notifications a stream keeps for its reader.
    queue: int = 1000
    #: The broker keeps what the session, which needs a name, has not confirmed.
    durable: bool = False
    #: The position after which a durable session goes on; the broker's memory of it if None.
    resume: int | None = None
    #: Confirm what a reader took once it comes back for more; else ``Client.confirm`` does.
    auto_confirm: bool = True
    #: Called with False when the connection is lost and is made again, with True once it stands.
    on_connected: Callable[[bool], object] | None = None

    def __post_init__(self) -> None:
        if self.durable and not self.name:
            raise RefusedError("syntax", "a durable session needs a name")
        if self.window < 1 or self.queue < 1:
            raise RefusedError("limit", "window and queue are at least 1")

    @classmethod
    def of(cls, url: str, told: Told) -> Options:
        """The options of a call to ``connect``."""
        token, user = told.pop("token", None), told.pop("user", None)
        given = Credentials(token, user, told.pop("password", None))
        return cls(url, credentials=given, **told)  # type: ignore[misc]

    def address(self) -> Address:
        """Where to connect; ``RefusedError`` if a session cannot be spoken there."""
        address = parse_address(self.url)
        if address.scheme not in (KA, KAS):
            raise RefusedError(
                "unsupported", f"a client speaks ka:// or ka+senps://, not '{self.url}'"
            )
        return address

    def tls_context(self) -> ssl.SSLContext | None:
        """The context for ``ka+senps://``, the system's own if none was given."""
        if self.address().scheme == KA:
            return None
        return self.tls or ssl.create_default_context()
