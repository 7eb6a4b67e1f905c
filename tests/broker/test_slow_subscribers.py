"""What happens past a subscriber's high-water mark, by policy; every loss has its name."""

from __future__ import annotations

from kbn.broker.settings import Policy
from tests.broker.desk import Desk

PAD = "x" * 900


def with_a_stuck_subscriber(policy: Policy) -> tuple[Desk, int, int]:
    desk = Desk(policy=policy, high_water=4_000)
    slow, publisher = desk.session("slow"), desk.session("pub")
    desk.say(slow, 'senp{version=1 method="SUB" id="s" seq=1} filter{ n any}')
    assert len(desk.hear(slow)) == 1
    return desk, slow, publisher


def publish(desk: Desk, publisher: int, *numbers: int, seq: bool = True) -> None:
    for n in numbers:
        number = f" seq={n}" if seq else ""
        desk.say(publisher, f'senp{{version=1 method="PUB"{number}}} event{{ n={n} pad="{PAD}"}}')


def answered(desk: Desk, publisher: int) -> list[int]:
    return [int(p.split("seq=")[1].split("}")[0]) for p in desk.hear(publisher)]


def test_drop_oldest_keeps_the_newest_and_counts_the_rest() -> None:
    desk, slow, publisher = with_a_stuck_subscriber(Policy.DROP_OLDEST)
    publish(desk, publisher, *range(1, 11))
    assert answered(desk, publisher) == list(range(1, 11))
    heard = desk.hear(slow)
    assert 0 < len(heard) < 10
    assert "n=10 " in heard[-1]
    assert desk.state.core.accounts.dropped_by["s"]["queue_full"] == 10 - len(heard)


def test_disconnect_closes_the_slow_subscriber_and_counts_what_waited() -> None:
    desk, slow, publisher = with_a_stuck_subscriber(Policy.DISCONNECT)
    publish(desk, publisher, *range(1, 11))
    assert desk.closes() == [slow]
    desk.gone(slow)
    accounts = desk.state.core.accounts
    assert accounts.dropped_by["s"]["queue_full"] > 0
    assert accounts.delivered == 0
    assert desk.state.core.table.subscribers == {}


def test_block_withholds_the_answers_of_sessions_until_there_is_room() -> None:
    desk, slow, publisher = with_a_stuck_subscriber(Policy.BLOCK)
    publish(desk, publisher, *range(1, 7))
    early = answered(desk, publisher)
    assert early == list(range(1, len(early) + 1))
    assert len(early) < 6
    assert len(desk.hear(slow)) == 6
    assert early + answered(desk, publisher) == list(range(1, 7))
    assert not desk.state.core.accounts.dropped


def test_block_is_over_when_the_slow_subscriber_leaves() -> None:
    desk, slow, publisher = with_a_stuck_subscriber(Policy.BLOCK)
    publish(desk, publisher, *range(1, 7))
    early = answered(desk, publisher)
    desk.gone(slow)
    assert early + answered(desk, publisher) == list(range(1, 7))


def test_publishers_that_ask_for_no_answer_block_nobody_once_there_is_room() -> None:
    desk, slow, publisher = with_a_stuck_subscriber(Policy.BLOCK)
    publish(desk, publisher, *range(1, 7), seq=False)
    assert len(desk.hear(slow)) == 6
    publish(desk, publisher, 7)
    assert answered(desk, publisher) == [7]


def test_who_cannot_be_held_back_is_bounded_all_the_same() -> None:
    desk, slow, publisher = with_a_stuck_subscriber(Policy.BLOCK)
    publish(desk, publisher, *range(1, 101), seq=False)
    heard = desk.hear(slow)
    assert len(heard) <= 9
    assert desk.state.core.accounts.dropped["queue_full"] == 100 - len(heard)
