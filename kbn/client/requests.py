"""What a client has asked and not yet been answered, and how it says who it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from kbn.model import Notification


class Kind(Enum):
    """What an unanswered request is, which decides what becomes of it at a lost connection."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    ASK = "ask"
    LEAVE = "leave"


@dataclass(slots=True)
class Request:
    """A request that waits for its answer."""

    kind: Kind
    #: The bytes to send (again); a SUB's are made anew, since its subscriber id may change.
    frame: bytes
    number: int | None = None
    again: bool = False
    rows: list[Notification] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What HLO carries; all None on a broker that asks for none."""

    token: str | None = field(default=None, repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)
