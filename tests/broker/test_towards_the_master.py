"""What travels up to the master, and what does not."""

from __future__ import annotations

import pytest

from kbn.broker.settings import MasterProtocol
from kbn.broker.stimuli import Opened, Peer
from tests.broker.desk import Desk


def linked(protocol: MasterProtocol = MasterProtocol.SESSION) -> tuple[Desk, int]:
    """A broker that has just reached its master; what it said so far is taken."""
    desk = Desk(master="ka://127.0.0.1:1", master_protocol=protocol, advertised="ka://127.0.0.1:2")
    desk.wake(0)
    up = desk.connects()[-1].link
    desk.feed(Opened(up, Peer("master")))
    desk.hear(up)
    return desk, up


def welcomed(path: str = '["m"]') -> tuple[Desk, int]:
    desk, up = linked()
    desk.say(up, f'senp{{version=1 method="HLO" id="m"}} event{{ path={path}}}')
    desk.hear(up)
    return desk, up


def test_a_subscription_on_its_last_hop_acts_here_and_does_not_travel() -> None:
    desk, up = welcomed()
    client = desk.session("c")
    desk.say(client, 'senp{version=1 method="SUB" ttl=1 id="s" seq=1} filter{ a any}')
    assert desk.hear(up) == []
    desk.say(client, 'senp{version=1 method="PUB" id="p"} event{ a=1}')
    assert len(desk.hear(client)) == 2
    desk.say(client, 'senp{version=1 method="UNS" ttl=30 id="s" seq=2}')
    assert 'method="UNS"' not in "".join(desk.hear(up))


def test_the_same_filter_with_hops_left_travels_although_one_without_is_held() -> None:
    desk, up = welcomed()
    client = desk.session("c")
    desk.say(client, 'senp{version=1 method="SUB" ttl=1 id="s" seq=1} filter{ a any}')
    desk.say(client, 'senp{version=1 method="SUB" ttl=30 id="s" seq=2} filter{ a any}')
    assert "".join(desk.hear(up)).count('method="SUB"') == 1


@pytest.mark.parametrize("protocol", [MasterProtocol.SESSION, MasterProtocol.SIENA])
def test_a_subscription_travels_with_one_hop_less(protocol: MasterProtocol) -> None:
    desk, up = linked(protocol)
    greeting = "HLO" if protocol is MasterProtocol.SESSION else "INF"
    desk.say(up, f'senp{{version=1 method="{greeting}" id="m"}}')
    client = desk.session("c")
    desk.hear(up)
    desk.say(client, 'senp{version=1 method="SUB" ttl=2 id="s" seq=1} filter{ a any}')
    desk.say(client, 'senp{version=1 method="SUB" ttl=9 id="t" seq=2} filter{ a =1}')
    desk.say(client, 'senp{version=1 method="SUB" ttl=9 id="u" seq=3} filter{ a =1 b =2}')
    said = [packet for packet in desk.hear(up) if 'method="SUB"' in packet]
    assert [packet.split()[2] for packet in said] == ["ttl=1", "ttl=8"]
    desk.say(client, 'senp{version=1 method="UNS" ttl=30 id="s" seq=4}')
    (gone,) = [packet for packet in desk.hear(up) if 'method="UNS"' in packet]
    assert gone.split()[2] == "ttl=1", "it goes as far as what it withdraws"


def test_the_same_filter_from_two_levels_of_the_tree_is_asked_once() -> None:
    desk, up = welcomed()
    client = desk.session("c")
    for name, ttl in (("s", 30), ("t", 29), ("u", 28)):
        desk.say(client, f'senp{{version=1 method="SUB" ttl={ttl} id="{name}"}} filter{{ a any}}')
    (said,) = [packet for packet in desk.hear(up) if 'method="SUB"' in packet]
    assert said.split()[2] == "ttl=29"


def test_an_unsubscription_on_its_last_hop_is_told_at_the_next_reconnect_only() -> None:
    desk, up = welcomed()
    client = desk.session("c")
    desk.say(client, 'senp{version=1 method="SUB" id="s" seq=1} filter{ a any}')
    assert 'method="SUB"' in "".join(desk.hear(up))
    desk.say(client, 'senp{version=1 method="UNS" ttl=1 id="s" seq=2}')
    assert desk.hear(up) == []
    desk.gone(up)
    desk.wake(60_000)
    up = desk.connects()[-1].link
    desk.feed(Opened(up, Peer("master")))
    desk.say(up, 'senp{version=1 method="HLO" id="m"} event{ path=["m"]}')
    said = "".join(desk.hear(up))
    assert 'method="UNS"' in said
    assert 'method="SUB"' not in said


def test_a_refused_subscription_leaves_no_handler_behind() -> None:
    desk = Desk(max_subscriptions=1)
    peer, session = desk.opened(), desk.session("c")
    desk.say(session, 'senp{version=1 method="SUB" id="s" seq=1} filter{ a any}')
    handler = 'handler="ka://127.0.0.1:9"'
    desk.say(peer, f'senp{{version=1 method="SUB" id="t" {handler}}} filter{{ a any}}')
    desk.say(peer, f'senp{{version=1 method="SUB" id="s" {handler}}} filter{{ a any}}')
    assert desk.state.core.handlers == {}


def test_sessions_hear_of_the_path_when_it_changes_and_only_then() -> None:
    desk, up = linked()
    client = desk.session("c")
    for path, told in (('["m"]', 1), ('["m"]', 0), ('["m" "r"]', 1)):
        desk.say(up, f'senp{{version=1 method="HLO" id="m"}} event{{ path={path}}}')
        assert len(desk.hear(client)) == told


@pytest.mark.parametrize("by", ["session", "legacy"])
def test_only_a_legacy_INF_says_who_a_siena_master_is(by: str) -> None:  # noqa: N802
    desk, up = linked(MasterProtocol.SIENA)
    other = desk.session("child") if by == "session" else desk.opened()
    desk.say(other, 'senp{version=1 method="INF" id="child" handler="ka://127.0.0.1:2"}')
    assert desk.state.uplink is not None
    assert desk.state.uplink.established is (by == "legacy")
    assert up in desk.state.core.links


def again(desk: Desk) -> int:
    """The next connection to the master, opened; what it says first is left to be heard."""
    desk.wake(60_000)
    up = desk.connects()[-1].link
    desk.feed(Opened(up, Peer("master")))
    return up


def test_a_master_that_spoke_in_a_session_once_is_never_taken_for_a_siena_one() -> None:
    desk, up = linked(MasterProtocol.AUTO)
    desk.say(up, 'senp{version=1 method="HLO" id="m"} event{ path=["m"]}')
    desk.gone(up)
    for _ in range(3):
        up = again(desk)
        assert 'method="HLO"' in desk.hear(up)[0]
        desk.wake(5_000)  # no answer in time
        desk.gone(up)


def test_a_master_that_is_silent_in_both_languages_is_asked_in_ours_again() -> None:
    desk, up = linked(MasterProtocol.AUTO)
    spoken = []
    for _ in range(4):
        desk.wake(20_000)
        desk.gone(up)
        up = again(desk)
        spoken.append(desk.hear(up)[0].split('"')[1])
    assert spoken == ["WHO", "HLO", "WHO", "HLO"]


def test_a_master_said_to_be_of_ours_is_never_spoken_to_as_siena() -> None:
    desk, up = linked(MasterProtocol.SESSION)
    desk.wake(60_000)
    desk.gone(up)
    assert 'method="HLO"' in desk.hear(again(desk))[0]
