"""How long a peer that sends what cannot be read is not read from.

Law: the nonsense of one host takes about a tenth of the loop at most, over however many
connections it comes: each waits so many times as long as its own nonsense took, times
the connections of its host that wait. Who stumbles once beside a hostile neighbour
waits for a multiple of what his own mistake cost. Hosts share nothing.
"""

from __future__ import annotations

#: A connection alone is not read from for so many times as long as it took to find out.
PENALTY = 9


class Penalties:
    """How many connections of each host wait."""

    def __init__(self) -> None:
        self._waiting: dict[str, int] = {}

    def begin(self, host: str, taken: float) -> float:
        """One more waits, whose nonsense took so many seconds: for how many it waits."""
        waiting = self._waiting[host] = self._waiting.get(host, 0) + 1
        return taken * PENALTY * waiting

    def end(self, host: str) -> None:
        """One of them waits no longer."""
        waiting = self._waiting.pop(host) - 1
        if waiting:
            self._waiting[host] = waiting
