"""What every room of the broker shares: links, targets, the table, the ledger, the way out.

Invariants, checked by ``invariants.check`` in tests: every subscriber's target
knows it; a target's link points back to it; the ledger balances.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from kbn.broker.accounting import Accounting
from kbn.broker.addresses import KA, Address, parse_address
from kbn.broker.instructions import Close, Connect, Flush, Instruction, Log, Yield
from kbn.broker.knowing import Ontology
from kbn.broker.links import Link, Mode, Target
from kbn.broker.outbox import Outbox
from kbn.broker.settings import Policy, Settings
from kbn.broker.statistics import Statistics
from kbn.broker.stimuli import Peer
from kbn.knowledge.hierarchy import NO_TERMS, Hierarchy
from kbn.matching.world import World
from kbn.routing.table import Subscriber, SubscriptionTable
from senp import Packet, encode, encode_frame

#: A size no outbox reaches.
_NEVER = 2**62
_DONE = object()


class Core:
    """The shared state of one broker; ``now`` is set by the door before each stimulus."""

    def __init__(self, settings: Settings, now: int, known: Ontology) -> None:
        self.settings = settings
        self.now = now
        self.accounts = Accounting()
        self.statistics = Statistics(settings.stopwatch)
        self.table: SubscriptionTable[Target] = SubscriptionTable()
        self.links: dict[int, Link] = {}
        #: Targets by handler address, and of child brokers by name.
        self.handlers: dict[Address, Target] = {}
        self.brokers: dict[str, Target] = {}
        #: Named sessions whose deliveries the store keeps, here or away.
        self.durables: dict[str, Target] = {}
        self.advertisements: dict[str, list[Packet]] = {}
        #: Units held per principal, for the limit.
        self.held_units: dict[str, int] = {}
        #: This broker and those above it, up to the root.
        self.path: tuple[str, ...] = (settings.identity,)
        self.known = known
        self.know(known)
        self._dirty: dict[int, None] = {}
        self._instructions: list[Instruction] = []
        self._next_link = 1
        #: Long work in slices, one piece of it after the other.
        self._spread: deque[Iterator[None]] = deque()

    def know(self, known: Ontology) -> None:
        """From now on this is what is known."""
        before, self.known = self.known, known
        if before.hierarchy is not None and before.hierarchy is not known.hierarchy:
            before.hierarchy.let_go()
        #: What matching knows beside the publication: the ontologies, no history.
        self.world = World(known.hierarchy or NO_TERMS)

    @property
    def ontology(self) -> Hierarchy | None:
        """What semantic operators ask; None when nothing is loaded."""
        return self.known.hierarchy

    def spread(self, work: Iterator[None]) -> None:
        """Have long work done in slices, one each turn of the loop."""
        self._spread.append(work)
        if len(self._spread) == 1:
            self.instruct(Yield())

    def resumed(self) -> None:
        """A turn of the loop has passed: the next slice."""
        if self._spread and next(self._spread[0], _DONE) is _DONE:
            self._spread.popleft()
        if self._spread:
            self.instruct(Yield())

    # --- the way out ---------------------------------------------------------

    def take_instructions(self) -> list[Instruction]:
        """What has piled up since the last call."""
        out = self._instructions
        self._instructions = []
        if self._dirty:
            out.extend(Flush(number) for number in self._dirty)
            self._dirty = {}
        return out

    def instruct(self, instruction: Instruction) -> None:
        self._instructions.append(instruction)

    def log(self, level: str, event: str, message: str) -> None:
        self._instructions.append(Log(level, event, message))

    def touch(self, target: Target) -> None:
        """Frames wait in the target: have them written, or its handler called."""
        if target.link is not None:
            self._dirty[target.link.number] = None
        elif target.address is not None and target.next_try is None:
            self.connect(target)

    def answer(self, link: Link, packet: Packet) -> None:
        """Send a packet of our own on a session; legacy links hear nothing."""
        if link.target is not None and link.mode is not Mode.CLOSING:
            link.target.outbox.answer(encode_frame(encode(packet)))
            self._dirty[link.number] = None

    def acknowledge(self, link: Link, seq: int | None) -> None:
        """Tell the requester that it took effect, if it asked to be told."""
        if seq is not None and link.target is not None and link.mode is Mode.SESSION:
            packet = b'senp{version=1 method="ACK" ttl=30 seq=%d}' % seq
            link.target.outbox.answer(len(packet).to_bytes(2) + packet)
            self._dirty[link.number] = None

    def refuse(self, link: Link, seq: int | None, code: str, reason: str) -> None:
        """A no: an ERR in a session, a counter and a log line for legacy peers."""
        self.accounts.errors[code] += 1
        if link.target is None:
            self.accounts.malformed_legacy += 1
            self.log("warning", f"legacy_{code}", f"{link.peer.address}: {reason}")
        else:
            said = reason.split("\n", 1)[0][:2000]
            self.answer(link, Packet(method="ERR", seq=seq, code=code, reason=said))

    # --- links and targets ---------------------------------------------------

    def new_link(self) -> int:
        """A number for a connection; the shell asks for inbound ones too."""
        self._next_link += 1
        return self._next_link

    def close(self, link: Link) -> None:
        if link.mode is not Mode.CLOSING:
            link.mode = Mode.CLOSING
            self.instruct(Close(link.number))

    def new_outbox(self, *, keeping: bool = False, durable: bool = False) -> Outbox:
        limit = self.settings.backlog if keeping else self.settings.high_water
        # Who blocks or is disconnected is full first; the hard bound is for publishers
        # that cannot be held back. A durable session drops nothing: it spills when full.
        dropping = keeping or self.settings.policy is Policy.DROP_OLDEST
        hard = _NEVER if durable else limit if dropping else 2 * limit
        return Outbox(limit, self.accounts.lost, keeping=keeping, hard=hard)

    def handler_target(self, url: str, *, local: bool) -> Target:
        """The target behind a handler address, made on first use."""
        address = parse_address(url, 1936)
        target = self.handlers.get(address)
        if target is None:
            target = Target(str(address), self.new_outbox(), address)
            target.local = local
            self.handlers[address] = target
        return target

    def connect(self, target: Target) -> None:
        """Call a handler; the answer is ``Opened`` or ``Closed``."""
        assert target.address is not None
        number = self.new_link()
        link = Link(
            number, Peer(str(target.address), target.local), self.settings.anonymous, self.now
        )
        link.mode = Mode.LEGACY
        link.handler = True
        link.target = target
        self.links[number] = link
        # While the call is under way nobody else may start one.
        target.next_try = self.now + 2**40
        self.instruct(Connect(number, target.address, target.local))

    def forget_subscriber(self, subscriber: Subscriber[Target]) -> None:
        """It holds no unit any more: its target may have nobody left."""
        target = subscriber.target
        target.subscribers.pop(subscriber.id, None)
        self.release_handler(target)

    def release_handler(self, target: Target) -> None:
        """Let a handler go once nobody uses it and nothing waits for it."""
        if target.address is None or target.subscribers or target.outbox:
            return
        self.handlers.pop(target.address, None)
        if target.link is not None:
            self.close(target.link)

    def outboxes(self) -> list[Outbox]:
        """Every outbox that may hold deliveries, each once."""
        found = {id(t.outbox): t.outbox for t in self.handlers.values()}
        found |= {id(t.outbox): t.outbox for t in self.brokers.values()}
        for link in self.links.values():
            if link.target is not None:
                found[id(link.target.outbox)] = link.target.outbox
        return list(found.values())

    def is_framed(self, link: Link) -> bool:
        """Whether the link's transport frames packets (``ka``) or sends one a connection."""
        target = link.target
        return target is None or target.address is None or target.address.scheme == KA
