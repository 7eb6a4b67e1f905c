"""A broker's state on a desk: peers say packets as text and hear what waits for them."""

from __future__ import annotations

from itertools import count

from kbn.broker.instructions import Authenticate, Close, Connect, Instruction
from kbn.broker.invariants import check
from kbn.broker.remembering import Kept
from kbn.broker.settings import Settings
from kbn.broker.state import BrokerState
from kbn.broker.stimuli import Arrival, Closed, Opened, Peer, Received, Woke
from senp import FrameReader, decode_with_body


class Desk:
    """One broker named ``b1`` under a clock that only the test moves."""

    def __init__(self, kept: Kept | None = None, **settings: object) -> None:
        ids = count(1)
        fixed = {"new_id": lambda: f"event-{next(ids)}", "jitter": lambda: 0.5, **settings}
        self.now = 0
        self.state = BrokerState(Settings("b1", **fixed), now=0, kept=kept)  # type: ignore[arg-type]
        #: What the broker wanted done, apart from writing.
        self.asked: list[Instruction] = []

    def feed(self, *stimuli: object) -> None:
        self.asked += self.state.handle(self.now, *stimuli)  # type: ignore[arg-type]
        check(self.state)

    def opened(self) -> int:
        number = self.state.core.new_link()
        self.feed(Opened(number, Peer("127.0.0.1:9")))
        return number

    def session(self, name: str) -> int:
        number = self.opened()
        self.say(number, f'senp{{version=1 method="HLO" id="{name}"}}')
        self.hear(number)
        return number

    def say(self, link: int, *packets: str) -> None:
        arrivals = [Arrival(*decode_with_body(packet.encode("latin-1"))) for packet in packets]
        self.feed(Received(link, list(arrivals)))

    def hear(self, link: int) -> list[str]:
        frames = b"".join(self.state.take(link, 1 << 30))
        self.asked += self.state.core.take_instructions()
        check(self.state)
        return [packet.decode("latin-1") for packet in FrameReader().feed(frames)]

    def gone(self, link: int) -> None:
        self.feed(Closed(link))

    def wake(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.feed(Woke())

    def closes(self) -> list[int]:
        return [i.link for i in self.asked if isinstance(i, Close)]

    def connects(self) -> list[Connect]:
        return [i for i in self.asked if isinstance(i, Connect)]

    def authentications(self) -> list[Authenticate]:
        return [i for i in self.asked if isinstance(i, Authenticate)]
