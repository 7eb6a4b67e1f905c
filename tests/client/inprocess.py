"""A broker's state and clients' conversations in one process, joined by bytes alone."""

from __future__ import annotations

from itertools import count

from kbn.broker.instructions import Authenticate, Close, Flush
from kbn.broker.settings import Principal, Settings
from kbn.broker.state import BrokerState
from kbn.broker.stimuli import Arrival, Authenticated, Closed, Opened, Peer, Received
from kbn.client.happenings import Happening
from kbn.client.protocol import Conversation
from senp import ACCEPTED, FrameReader, Packet, decode, decode_with_body


def numbered_ids(prefix: str):
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"


class Exchange:
    """One broker. ``connect`` and ``cut`` make and lose connections; ``run`` moves bytes."""

    def __init__(self, **settings: object) -> None:
        self.settings = settings
        self.sent: list[Packet] = []
        self.happened: dict[Conversation, list[Happening]] = {}
        self._ends: dict[Conversation, int] = {}
        self._readers: dict[Conversation, FrameReader] = {}
        self.restart()

    def restart(self) -> None:
        """A new broker that knows nothing, its connections gone."""
        for client in list(self._ends):
            self.cut(client)
        fixed = {"new_id": numbered_ids("event"), "jitter": lambda: 0.5, **self.settings}
        self.state = BrokerState(Settings("broker", **fixed), now=0)

    def connect(self, client: Conversation, name: str) -> list[Happening]:
        number = self.state.core.new_link()
        self._ends[client] = number
        self._readers[client] = FrameReader()
        self._perform(self.state.handle(0, Opened(number, Peer("127.0.0.1:9"))))
        client.opened(name)
        self._tell(client, ACCEPTED)
        return self.run()

    def cut(self, client: Conversation, *, silently: bool = False) -> None:
        """The client's connection is lost; ``silently``: the broker does not notice."""
        number = self._ends.pop(client)
        if not silently:
            self._perform(self.state.handle(0, Closed(number)))
        self.happened.setdefault(client, []).extend(client.closed())

    def run(self) -> list[Happening]:
        """Move bytes until nobody has more to say; returns what happened since the last run."""
        moved = True
        while moved:
            moved = False
            for client, number in list(self._ends.items()):
                moved |= self._to_broker(client, number)
            for client, number in list(self._ends.items()):
                for frame in self.state.take(number, 1 << 20):
                    moved = True
                    # Byte by byte: the happenings must not depend on how the stream is cut.
                    for at in range(len(frame)):
                        self._tell(client, frame[at : at + 1])
        happened = [h for told in self.happened.values() for h in told]
        self.happened.clear()
        return happened

    def _to_broker(self, client: Conversation, number: int) -> bool:
        out = client.take()
        for frame in self._readers[client].feed(out):
            self.sent.append(decode(frame))
            arrival = Arrival(*decode_with_body(frame))
            self._perform(self.state.handle(0, Received(number, [arrival])))
        return bool(out)

    def _tell(self, client: Conversation, data: bytes) -> None:
        self.happened.setdefault(client, []).extend(client.receive(data))

    def _perform(self, instructions: list[object]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Authenticate):
                known = instruction.token == "right"
                principal = Principal("ann") if known else None
                done = self.state.handle(0, Authenticated(instruction.link, principal))
                self._perform(done)
            else:
                assert isinstance(instruction, Flush | Close) or "Log" in repr(instruction)
