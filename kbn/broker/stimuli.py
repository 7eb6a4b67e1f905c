"""What can happen to a broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from kbn.broker.knowing import Ontology
from kbn.broker.settings import Principal
from kbn.model.events import MergedEvent
from kbn.model.publications import Decision, LogEntry
from senp import Packet, WireError


class Arrival(NamedTuple):
    """A decoded packet, with its ``event{…}`` bytes when they are canonical."""

    packet: Packet
    body: bytes | None = None


class Peer(NamedTuple):
    """Who is at the other end of a connection, as far as the transport knows."""

    address: str
    local: bool = True
    #: The principal a client certificate stands for.
    certified: Principal | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection stands: an inbound one, or one that ``Connect`` asked for."""

    link: int
    peer: Peer


@dataclass(frozen=True, slots=True)
class Received:
    """Packets came in, in order; what could not be decoded stands in its place."""

    link: int
    arrivals: list[Arrival | WireError]


@dataclass(frozen=True, slots=True)
class Closed:
    """A connection is gone, or could not be made."""

    link: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The answer to ``Authenticate``: the principal, or None."""

    link: int
    principal: Principal | None


@dataclass(frozen=True, slots=True)
class Woke:
    """The time ``BrokerState.wake_at`` asked for has come."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Everything accepted up to this arrival number is on disk, and every ``Record``
    up to this number."""

    upto: int
    number: int


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """A write failed, and with it everything of its epoch that is not on disk."""

    epoch: int
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Filled:
    """The log was fed to a back-fill, or that failed for a reason."""

    number: int
    decisions: tuple[Decision, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """A piece of the past; receivers are given for a session's backlog.

    ``failed``: the store could not be read, and is to be asked again later.
    """

    number: int
    items: list[tuple[LogEntry, tuple[str, ...]]]
    done: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Spooled:
    """What waits for the master, oldest first; empty when that was all.

    None: the store could not be read, and is to be asked again later.
    """

    entries: list[LogEntry] | None


@dataclass(frozen=True, slots=True)
class Saved:
    """A durable session was written down, or that failed for a reason."""

    name: str
    link: int
    seq: int | None
    number: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The backlog of a durable session was cut: so many deliveries are lost."""

    session: str
    lost: int


@dataclass(frozen=True, slots=True)
class Explained:
    """The explanations asked for, as lines of text; or why there are none."""

    link: int
    seq: int | None
    text: str = ""
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class LookedUp:
    """An event that was far away, or None; or why it could not be read."""

    link: int
    seq: int | None
    event: MergedEvent | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class OntologyBuilt:
    """What would be known after a change, which is not written down yet."""

    number: int
    ontology: Ontology


@dataclass(frozen=True, slots=True)
class OntologyKept:
    """A change was written down."""

    number: int


@dataclass(frozen=True, slots=True)
class OntologyRefused:
    """A change cannot be made; nothing has changed."""

    number: int
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """A turn of the loop has passed since ``Yield``."""


#: What comes of a change of ontologies.
FromLibrary: TypeAlias = OntologyBuilt | OntologyKept | OntologyRefused | Resumed
#: What comes of the history.
FromStore: TypeAlias = (
    Recorded | Unrecorded | Filled | Recalled | Spooled | Saved | Trimmed | Explained | LookedUp
)
Stimulus: TypeAlias = Opened | Received | Closed | Authenticated | Woke | FromStore | FromLibrary
