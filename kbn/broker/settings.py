"""What a broker is told when it is made. Times are in milliseconds, sizes in bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from kbn.broker.addresses import Network
from kbn.broker.statistics import Stopwatch
from kbn.model.filters import Subscription
from senp import Limits


class Policy(StrEnum):
    """What happens when a subscriber reads too slowly."""

    DROP_OLDEST = "drop_oldest"
    DISCONNECT = "disconnect"
    BLOCK = "block"


class MasterProtocol(StrEnum):
    """How to speak to the master; ``auto`` asks by an HLO and waits a second."""

    AUTO = "auto"
    SESSION = "session"
    SIENA = "siena"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a peer is and what it may do; None as a filter allows everything."""

    name: str
    publish: Subscription | None = None
    subscribe: Subscription | None = None
    may_publish: bool = True
    may_subscribe: bool = True
    admin: bool = False


ANYBODY = Principal("anybody")


@dataclass(frozen=True, slots=True)
class Settings:
    """Identity, limits and sources of chance of one broker."""

    identity: str
    #: Makes a new event id (a UUIDv7 in production); ids are an argument of the core.
    new_id: Callable[[], str]
    #: A number in [0, 1) for the jitter of retries.
    jitter: Callable[[], float]
    #: The address peers can reach us at, told to Siena masters and in WHO.
    advertised: str | None = None
    master: str | None = None
    master_protocol: MasterProtocol = MasterProtocol.AUTO
    #: Said to the master in HLO, when it asks for credentials.
    master_token: str | None = None
    limits: Limits = field(default_factory=Limits)
    credentials_required: bool = False
    #: The principal of legacy peers and of sessions without credentials.
    anonymous: Principal = ANYBODY
    handlers_allowed: tuple[Network, ...] = ()
    max_publication: int = 64_000
    max_connections: int = 20_000
    max_subscriptions: int = 200_000
    high_water: int = 8 * 1024 * 1024
    backlog: int = 64 * 1024 * 1024
    #: How long a durable session's deliveries wait for it.
    backlog_age: int = 7 * 24 * 3_600_000
    #: How often the backlogs of durable sessions are measured.
    care: int = 30_000
    spool: int = 64 * 1024 * 1024
    policy: Policy = Policy.DROP_OLDEST
    seen: int = 100_000
    handshake: int = 10_000
    idle: int = 60_000
    unreachable: int = 60_000
    retry_first: int = 200
    retry_most: int = 10_000
    probe: int = 1_000
    #: Measures what publications of a broker with a history cost; None: nothing is measured.
    stopwatch: Stopwatch | None = None
