"""What a conversation tells whoever holds the socket. See ``protocol``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kbn.client.events import Delivery
from kbn.errors import KbnError
from kbn.model import Bag, Notification
from senp import Packet


@dataclass(frozen=True, slots=True)
class Server:
    """What a broker says of itself in HLO."""

    identity: str
    #: This broker and those above it, up to the root.
    path: tuple[str, ...]
    max_packet: int
    max_depth: int
    max_constraints: int
    capabilities: tuple[str, ...]
    ontology: str
    protocol: int
    #: Deliveries that the bounds of a durable session's backlog cost it since it was last here.
    lost: int = 0
    #: The newest position of its log, told to durable sessions.
    pos: int | None = None

    @classmethod
    def of(cls, packet: Packet) -> Server:
        """Read from the broker's HLO; what it leaves out has the protocol's default."""
        said = packet.payload if isinstance(packet.payload, Notification) else Notification()
        return cls(
            identity=packet.id or "",
            path=_strings(said, "path"),
            max_packet=_number(said, "max_packet", 65_535),
            max_depth=_number(said, "max_depth", 16),
            max_constraints=_number(said, "max_constraints", 1024),
            capabilities=_strings(said, "capabilities"),
            ontology=str(said.get("ontology", "")),
            protocol=_number(said, "protocol", 1),
            lost=_number(said, "lost", 0),
            pos=_number(said, "pos", 0) if "pos" in said else None,
        )


def _strings(said: Notification, name: str) -> tuple[str, ...]:
    value = said.get(name)
    return tuple(str(member) for member in value) if isinstance(value, Bag) else ()


def _number(said: Notification, name: str, default: int) -> int:
    value = said.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


@dataclass(frozen=True, slots=True)
class Welcomed:
    """The session stands: for the first time, again, or the broker's path changed."""

    server: Server
    #: False when an established session only heard a new path.
    fresh: bool
    #: The history is not the one that positions so far were about.
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """A request took effect; ``rows`` are the answers to a question."""

    seq: int
    rows: tuple[Notification, ...] = ()


@dataclass(frozen=True, slots=True)
class Declined:
    """A request was refused; ``number`` names the subscription that ends by it."""

    seq: int
    error: KbnError
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Arrived:
    """A notification, for all these subscriptions of ours.

    ``unclaimed`` are subscriber ids of a durable session that nobody here asked for yet.
    """

    numbers: tuple[int, ...]
    delivery: Delivery
    unclaimed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Complained:
    """The broker refused something that no request of ours is about."""

    error: KbnError


@dataclass(frozen=True, slots=True)
class Ended:
    """The connection is of no more use: drop it, and do not come back if ``final``."""

    error: KbnError
    final: bool


Happening: TypeAlias = Welcomed | Answered | Declined | Arrived | Complained | Ended
