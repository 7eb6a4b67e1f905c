"""What can be wrong with bytes from the wire.

    KbnError
    └── MalformedError
        └── WireError     code, position, seq

One class, because a session answers all of them the same way: ``ERR`` with the
``code`` and a reason that names the position. The codes a codec gives are

    syntax              bytes that are no packet
    limit               too deep, too many constraints or alternatives, an id too long,
                        a bound of an operator that is out of range
    too_large           more bytes than a packet may have
    unsupported         another version of the protocol
    temporal_reference  a temporal operator on an attribute that is no time
"""

from __future__ import annotations

from kbn.errors import KbnError, MalformedError


class WireError(MalformedError):
    """A packet that cannot be read; the message ends with ``at byte N``.

    ``position`` counts bytes from 0 in the packet (not in the stream). ``seq``
    is the header's, when it could still be read, so that the answer can name
    the request it refuses.
    """

    def __init__(
        self, problem: str, *, position: int, code: str = "syntax", seq: int | None = None
    ) -> None:
        self.problem = problem
        self.position = position
        self.code = code
        self.seq = seq
        super().__init__(f"{problem} at byte {position}")

    @classmethod
    def wrapping(cls, error: KbnError, position: int) -> WireError:
        """The model's own refusal, with the place on the wire that caused it."""
        return cls(error.message, position=position, code=error.code)
