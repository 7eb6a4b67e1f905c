"""A master and the child that says how far it has heard: nothing is lost between two runs."""

from __future__ import annotations

from tests.broker.desk import Desk


def joined(desk: Desk, pos: int) -> int:
    child = desk.session("child")
    desk.say(
        child,
        f'senp{{version=1 method="INF" id="child" seq=1 pos={pos} durable=true}}',
        'senp{version=1 method="SUB" id="child/1" seq=2} filter{ n any}',
    )
    return child


def test_the_answer_to_hello_says_what_the_note_lists_and_nothing_more() -> None:
    desk = Desk()
    link = desk.opened()
    desk.say(link, 'senp{version=1 method="HLO" id="ann"}')
    (answer,) = desk.hear(link)
    assert answer.startswith('senp{version=1 method="HLO" ttl=30 id="b1"} event{ protocol=1 ')
    assert answer.endswith(' ontology="" path=["b1"]}')


def test_positions_go_on_after_what_a_child_heard_from_an_earlier_run() -> None:
    desk = Desk()
    child = joined(desk, pos=57)
    publisher = desk.session("p")
    desk.say(publisher, 'senp{version=1 method="PUB"} event{ n=1}')
    assert " pos=58 " in desk.hear(child)[-1]


def test_a_forgotten_child_that_comes_back_loses_nothing_at_the_next_cut() -> None:
    desk = Desk(unreachable=1_000)
    publisher = desk.session("p")
    desk.gone(joined(desk, pos=57))
    desk.wake(2_000)
    assert desk.state.core.brokers == {}
    child = joined(desk, pos=57)
    desk.say(publisher, 'senp{version=1 method="PUB"} event{ n=1}')
    assert "event{ n=1}" in desk.hear(child)[-1]
    desk.gone(child)  # the packet was in flight and is lost
    child = joined(desk, pos=57)
    assert any("event{ n=1}" in packet for packet in desk.hear(child))
