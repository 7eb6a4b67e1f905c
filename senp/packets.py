"""A packet: the header's fields, in the order they are written, and one payload.

The first six fields are Siena's, the others are spoken in sessions only: Siena
1.3 rejects a packet with a field it does not know, so a packet for it leaves
them at their defaults, which are never written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from kbn.model import Filter, Notification, Subscription
from kbn.model.filters import MAX_DEPTH

VERSION = 1
DEFAULT_TTL = 30
MAX_TTL = 127
#: The most bytes of one packet: what two bytes of length can say.
MAX_PACKET = 65_535
#: The most bytes of an ``id``, and of each receiver in ``to``.
MAX_ID = 255

_SIENA = "NOP PUB SUB UNS ADV UNA HLO BYE SUS RES MAP WHO INF CNF OFF"
SIENA_METHODS = frozenset(_SIENA.split())
SESSION_METHODS = frozenset(("ACK", "ERR", "PING", "PONG", "CTX", "ONT"))
METHODS = SIENA_METHODS | SESSION_METHODS


@dataclass(frozen=True, slots=True)
class Limits:
    """What a decoder refuses with ``limit`` or ``too_large``."""

    max_packet: int = MAX_PACKET
    max_depth: int = MAX_DEPTH
    max_constraints: int = 1024
    max_id: int = MAX_ID

    def __post_init__(self) -> None:
        if not 1 <= self.max_depth <= MAX_DEPTH:
            raise ValueError(f"max_depth is between 1 and {MAX_DEPTH}, the model holds no more")


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Pattern:
    """Siena's ``pattern{…}``: filters that events match one after the other."""

    filters: tuple[Filter, ...] = ()


Payload: TypeAlias = Notification | tuple[Notification, ...] | Subscription | Pattern | None


class Packet(NamedTuple):
    """One packet of any method. Immutable; a named tuple because one is made per event.

    ``to`` is one receiver or a tuple of two and more; ``receivers`` reads both.
    ``payload`` is an event (``event{…}``), a tuple of events (``events{…}``), a
    subscription (``filter{…}`` or ``filters{…}``), a pattern, or nothing. An
    unknown ``method`` is kept as it came: who dispatches answers it, because
    only there the request's ``seq`` and the peer are known.
    """

    version: int = VERSION
    method: str = "NOP"
    ttl: int = DEFAULT_TTL
    id: str | None = None
    to: str | tuple[str, ...] | None = None
    handler: str | None = None
    seq: int | None = None
    code: str | None = None
    reason: str | None = None
    pos: int | None = None
    uid: str | None = None
    at: int | None = None
    history: bool = False
    since: int | None = None
    durable: bool = False
    token: str | None = None
    user: str | None = None
    password: str | None = None
    payload: Payload = None

    @property
    def receivers(self) -> tuple[str, ...]:
        """The ids in ``to``, none, one or many."""
        if self.to is None:
            return ()
        return (self.to,) if isinstance(self.to, str) else self.to

    def __repr__(self) -> str:
        """Only what differs from the defaults, and no secret, so that logs stay safe."""
        shown = [
            f"{name}={'***' if name in ('token', 'password') else repr(value)}"
            for name, value, default in zip(self._fields, self, _DEFAULTS, strict=True)
            if value != default
        ]
        return f"Packet({', '.join(shown)})"


_DEFAULTS = Packet()
