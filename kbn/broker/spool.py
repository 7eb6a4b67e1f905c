"""Publications on their way to the master, until it acknowledged them.

Law: each is sent at least once and in order, however often the link is lost. What
waits here is bounded in bytes; with a store the rest waits there and is read when
half of what is here went up, without one the oldest are dropped and counted.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView

from kbn.broker.core import Core
from kbn.broker.delivering import Publication
from kbn.broker.instructions import ReadSpool
from kbn.broker.links import Link
from kbn.broker.recalling import past_publication
from kbn.broker.remembering import Remembering
from kbn.broker.stimuli import Peer
from kbn.model.publications import LogEntry


class Spool:
    """``send`` is called with each number and publication; it sends if the link stands."""

    def __init__(
        self,
        core: Core,
        memory: Remembering | None,
        number: Callable[[], int],
        send: Callable[[int, Publication], None],
    ) -> None:
        self._core = core
        self._memory = memory
        self._number = number
        self._send = send
        #: Publications without an acknowledgement, by their number, oldest first.
        self._waiting: dict[int, Publication] = {}
        self._bytes = 0
        #: More waits in the store than here, behind this arrival number.
        self._stored_after: int | None = None
        self._reading = False
        self._origin = Link(0, Peer("log"), core.settings.anonymous, core.now)

    def __len__(self) -> int:
        return len(self._waiting)

    def items(self) -> ItemsView[int, Publication]:
        """What waits, oldest first."""
        return self._waiting.items()

    def publish(self, publication: Publication) -> None:
        """Send it up now, or keep it until the link stands."""
        if self._stored_after is not None:
            return  # the store has it, behind others that go first
        most = self._core.settings.spool
        if self._memory is not None and self._bytes > most:
            self._stored_after = publication.seq - 1
            return
        self._keep(publication)
        while self._bytes > most and self._memory is None:
            self.drop(next(iter(self._waiting)))

    def _keep(self, publication: Publication) -> None:
        seq = self._number()
        self._waiting[seq] = publication
        self._bytes += len(publication.body)
        self._send(seq, publication)

    def acknowledged(self, seq: int) -> bool:
        """Whether it waited; the master has it, so it may be forgotten."""
        publication = self._waiting.pop(seq, None)
        if publication is None:
            return False
        self._bytes -= len(publication.body)
        if self._memory is not None:
            self._memory.unspool(publication.seq)
            self.read_on()
        return True

    def drop(self, seq: int) -> None:
        """Sending it again would change nothing: it is lost, and counted."""
        if self.acknowledged(seq):
            self._core.accounts.spooled_dropped += 1

    def clear(self) -> None:
        """It was written to one who never acknowledges."""
        for seq in list(self._waiting):
            self.acknowledged(seq)

    # --- what waits in the store ---------------------------------------------------------

    def stored(self, entries: list[LogEntry] | None) -> None:
        """What the store kept for the master, next in order; none left if empty.

        None: it could not be read; ``read_on`` tries when time has passed.
        """
        self._reading = False
        if entries is None:
            return
        for entry in entries:
            self._keep(past_publication(entry, self._origin))
        self._stored_after = entries[-1].seq if entries else None
        if entries:
            self.read_on()

    def read_on(self) -> None:
        """Have more read from the store once half of what is here went up."""
        room = self._bytes <= self._core.settings.spool // 2
        if self._stored_after is not None and not self._reading and room:
            self._reading = True
            if self._memory is not None:
                self._memory.flush()
            self._core.instruct(ReadSpool(self._stored_after))
