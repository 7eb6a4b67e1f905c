"""WHO: what a broker tells about itself. To Siena an INF with its identity; in a
session also who subscribed to what, what was dropped and why, and how it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kbn.broker.core import Core
from kbn.broker.links import Link, Mode
from kbn.broker.subscribing import Subscribing
from kbn.errors import RefusedError
from kbn.knowledge.hierarchy import NO_TERMS
from kbn.knowledge.hierarchy.speaking import unknown_terms
from kbn.language.printer import print_subscription
from kbn.model import Notification
from kbn.model.filters import needs_ontology
from kbn.model.values import Bag, Value
from senp import Packet, encode, encode_frame

#: How many rows one answer holds; a client asks on with ``after``.
PAGE = 100
_LONGEST = 30_000


class Master(Protocol):
    """What is told of the way up."""

    identity: str | None
    refusal: str | None

    @property
    def spooled(self) -> int: ...


class Inquiry:
    """Answers WHO packets."""

    def __init__(self, core: Core, subscribing: Subscribing, master: Master | None) -> None:
        self._core = core
        self._subscribing = subscribing
        self._master = master

    def who(self, link: Link, packet: Packet) -> None:
        """INF to the handler that was asked for, or rows on the session."""
        identity = self._core.settings.identity
        if packet.handler is not None:
            target = self._subscribing.handler(link, packet.handler)
            answer = Packet(method="INF", id=identity, to=packet.id, handler=packet.handler)
            target.outbox.answer(encode_frame(encode(answer)))
            self._core.touch(target)
            return
        if link.mode is not Mode.SESSION:
            raise RefusedError("syntax", "WHO needs a handler to answer to")
        asked = packet.payload if isinstance(packet.payload, Notification) else Notification()
        what = asked.get("what", "who")
        after = asked.get("after", 0)
        rows = {"who": self._about, "subs": self._subscriptions, "drops": self._drops}
        if not isinstance(what, str) or what not in rows or not isinstance(after, int):
            raise RefusedError("unsupported", "WHO answers what = who, subs or drops")
        if what != "who" and not (link.principal.admin or link.peer.local):
            raise RefusedError("forbidden", f"{link.principal.name} may not look at that")
        for row in rows[what](after):
            self._core.answer(link, Packet(method="INF", id=identity, seq=packet.seq, payload=row))

    def _about(self, after: int) -> Iterator[Notification]:
        core, accounts = self._core, self._core.accounts
        said: dict[str, Value] = {
            "id": core.settings.identity,
            "path": Bag(core.path),
            "subscribers": len(core.table.subscribers),
            "subscriptions": len(core.table),
            "connections": len(core.links),
            "children": Bag(core.brokers),
            "advertisements": sum(map(len, core.advertisements.values())),
        }
        if core.ontology is not None:
            said["ontology"] = core.known.hash
        for name in ("received", "refused", "duplicate", "expired", "unmatched", "matched"):
            said[f"publications.{name}"] = getattr(accounts, name)
        said["deliveries.matches"] = accounts.matches
        said["deliveries.delivered"] = accounts.delivered
        said["deliveries.queued"] = sum(outbox.waiting_ids for outbox in core.outboxes())
        said["deliveries.dropped"] = sum(accounts.dropped.values())
        if self._master is not None:
            said["master"] = self._master.identity or "(down)"
            said["spooled"] = self._master.spooled
            if self._master.refusal is not None:
                said["master.refused"] = self._master.refusal
        yield Notification(said)

    def _subscriptions(self, after: int) -> Iterator[Notification]:
        for unit in self._core.table.page(after, PAGE):
            subscriber = unit.subscriber
            said: dict[str, Value] = {
                "number": unit.number,
                "subscriber": subscriber.id,
                "subscription": print_subscription(unit.asked)[:_LONGEST],
                "target": subscriber.target.name,
                "suspended": subscriber.suspended,
                "queued": subscriber.target.outbox.waiting_ids,
            }
            if needs_ontology(unit.asked):
                unknown = unknown_terms(unit.asked, self._core.ontology or NO_TERMS)
                if unknown:
                    said["unknown"] = Bag(term[: _LONGEST // 30] for term in unknown[:30])
            yield Notification(said)

    def _drops(self, after: int) -> Iterator[Notification]:
        names = sorted(self._core.accounts.dropped_by.items())[after : after + PAGE]
        for number, (name, reasons) in enumerate(names, after + 1):
            said: dict[str, Value] = {"number": number, "subscriber": name}
            yield Notification({**said, **reasons})
