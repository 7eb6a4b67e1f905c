"""A network in one process: brokers and clients under a fake clock, faults from a seed.

Connections are pairs of ordered, delayed pipes. The faults of links between brokers:

    cut         what is in flight is lost, and each end hears of it at a time of its own
    duplicate   only the child hears of the cut, so it connects again while its
                master still believes in the old connection
    delay       everything takes long for a while, still in order
    slow        one end does not read for a while: what it is sent waits at the other

Nothing here reads a real clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random

from kbn.broker.instructions import Authenticate, Close, Connect, Flush, Log, Yield
from kbn.broker.invariants import check
from kbn.broker.knowing import NOTHING_LOADED, Ontology
from kbn.broker.remembering import Kept
from kbn.broker.settings import Settings
from kbn.broker.state import BrokerState
from kbn.broker.stimuli import (
    Arrival,
    Authenticated,
    Closed,
    Opened,
    Peer,
    Received,
    Resumed,
    Woke,
)
from kbn.model import Notification, Subscription
from senp import FrameReader, Packet, decode_with_body, encode, encode_frame


class Clock:
    """Simulated milliseconds and what is due when."""

    def __init__(self, seed: int) -> None:
        self.now = 0
        self.random = Random(seed)
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, when: int, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (max(when, self.now), self._count, action))

    def after(self, delay: int, action: Callable[[], None]) -> None:
        self.at(self.now + delay, action)

    def run(self, until: int) -> None:
        """Let everything happen that is due by ``until``."""
        while self._due and self._due[0][0] <= until:
            self.now, _, action = heapq.heappop(self._due)
            action()
        self.now = until


class End:
    """One end of a connection: calls its owner with bytes and with the end of it."""

    def __init__(self, clock: Clock, connection: Connection) -> None:
        self.clock = clock
        self.connection = connection
        self.other: End
        self.received: Callable[[bytes], None] = lambda data: None
        self.closed: Callable[[str], None] = lambda reason: None
        self.alive = True
        self._arrives = 0

    def send(self, data: bytes) -> None:
        """In order, after a delay; lost when the connection was cut meanwhile."""
        delay = self.clock.random.randint(1, self.connection.slowness)
        self._arrives = max(self._arrives, self.clock.now + delay)

        def deliver() -> None:
            if not self.connection.cut and self.other.alive:
                self.other.received(data)

        self.clock.at(self._arrives, deliver)

    def close(self) -> None:
        """Orderly: what was sent before arrives, then the other end hears of it."""
        if self.alive:
            self.alive = False
            other = self.other
            self.clock.at(
                max(self._arrives, self.clock.now) + 1, lambda: other.hear_of_end("closed")
            )
            self.clock.after(0, lambda: self.closed("closed"))

    def hear_of_end(self, reason: str) -> None:
        if self.alive:
            self.alive = False
            self.closed(reason)


class Connection:
    """Two ends and what may befall them."""

    def __init__(self, clock: Clock, slowness: int) -> None:
        self.slowness = slowness
        self.cut = False
        self.clock = clock
        self.one, self.two = End(clock, self), End(clock, self)
        self.one.other, self.two.other = self.two, self.one

    def break_now(self, late: int = 400) -> None:
        """Lose everything in flight; each end notices by itself, the master's within ``late``."""
        if not self.cut:
            self.cut = True
            for end, most in ((self.one, 400), (self.two, late)):
                delay = self.clock.random.randint(most // 2, most)
                self.clock.after(delay, lambda end=end: end.hear_of_end("cut"))  # type: ignore[misc]


class Node:
    """A broker in the network: performs instructions, feeds stimuli, checks invariants."""

    def __init__(self, network: Network, name: str, **settings: object) -> None:
        self.network = network
        self.name = name
        counter = iter(range(10**9))
        self._settings = Settings(
            identity=name,
            new_id=lambda: f"{name}-{next(counter)}",
            jitter=network.clock.random.random,
            **settings,  # type: ignore[arg-type]
        )
        self.logs: list[Log] = []
        #: Every packet in the order this broker took it in, with the link it came on.
        self.arrived: list[tuple[int, Packet]] = []
        self.begin()

    def begin(self) -> None:
        """Come to life with what is kept and no connections."""
        self.state = BrokerState(self._settings, self.network.clock.now, self.kept(), self.known())
        self.ends: dict[int, End] = {}
        self.readers: dict[int, FrameReader] = {}
        self.stuck: set[int] = set()
        self._wakes: int | None = None
        self._perform(self.state.handle(self.network.clock.now))

    def kept(self) -> Kept | None:
        """The history this broker begins with; none here."""
        return None

    def known(self) -> Ontology:
        """The ontology this broker begins with; none here."""
        return NOTHING_LOADED

    def attach(self, end: End) -> int:
        """An inbound connection."""
        number = self.state.core.new_link()
        self._wire(number, end)
        self.feed(Opened(number, Peer("sim")))
        return number

    def _wire(self, number: int, end: End) -> None:
        self.ends[number] = end
        self.readers[number] = FrameReader()
        end.received = lambda data: self._bytes(number, data)
        end.closed = lambda reason: self._gone(number, reason)

    def _bytes(self, number: int, data: bytes) -> None:
        arrivals = []
        for frame in self.readers[number].feed(data):
            packet, body = decode_with_body(frame)
            self.arrived.append((number, packet))
            arrivals.append(Arrival(packet, body))
        self.feed(Received(number, arrivals))

    def _gone(self, number: int, reason: str) -> None:
        self.ends.pop(number, None)
        self.feed(Closed(number, reason))

    def feed(self, *stimuli: object) -> None:
        self._perform(self.state.handle(self.network.clock.now, *stimuli))  # type: ignore[arg-type]

    def _perform(self, instructions: list[object]) -> None:  # type: ignore[type-arg]
        pending = list(instructions)
        while pending:
            instruction = pending.pop(0)
            if isinstance(instruction, Flush):
                self.flush(instruction.link)
                pending.extend(self.state.handle(self.network.clock.now))
            elif isinstance(instruction, Connect):
                self.network.connect(self, instruction)
            elif isinstance(instruction, Close):
                self.flush(instruction.link)
                end = self.ends.get(instruction.link)
                if end is not None:
                    end.close()
            elif isinstance(instruction, Authenticate):
                self.feed(Authenticated(instruction.link, None))
            elif isinstance(instruction, Yield):
                self.network.clock.after(1, lambda: self.feed(Resumed()))
            elif isinstance(instruction, Log):
                self.logs.append(instruction)
            else:
                self.perform(instruction)
        check(self.state)
        self._sleep()

    def perform(self, instruction: object) -> None:
        """What concerns a history."""
        raise AssertionError(f"a broker without a store was told to {instruction}")

    def flush(self, number: int) -> None:
        end = self.ends.get(number)
        if end is None or not end.alive or number in self.stuck:
            return
        frames = self.state.take(number, 1 << 30)
        if frames:
            end.send(b"".join(frames))

    def _sleep(self) -> None:
        wake = self.state.wake_at
        if self._wakes is None or wake < self._wakes:
            self._wakes = wake
            self.network.clock.at(wake, self._wake)

    def _wake(self) -> None:
        self._wakes = None
        self.feed(Woke())


class Client:
    """A scripted session: subscribes, publishes, remembers what it was told, in order."""

    def __init__(self, network: Network, name: str, broker: str) -> None:
        self.name = name
        self.broker = broker
        self.network = network
        self.heard: list[tuple[str, Notification]] = []
        self.answers: list[Packet] = []
        self._reader = FrameReader()
        self._seq = 0
        connection = Connection(network.clock, 5)
        self.end = connection.one
        self.end.received = self._received
        self.link = network.nodes[broker].attach(connection.two)
        self.send(Packet(method="HLO", id=name))

    def _received(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            packet, _ = decode_with_body(frame)
            if packet.method == "PUB" and isinstance(packet.payload, Notification):
                self.heard.extend((to, packet.payload) for to in packet.receivers)
            else:
                self.answers.append(packet)

    def send(self, packet: Packet) -> None:
        self.end.send(encode_frame(encode(packet)))

    def request(self, **fields: object) -> None:
        self._seq += 1
        self.send(Packet(seq=self._seq, **fields))  # type: ignore[arg-type]

    def subscribe(self, number: int, asked: Subscription) -> None:
        self.request(method="SUB", id=f"{self.name}/{number}", payload=asked)

    def unsubscribe(self, number: int) -> None:
        self.request(method="UNS", id=f"{self.name}/{number}")

    def publish(self, event: Notification) -> None:
        self.request(method="PUB", id=self.name, payload=event)


class Network:
    """A tree of brokers. ``masters`` maps each broker to its master, or to None."""

    node: type[Node] = Node

    def __init__(
        self, seed: int, masters: dict[str, str | None], slowness: int = 20, **settings: object
    ) -> None:
        self.clock = Clock(seed)
        self.slowness = slowness
        self.nodes: dict[str, Node] = {}
        self.links: list[Connection] = []
        for name, master in masters.items():
            url = None if master is None else f"ka://{master}:1"
            self.nodes[name] = self.node(self, name, master=url, **settings)

    def connect(self, node: Node, instruction: Connect) -> None:
        """An outgoing connection of a broker, to another broker by its name."""
        master = self.nodes.get(instruction.address.host)
        connection = Connection(self.clock, self.slowness)
        number = instruction.link

        life = node.state

        def open_both() -> None:
            if node.state is not life:
                return  # whoever asked for it is gone
            if master is None:
                node.feed(Closed(number, "no such host"))
                return
            self.links.append(connection)
            node._wire(number, connection.one)
            master.attach(connection.two)
            node.feed(Opened(number, Peer("sim")))

        self.clock.after(self.clock.random.randint(1, self.slowness), open_both)

    def _some_link(self) -> Connection | None:
        alive = [link for link in self.links if not link.cut and link.one.alive]
        return self.clock.random.choice(alive) if alive else None

    def cut_one(self) -> None:
        """Break a random link between brokers."""
        link = self._some_link()
        if link is not None:
            link.break_now()

    def duplicate_one(self) -> None:
        """Break one so that its master finds out only by the child's next connection."""
        link = self._some_link()
        if link is not None:
            link.break_now(late=30_000)

    def delay_one(self) -> None:
        """Make one slow for a while."""
        link = self._some_link()
        if link is not None:
            before, link.slowness = link.slowness, 2_000
            self.clock.after(1_000, lambda: setattr(link, "slowness", before))

    def slow_one(self) -> None:
        """Have one broker not read from one of its neighbours for a while."""
        nodes = [node for node in self.nodes.values() if node.ends]
        node = self.clock.random.choice(nodes)
        number = self.clock.random.choice(list(node.ends))
        node.stuck.add(number)

        def go_on() -> None:
            node.stuck.discard(number)
            node.flush(number)
            node.feed(Woke())

        self.clock.after(self.clock.random.randint(200, 3_000), go_on)

    def fault(self) -> str:
        """One of the above, by chance; returns which."""
        kind = self.clock.random.choice(["cut", "cut", "duplicate", "delay", "slow"])
        getattr(self, f"{kind}_one")()
        return kind

    def settle(self, milliseconds: int = 60_000) -> None:
        """Let the network come to rest."""
        self.clock.run(self.clock.now + milliseconds)
