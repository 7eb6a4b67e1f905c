"""A durable session's SUB whose first writing-down fails, and which is asked again."""

from __future__ import annotations

from datastore.memory import MemoryStore
from kbn.broker.instructions import Instruction, Recall, Record, SaveSession
from kbn.broker.stimuli import Recalled, Recorded, Saved
from kbn.matching.world import NOTHING_KNOWN
from kbn.server.history import open_history
from kbn.server.reading import past_of
from tests.broker.desk import Desk

DURABLE = 'senp{version=1 method="HLO" id="d" durable=true}'


class StoreDesk(Desk):
    """The desk of a broker with a store; the test says when the store answers, and what."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = MemoryStore() if store is None else store
        super().__init__(kept=open_history(self.store))

    def durable(self) -> int:
        number = self.opened()
        self.say(number, DURABLE)
        self.save()
        self.recall()
        self.hear(number)
        return number

    def _next(self, kind: type[Instruction]) -> Instruction:
        found = next(one for one in self.asked if isinstance(one, kind))
        self.asked.remove(found)
        return found

    def record(self) -> None:
        asked = self._next(Record)
        assert isinstance(asked, Record)
        self.store.append(asked.batch)
        self.feed(Recorded(asked.upto, asked.number))

    def save(self, failure: str | None = None) -> None:
        asked = self._next(SaveSession)
        assert isinstance(asked, SaveSession)
        if failure is None:
            self.store.save_session(asked.session)
        self.feed(Saved(asked.session.name, asked.link, asked.seq, asked.number, failure))

    def recall(self) -> None:
        asked = self._next(Recall)
        assert isinstance(asked, Recall)
        pieces = past_of(self.store, asked, NOTHING_KNOWN, None)
        items = [item for piece in pieces for item in piece]
        self.feed(Recalled(asked.number, items), Recalled(asked.number, [], done=True))


def subscribe(desk: StoreDesk, link: int, seq: int) -> None:
    desk.say(link, f'senp{{version=1 method="SUB" id="d/1" seq={seq}}} filter{{ n any}}')


def publish(desk: StoreDesk, link: int, n: int) -> None:
    desk.say(link, f'senp{{version=1 method="PUB" id="p"}} event{{ n={n}}}')
    desk.record()


def heard(desk: StoreDesk, link: int) -> list[str]:
    """The methods of the packets that came, with what publications say."""
    told = desk.hear(link)
    return [one.split("{ ")[-1].strip("}") if "PUB" in one else one.split('"')[1] for one in told]


def test_a_second_try_is_acknowledged_before_it_is_told_anything() -> None:
    desk = StoreDesk()
    durable, publisher = desk.durable(), desk.session("p")
    subscribe(desk, durable, 1)
    publish(desk, publisher, 1)  # in the backlog, for the one that will be refused
    desk.save(failure="the disk refused")
    assert heard(desk, durable) == ["ERR"]
    subscribe(desk, durable, 2)
    desk.recall()  # the session's backlog, asked for when the first try had ended
    assert heard(desk, durable) == []
    publish(desk, publisher, 2)
    desk.save()
    desk.recall()
    assert heard(desk, durable) == ["ACK", "n=2"]


def test_a_known_subscriber_is_told_its_backlog_while_it_asks_for_more() -> None:
    desk = StoreDesk()
    durable, publisher = desk.durable(), desk.session("p")
    subscribe(desk, durable, 1)
    publish(desk, publisher, 1)
    desk.save()
    desk.say(durable, 'senp{version=1 method="SUB" id="d/1" seq=2} filter{ m any}')
    desk.recall()
    assert heard(desk, durable) == ["ACK", "n=1"]
