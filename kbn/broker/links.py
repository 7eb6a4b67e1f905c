"""Connections and the targets behind them.

A *link* is one connection; a *target* is where notifications for some
subscribers go. A session's target lives as long as its link; the target of a
child broker outlives it and waits for the next; the target of a legacy
subscriber is its handler, which the broker connects to by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kbn.broker.addresses import Address
from kbn.broker.outbox import Outbox
from kbn.broker.settings import Principal
from kbn.broker.stimuli import Arrival, Peer
from kbn.model.filters import Subscription
from kbn.routing.table import Hold, Subscriber
from senp import Packet


class Mode(Enum):
    """What a link speaks; an inbound one shows it with its first packet."""

    UNKNOWN = "unknown"
    WAITING = "waiting"  # credentials are being checked
    LEGACY = "legacy"
    SESSION = "session"
    CLOSING = "closing"


@dataclass(slots=True)
class Owed:
    """The past a unit of a durable session asked for: since when, up to which number."""

    since: int
    upto: int
    told: bool = False


class Target:
    """Where notifications go; ``link`` is None while nobody is there to take them."""

    __slots__ = (
        "address",
        "broker",
        "confirmed",
        "durable",
        "floor",
        "hold",
        "job",
        "link",
        "local",
        "lost",
        "name",
        "next_try",
        "outbox",
        "past",
        "positions",
        "retries",
        "saving",
        "since",
        "spilling",
        "subscribers",
        "suspended",
        "told",
        "unsaved",
    )

    def __init__(self, name: str, outbox: Outbox, address: Address | None = None) -> None:
        self.name = name
        self.outbox = outbox
        #: The handler to connect to; None for sessions, which come by themselves.
        self.address = address
        self.link: Link | None = None
        #: The peer said it is a broker: nothing it sent goes back to it.
        self.broker = False
        self.local = True
        #: A named session whose deliveries are kept in the store until it confirms them.
        self.durable = False
        #: A durable session that asked not to be told for a while.
        self.suspended = False
        #: Nothing is queued here for now: the store keeps it.
        self.spilling = False
        #: The newest arrival number that was queued here, and that its client confirmed.
        self.told = 0
        self.confirmed = 0
        #: Deliveries its backlog lost since it was last told.
        self.lost = 0
        #: What comes while the store's part is being read.
        self.hold: Hold | None = None
        #: The number of the reading that is under way for a durable session, or 0.
        self.job = 0
        #: Subscriptions of a durable session that are being written down.
        self.saving = 0
        #: What the store has of a durable session is older than what is here.
        self.unsaved = False
        #: The past that units of a durable session asked for and have not confirmed.
        self.past: dict[tuple[str, Subscription], Owed] = {}
        #: Positions up to here were told as somebody's past: to confirm one says nothing.
        self.floor = 0
        #: Each publication tells its position in this broker's log.
        self.positions = False
        #: When it became unreachable; None while it is reached or not yet tried.
        self.since: int | None = None
        self.retries = 0
        self.next_try: int | None = None
        self.subscribers: dict[str, Subscriber[Target]] = {}


class Link:
    """One connection, inbound or outgoing."""

    __slots__ = (
        "handler",
        "heard",
        "held",
        "hello",
        "hello_seq",
        "master",
        "mode",
        "name",
        "number",
        "ontology",
        "opened",
        "peer",
        "pinged",
        "principal",
        "target",
    )

    def __init__(self, number: int, peer: Peer, principal: Principal, now: int) -> None:
        self.number = number
        self.peer = peer
        self.principal = principal
        self.mode = Mode.UNKNOWN
        self.name = ""
        self.target: Target | None = None
        #: Packets that came while credentials were being checked.
        self.held: list[Arrival] = []
        #: The HLO that began the session, and its number.
        self.hello: Packet | None = None
        self.hello_seq: int | None = None
        #: What a child broker said it knows; see ``Ontology.name``.
        self.ontology = ("", "")
        self.opened = now
        self.heard = now
        self.pinged = False
        #: An outgoing connection to the master, or to a subscriber's handler.
        self.master = False
        self.handler = False
