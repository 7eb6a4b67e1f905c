"""What a broker wants done. The shell does it and reports back by a stimulus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from datastore.store import Batch, StoredSession
from kbn.broker.addresses import Address
from kbn.model.filters import Subscription
from kbn.model.time import TIME_MIN
from kbn.temporal.backfill import Backfill


@dataclass(frozen=True, slots=True)
class Flush:
    """Frames wait for this link: ``take`` them when it can be written to."""

    link: int


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a connection; answer with ``Opened`` or ``Closed`` for this link.

    ``trusted`` says the address is the broker's own choice, not a client's.
    """

    link: int
    address: Address
    local: bool
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """Write what waits, then close; answer with ``Closed``."""

    link: int


@dataclass(frozen=True, slots=True)
class Authenticate:
    """Check credentials off the loop; answer with ``Authenticated``."""

    link: int
    token: str | None
    user: str | None
    password: str | None


@dataclass(frozen=True, slots=True)
class Log:
    """Something an operator wants to know; the shell limits the rate by ``event``."""

    level: str
    event: str
    message: str


@dataclass(frozen=True, slots=True)
class Record:
    """Write the batch; answer with ``Recorded`` up to ``upto``, or ``Unrecorded``.

    After a failure nothing more of the same epoch may be written: it was matched
    against what failed. Numbers rise; what is asked of the store is done in the
    order in which it was asked.
    """

    batch: Batch
    upto: int
    epoch: int
    number: int


@dataclass(frozen=True, slots=True)
class Fill:
    """Feed the log up to ``backfill.upto`` to it, off the loop; answer with ``Filled``."""

    number: int
    backfill: Backfill
    #: It may take as long as it takes.
    patient: bool = False


@dataclass(frozen=True, slots=True)
class Recall:
    """Read the past off the loop; answer with ``Recalled``, piece by piece.

    Told are entries behind ``after`` up to ``upto`` that arrived at ``since`` or
    later: those that ``asked`` matches as of their own arrival; for ``history`` all
    publications about events that match it; for ``session`` what it has not confirmed.
    """

    number: int
    upto: int
    after: int = 0
    since: int = TIME_MIN
    asked: Subscription | None = None
    history: bool = False
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Explain:
    """Say why an event of the log matches what was asked, or not; answer with ``Explained``."""

    link: int
    seq: int | None
    asked: tuple[Subscription, ...]
    event: str


@dataclass(frozen=True, slots=True)
class LookUp:
    """Read an event that is far away, as in an archive; answer with ``LookedUp``."""

    link: int
    seq: int | None
    event: str


@dataclass(frozen=True, slots=True)
class ReadSpool:
    """Read what waits for the master behind ``after``; answer with ``Spooled``."""

    after: int


@dataclass(frozen=True, slots=True)
class SaveSession:
    """Write a durable session down, then answer with ``Saved`` for this request."""

    session: StoredSession
    link: int
    seq: int | None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop durable sessions, inner filters that nobody asks any more, and told losses.

    Nothing that was asked later may be written before this is done: an inner filter
    that stays would claim decisions nobody makes any more.
    """

    sessions: tuple[str, ...] = ()
    inners: tuple[str, ...] = ()
    #: Sessions that were told how many deliveries their backlogs lost.
    losses: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Trim:
    """Cut the backlogs of durable sessions to an age and a size; answer with ``Trimmed``."""

    sessions: tuple[str, ...]
    before: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class ChangeOntology:
    """Build what would be known, off the loop; answer ``OntologyBuilt`` or ``OntologyRefused``."""

    number: int
    what: str
    name: str
    source: str = ""
    format: str = ""
    data: bytes = b""
    skos: bool = False


@dataclass(frozen=True, slots=True)
class CommitOntology:
    """Write that change down; answer with ``OntologyKept`` or ``OntologyRefused``."""

    number: int


@dataclass(frozen=True, slots=True)
class Yield:
    """Let others have a turn of the loop, then say ``Resumed``."""


Instruction: TypeAlias = (
    Flush
    | Connect
    | Close
    | Authenticate
    | Log
    | Record
    | Fill
    | Recall
    | Explain
    | LookUp
    | ReadSpool
    | SaveSession
    | Forget
    | Trim
    | ChangeOntology
    | CommitOntology
    | Yield
)
