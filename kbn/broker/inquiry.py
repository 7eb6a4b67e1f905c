"""WHO: what a broker tells about itself. To Siena an INF with its identity; in a
session also who subscribed to what, what was dropped and why, how it is, what it was
told of an event, and why that matched a subscriber or not.

| what | beside it | answered by |
|---|---|---|
| who | | one row |
| subs, drops | after | a page of rows |
| event | id | what was published about the event, START before END |
| explain | subscriber, id | rows of text: lines of JSON, one a publication and subscription |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from kbn.broker.core import Core
from kbn.broker.instructions import Explain, LookUp
from kbn.broker.links import Link, Mode
from kbn.broker.remembering import Remembering
from kbn.broker.steering import Steering
from kbn.broker.stimuli import Explained, LookedUp
from kbn.errors import RefusedError, UnsupportedError
from kbn.knowledge.hierarchy import NO_TERMS
from kbn.knowledge.hierarchy.speaking import unknown_terms
from kbn.language.printer import print_subscription
from kbn.matching.naive import matches
from kbn.model import Notification
from kbn.model.events import MergedEvent
from kbn.model.filters import needs_ontology
from kbn.model.values import Bag, Value
from senp import Packet, encode, encode_frame

#: How many rows one answer holds; a client asks on with ``after``.
PAGE = 100
_LONGEST = 30_000
#: Characters of text in a row, so that it fits a packet however it must be escaped.
_PIECE = 3_500


class Master(Protocol):
    """What is told of the way up."""

    identity: str | None
    refusal: str | None

    @property
    def spooled(self) -> int: ...


class Inquiry:
    """Answers WHO packets."""

    def __init__(
        self,
        core: Core,
        steering: Steering,
        master: Master | None,
        memory: Remembering | None = None,
    ) -> None:
        self._core = core
        self._steering = steering
        self._master = master
        self._memory = memory

    def who(self, link: Link, packet: Packet) -> None:
        """INF to the handler that was asked for, or rows on the session."""
        identity = self._core.settings.identity
        if packet.handler is not None:
            target = self._steering.handler(link, packet.handler)
            answer = Packet(method="INF", id=identity, to=packet.id, handler=packet.handler)
            target.outbox.answer(encode_frame(encode(answer)))
            self._core.touch(target)
            self._core.acknowledge(link, packet.seq)
            return
        if link.mode is not Mode.SESSION:
            raise RefusedError("syntax", "WHO needs a handler to answer to")
        asked = packet.payload if isinstance(packet.payload, Notification) else Notification()
        what = asked.get("what", "who")
        after = asked.get("after", 0)
        if what == "explain":
            self._explain(link, packet, asked)
            return
        if what == "event":
            self._look_up(link, packet.seq, asked.get("id"))
            return
        rows = {"who": self._about, "subs": self._subscriptions, "drops": self._drops}
        if not isinstance(what, str) or what not in rows or not isinstance(after, int):
            raise RefusedError(
                "unsupported", "WHO answers what = who, subs, drops, event or explain"
            )
        if what != "who":
            self._check_curious(link)
        self._tell(link, packet.seq, rows[what](after))

    def _check_curious(self, link: Link) -> None:
        if not (link.principal.admin or link.peer.local):
            raise RefusedError("forbidden", f"{link.principal.name} may not look at that")

    def _tell(self, link: Link, seq: int | None, rows: Iterable[Notification]) -> None:
        identity = self._core.settings.identity
        for row in rows:
            self._core.answer(link, Packet(method="INF", id=identity, seq=seq, payload=row))
        self._core.acknowledge(link, seq)

    # --- the history ---------------------------------------------------------------------

    def _look_up(self, link: Link, seq: int | None, event_id: object) -> None:
        memory = self._memory
        if memory is None:
            raise UnsupportedError("this broker has no history")
        if not isinstance(event_id, str):
            raise RefusedError("syntax", "say which event: WHO … id=")
        if memory.engine.is_far(event_id):
            self._core.instruct(LookUp(link.number, seq, event_id))
        else:
            self._tell(link, seq, list(self._event(link, memory.engine.event(event_id))))

    def looked_up(self, stimulus: LookedUp) -> None:
        """An event was fetched from afar."""
        link = self._core.links.get(stimulus.link)
        if link is None:
            return
        if stimulus.failure is not None:
            self._core.refuse(link, stimulus.seq, "store_unavailable", stimulus.failure)
            return
        try:
            self._tell(link, stimulus.seq, list(self._event(link, stimulus.event)))
        except RefusedError as error:
            self._core.refuse(link, stimulus.seq, error.code, error.message)

    def _event(self, link: Link, event: MergedEvent | None) -> Iterator[Notification]:
        """What was published about an event, to whom it would also be delivered."""
        principal = link.principal
        if event is None:
            return
        for told in (event.opened, event.closed):
            if told is None:
                continue
            if not principal.may_subscribe or (
                principal.subscribe is not None
                and not matches(principal.subscribe, told, self._core.world)
            ):
                raise RefusedError("forbidden", f"{principal.name} may not look at that")
            yield told

    def _explain(self, link: Link, packet: Packet, asked: Notification) -> None:
        """Have the log read again: the answer comes as ``Explained``."""
        self._check_curious(link)
        name, event = asked.get("subscriber"), asked.get("id")
        if self._memory is None:
            raise UnsupportedError("this broker has no history")
        if not isinstance(name, str) or not isinstance(event, str):
            raise RefusedError("syntax", "say who and which event: WHO … subscriber= id=")
        subscriber = self._core.table.subscribers.get(name)
        if subscriber is None:
            raise UnsupportedError(f"nobody subscribes as '{name}': `kbn subs` lists who does")
        units = tuple(unit.asked for unit in subscriber.units)
        self._core.instruct(Explain(link.number, packet.seq, units, event))

    def explained(self, stimulus: Explained) -> None:
        """The log was read: pass the text on, in rows that fit."""
        link = self._core.links.get(stimulus.link)
        if link is None:
            return
        if stimulus.failure is not None:
            self._core.refuse(link, stimulus.seq, "temporal_missing", stimulus.failure)
            return
        text = stimulus.text
        self._tell(
            link,
            stimulus.seq,
            [Notification({"text": text[at : at + _PIECE]}) for at in range(0, len(text), _PIECE)],
        )

    # --- the broker ------------------------------------------------------------------------

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
