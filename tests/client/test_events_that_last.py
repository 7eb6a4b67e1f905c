"""What the helpers for START, END and INSTANT publish."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from kbn.client.events import Delivery, Plain, Publishable, as_notification
from kbn.client.handle import EventHandle
from kbn.client.moments import milliseconds, now, since_when
from kbn.client.telling import said, without_times
from kbn.errors import RefusedError, ValueRangeError
from kbn.model import Bag, Notification


class Published:
    """A client that keeps what it is to publish."""

    def __init__(self) -> None:
        self.events: list[Notification] = []

    def new_id(self) -> str:
        return "new"

    async def publish(self, event: Publishable | None = None, /, **attributes: Plain) -> str:
        self.events.append(as_notification(event, attributes))
        return "uid"


def test_a_block_publishes_its_start_and_its_end_with_the_same_attributes() -> None:
    client = Published()

    async def use() -> None:
        async with EventHandle(client, said({"kind": "storm", "n": 1}, {}), None, 1_000) as event:
            assert (event.id, event.start, len(client.events)) == ("new", 1_000, 1)
            event.update({"n": 2}, at=3_000, end="soon")

    asyncio.run(use())
    start, end = client.events
    assert dict(start) == {
        "kind": "storm", "n": 1, "PUB_ID": "new",
        "KBN_PUB_TYPE": Bag(["START"]), "KBN_START_TIME": 1_000,
    }  # fmt: skip
    assert dict(end) == {
        "kind": "storm", "n": 2, "end": "soon", "PUB_ID": "new",
        "KBN_PUB_TYPE": Bag(["END"]), "KBN_END_TIME": 3_000,
    }  # fmt: skip


def test_an_event_ends_also_when_its_block_fails_and_never_before_it_began() -> None:
    client = Published()
    future = now() + 1_000_000

    async def use() -> None:
        async with EventHandle(client, Notification(), "mine", future):
            raise KeyError("in the block")

    with pytest.raises(KeyError):
        asyncio.run(use())
    assert client.events[1]["KBN_END_TIME"] == future


def test_an_event_whose_start_was_refused_has_no_end() -> None:
    class Refusing(Published):
        async def publish(self, event: Publishable | None = None, /, **attributes: Plain) -> str:
            await super().publish(event, **attributes)
            raise RefusedError("store_unavailable", "no")

    client = Refusing()

    async def use() -> None:
        async with EventHandle(client, Notification(), "mine", 5):
            raise AssertionError("it was entered")

    with pytest.raises(RefusedError):
        asyncio.run(use())
    assert len(client.events) == 1


@pytest.mark.parametrize("name", ["PUB_ID", "KBN_PUB_TYPE", "KBN_START_TIME", "KBN_END_TIME"])
def test_the_four_attributes_are_set_by_the_helpers_alone(name: str) -> None:
    with pytest.raises(RefusedError, match=name):
        said({name: 1}, {})
    assert dict(without_times(Notification({name: 1, "a": 2}))) == {"a": 2}


def test_times_are_milliseconds_datetimes_and_ages() -> None:
    moment = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert milliseconds(moment) == milliseconds(datetime(2026, 1, 1, 10)) == 1_767_261_600_000
    assert milliseconds(datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)) == -1
    assert milliseconds(-5) == since_when(-5) == -5
    before = now()
    assert before - 2_000 <= since_when(timedelta(seconds=2)) <= now() - 2_000
    for wrong in (True, 1.5, "1"):
        with pytest.raises(ValueRangeError):
            milliseconds(wrong)  # type: ignore[arg-type]


def test_a_delivery_shows_its_position_where_it_has_one() -> None:
    plain = Delivery.of(Notification({"a": 1}), "u", 5)
    placed = Delivery.of(Notification({"a": 1}), "u", 5, 9)
    assert (plain.pos, placed.pos) == (0, 9)
    assert plain == placed
    assert "pos" not in repr(plain)
    assert "pos=9" in repr(placed)
