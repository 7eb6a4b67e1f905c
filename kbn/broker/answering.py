"""Who waits for a publication to be on disk: publishers, and the master whose word it was.

Law: ``ACK`` follows the disk; a position of the master's is confirmed when all it told
up to there is on disk. While a blocking subscriber is full, acknowledgements of
sessions are withheld: that is how their publishers are held back.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from kbn.broker.core import Core
from kbn.broker.delivering import Delivering, Publication
from kbn.broker.links import Link, Target


class Upward(Protocol):
    """The master link, as far as a publication is concerned."""

    identity: str | None

    def publish(self, publication: Publication) -> None: ...

    def heard(self, pos: int) -> None: ...

    def hear_again(self, why: str) -> None: ...


class Answering:
    """Answers that wait. ``after`` is the number of the newest publication that is accepted
    and not on disk, 0 if there is none."""

    def __init__(self, core: Core, delivering: Delivering, uplink: Upward | None) -> None:
        self._core = core
        self._delivering = delivering
        self._uplink = uplink
        #: (the newest publication it must wait for, whom to answer, its request).
        self._answers: deque[tuple[int, Link, int]] = deque()
        #: (the newest publication it must wait for, a position of the master's).
        self._heard: deque[tuple[int, int]] = deque()
        #: Acknowledgements withheld while a blocking subscriber is full.
        self._withheld: list[tuple[Link, int]] = []

    def acknowledge(self, link: Link, seq: int | None, after: int) -> None:
        """A request took effect, or will when what is pending is on disk."""
        if seq is None:
            return
        if after:
            # Also for a duplicate: its first copy may be among what is pending.
            self._answers.append((after, link, seq))
        else:
            self._say(link, seq)

    def heard(self, pos: int, after: int) -> None:
        """The master told something at a position: confirmed once it is on disk."""
        if self._uplink is None:
            return
        if after:
            self._heard.append((after, pos))
        else:
            self._uplink.heard(pos)

    def recorded(self, upto: int) -> None:
        """Everything up to a number is on disk: answer who waited for that."""
        last = 0
        while self._heard and self._heard[0][0] <= upto:
            last = self._heard.popleft()[1]
        if last and self._uplink is not None:
            self._uplink.heard(last)
        answers = self._answers
        while answers and answers[0][0] <= upto:
            _, link, seq = answers.popleft()
            if link.number in self._core.links:
                self._say(link, seq)

    def unrecorded(self, code: str, reason: str) -> None:
        """The store refused all that is pending: so do we."""
        if self._heard and self._uplink is not None:
            # What the master told and was not kept must be told again.
            self._heard.clear()
            self._uplink.hear_again(reason)
        answers, self._answers = self._answers, deque()
        for _, link, seq in answers:
            if link.number in self._core.links:
                self._core.refuse(link, seq, code, reason)

    def _say(self, link: Link, seq: int) -> None:
        if self._delivering.blocking and link.target is not None and not link.target.broker:
            self._withheld.append((link, seq))
        else:
            self._core.acknowledge(link, seq)

    def drained(self, target: Target) -> None:
        """A full target has room again, or is gone: blocked publishers get their answers."""
        blocking = self._delivering.blocking
        blocking.discard(target)
        if not blocking and self._withheld:
            withheld, self._withheld = self._withheld, []
            for link, seq in withheld:
                if link.number in self._core.links:
                    self._core.acknowledge(link, seq)

    @property
    def blocking(self) -> bool:
        """Whether some target holds publishers back."""
        return bool(self._delivering.blocking)
