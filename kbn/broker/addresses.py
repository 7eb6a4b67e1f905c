"""Where a peer listens: ``ka://host:port`` and its relatives.

ka://  ka+senp://  ka:        a persistent connection, frames (legacy and sessions)
ka+senps://                   the same inside TLS
senp://  tcp://  tcp:         one packet per connection
"""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from kbn.errors import RefusedError

SERVER_PORT = 1969
CLIENT_PORT = 1936

KA, KAS, SENP = "ka", "ka+senps", "senp"
_SCHEMES = {
    "ka": KA,
    "ka+senp": KA,
    "ka+senps": KAS,
    "kas": KAS,
    "senp": SENP,
    "tcp": SENP,
    "tcp+senp": SENP,
}
_FORM = re.compile(
    r"(?P<scheme>[a-z+]+):(?://)?(?:\[(?P<six>[0-9a-fA-F:.%]+)\]|(?P<host>[^:/\[\]\s]*))"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Address(NamedTuple):
    """A scheme of ours, a host and a port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or _holds(self.host, "is_loopback")


def parse_address(text: str, port: int = SERVER_PORT) -> Address:
    """Read an address; raises ``RefusedError`` (``unsupported`` or ``syntax``) that shows it."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise RefusedError(
            "syntax", f"'{text}' is no address: write it like ka://127.0.0.1:{SERVER_PORT}"
        )
    scheme = _SCHEMES.get(found["scheme"])
    if scheme is None:
        raise RefusedError(
            "unsupported",
            f"'{found['scheme']}' in '{text}' is no transport of ours: ka, ka+senps or senp",
        )
    host = found["six"] or found["host"]
    given = int(found["port"]) if found["port"] else port
    if not host or given > 65_535:
        raise RefusedError("syntax", f"'{text}' needs a host and a port up to 65535")
    return Address(scheme, host, given)


def handler_refusal(host: str, *, local: bool, allowed: tuple[Network, ...]) -> str | None:
    """Why a broker must not connect out to ``host`` for this client, or None.

    A remote client could make the broker knock on doors only the broker can
    reach, so loopback and private ranges are open to local clients only, unless
    the configuration lists them. A name is checked again once it is resolved.
    """
    if local:
        return None
    if host == "localhost":
        host = "127.0.0.1"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if any(address in network for network in allowed):
        return None
    if address.is_global and not address.is_multicast:
        return None
    return f"the broker does not connect to {host} for a remote client (see handlers.allow)"


def _holds(host: str, what: str) -> bool:
    try:
        return bool(getattr(ipaddress.ip_address(host), what))
    except ValueError:
        return False
