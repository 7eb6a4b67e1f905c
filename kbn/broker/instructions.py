"""What a broker wants done. The shell does it and reports back by a stimulus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from datastore.store import Batch
from kbn.broker.addresses import Address


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
    against what failed.
    """

    batch: Batch
    upto: int
    epoch: int


Instruction: TypeAlias = Flush | Connect | Close | Authenticate | Log | Record
