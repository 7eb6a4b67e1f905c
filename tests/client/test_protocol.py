"""The conversation without a socket, against the broker's own state."""

from __future__ import annotations

import pytest

from kbn.client.happenings import Answered, Arrived, Complained, Declined, Ended, Welcomed
from kbn.client.protocol import Conversation
from kbn.client.requests import Credentials
from kbn.errors import UnsupportedError
from kbn.language import parse_subscription
from kbn.model import Notification
from senp import Packet, WireError, encode, encode_frame
from tests.client.inprocess import Exchange, numbered_ids

CHEAP = parse_subscription("price < 80")


def client(**credentials: str) -> Conversation:
    return Conversation(numbered_ids("uid"), Credentials(**credentials))


def joined(exchange: Exchange, name: str = "c") -> Conversation:
    made = client()
    exchange.connect(made, name)
    return made


def of(kind: type, happened: list) -> list:
    return [h for h in happened if isinstance(h, kind)]


def test_the_broker_s_hello_tells_its_identity_path_and_limits():
    (welcomed,) = of(Welcomed, Exchange().connect(client(), "c"))
    assert welcomed.fresh
    assert welcomed.server.identity == "broker"
    assert welcomed.server.path == ("broker",)
    assert (welcomed.server.max_packet, welcomed.server.max_depth) == (65_535, 16)
    assert "batch" in welcomed.server.capabilities


def test_nothing_is_said_before_the_greeting_byte():
    made = client()
    made.opened("c")
    made.publish(Notification({"a": 1}))
    assert made.take() == b""


def test_a_publication_is_answered_and_reaches_the_subscriptions_that_match():
    exchange = Exchange()
    made = joined(exchange)
    cheap, sub_seq = made.subscribe(CHEAP)
    dear, _ = made.subscribe(parse_subscription("price > 100"))
    both, _ = made.subscribe(parse_subscription("price any"))
    seq, uid = made.publish(Notification({"price": 79.5}))
    happened = exchange.run()
    assert {a.seq for a in of(Answered, happened)} >= {sub_seq, seq}
    (arrived,) = of(Arrived, happened)
    assert set(arrived.numbers) == {cheap, both}
    assert dear not in arrived.numbers
    assert arrived.delivery == Notification({"price": 79.5})
    assert (arrived.delivery.uid, arrived.delivery.at) == (uid, 0)


def test_each_subscription_has_a_subscriber_id_of_its_own_under_the_session_s_name():
    exchange = Exchange()
    made = joined(exchange, "ann")
    made.subscribe(CHEAP)
    made.subscribe(parse_subscription("price < 100"))
    exchange.run()
    assert set(exchange.state.core.table.subscribers) == {"ann/1", "ann/2"}


def test_a_refusal_carries_the_broker_s_code_and_ends_the_subscription():
    exchange = Exchange()
    made = joined(exchange)
    number, seq = made.subscribe(parse_subscription("w is_a wine:Red"))
    (declined,) = of(Declined, exchange.run())
    assert (declined.seq, declined.number, declined.error.code) == (seq, number, "no_ontology")
    exchange.cut(made)
    exchange.sent.clear()
    exchange.connect(made, "c")
    assert [p.method for p in exchange.sent] == ["HLO"]


def test_an_unsubscribed_number_hears_nothing_more():
    exchange = Exchange()
    made = joined(exchange)
    number, _ = made.subscribe(CHEAP)
    exchange.run()
    assert made.unsubscribe(number) is not None
    made.publish(Notification({"price": 1}))
    assert not of(Arrived, exchange.run())
    assert not exchange.state.core.table.subscribers
    assert made.unsubscribe(number) is None


def test_a_notification_on_its_way_to_an_ended_subscription_is_ignored():
    exchange = Exchange()
    made = joined(exchange)
    number, _ = made.subscribe(CHEAP)
    exchange.run()
    made.unsubscribe(number)
    late = Packet(method="PUB", to="c/1", uid="u", payload=Notification({"price": 1}))
    assert made.receive(encode_frame(encode(late))) == []


def test_rows_of_a_question_come_with_its_answer():
    exchange = Exchange()
    made = joined(exchange)
    made.subscribe(CHEAP)
    made.subscribe(parse_subscription("a = 1"))
    exchange.run()
    seq = made.ask("subs")
    (answered,) = of(Answered, exchange.run())
    assert answered.seq == seq
    assert [row["subscription"] for row in answered.rows] == ["price < 80", "a = 1"]


def test_ping_is_answered_and_the_broker_s_ping_gets_its_pong():
    exchange = Exchange()
    made = joined(exchange)
    seq = made.ping()
    assert exchange.run() == [Answered(seq)]
    made.receive(encode_frame(encode(Packet(method="PING", seq=7))))
    assert made.take() == encode_frame(encode(Packet(method="PONG", seq=7)))


def test_a_new_path_is_told_without_starting_over():
    exchange = Exchange()
    made = joined(exchange)
    exchange.state.core.path = ("broker", "root")
    exchange.state.sessions.path_changed()
    (welcomed,) = of(Welcomed, exchange.run())
    assert not welcomed.fresh
    assert made.server is not None
    assert made.server.path == ("broker", "root")


def test_leaving_is_answered_and_takes_the_subscriptions_along():
    exchange = Exchange()
    made = joined(exchange)
    made.subscribe(CHEAP)
    exchange.run()
    seq = made.leave()
    assert Answered(seq) in exchange.run()
    assert not exchange.state.core.table.subscribers


def test_a_batch_is_one_request_and_arrives_event_by_event():
    exchange = Exchange()
    made = joined(exchange)
    made.subscribe(CHEAP)
    seq, uid = made.publish_encoded(b"events{ event{ price=1} event{ price=99} event{ price=2}}")
    happened = exchange.run()
    assert Answered(seq) in happened
    assert [a.delivery.uid for a in of(Arrived, happened)] == [uid, f"{uid}.2"]


# --- lost connections -------------------------------------------------------------------


def test_a_new_connection_renews_the_subscriptions_before_anything_else():
    exchange = Exchange()
    made = joined(exchange)
    number, _ = made.subscribe(CHEAP)
    exchange.run()
    exchange.restart()
    exchange.sent.clear()
    seq, _ = made.publish(Notification({"price": 1}))
    happened = exchange.connect(made, "c-again")
    assert [p.method for p in exchange.sent] == ["HLO", "SUB", "PUB"]
    assert exchange.sent[1].id == "c-again/1"
    assert Answered(seq) in happened
    assert [a.numbers for a in of(Arrived, happened)] == [(number,)]


def test_an_unanswered_publication_is_sent_again_under_its_id_and_counted_once():
    exchange = Exchange()
    made = joined(exchange)
    made.subscribe(CHEAP)
    exchange.run()
    seq, uid = made.publish(Notification({"price": 1}))
    # The broker has it, but the connection breaks before its answer is read.
    exchange._to_broker(made, exchange._ends[made])
    exchange.cut(made)
    happened = exchange.connect(made, "c")
    assert [p.uid for p in exchange.sent if p.method == "PUB"] == [uid, uid]
    assert Answered(seq) in happened
    assert not of(Arrived, happened)
    assert exchange.state.core.accounts.duplicate == 1


def test_a_subscription_asked_while_away_is_made_at_the_welcome():
    exchange = Exchange()
    made = joined(exchange)
    exchange.cut(made)
    _, seq = made.subscribe(CHEAP)
    assert Answered(seq) in exchange.connect(made, "d")
    assert set(exchange.state.core.table.subscribers) == {"d/1"}


def test_a_subscription_ended_while_away_is_not_renewed():
    exchange = Exchange()
    made = joined(exchange)
    number, _ = made.subscribe(CHEAP)
    exchange.run()
    exchange.cut(made)
    assert made.unsubscribe(number) is None
    exchange.connect(made, "c")
    assert not exchange.state.core.table.subscribers


def test_an_unanswered_goodbye_to_a_subscription_is_answered_by_the_loss_itself():
    exchange = Exchange()
    made = joined(exchange)
    number, _ = made.subscribe(CHEAP)
    exchange.run()
    seq = made.unsubscribe(number)
    assert made.closed() == [Answered(seq)]


def test_rows_from_before_a_loss_are_not_told_twice():
    exchange = Exchange()
    made = joined(exchange)
    seq = made.ask("who")
    exchange._to_broker(made, exchange._ends[made])
    (frame, _) = exchange.state.take(exchange._ends[made], 1 << 20)
    assert made.receive(frame) == []
    exchange.cut(made)
    (answered,) = of(Answered, exchange.connect(made, "c"))
    assert answered.seq == seq
    assert len(answered.rows) == 1


def test_a_renewal_that_meets_our_own_ghost_drops_the_connection_to_try_later():
    exchange = Exchange()
    made = joined(exchange)
    made.subscribe(CHEAP)
    exchange.run()
    exchange.cut(made, silently=True)
    (ended,) = of(Ended, exchange.connect(made, "c"))
    assert (ended.error.code, ended.final) == ("name_in_use", False)


def test_giving_up_names_every_unanswered_request():
    made = client()
    first, _ = made.publish(Notification({"a": 1}))
    _, second = made.subscribe(CHEAP)
    assert made.abandon() == [first, second]
    assert made.abandon() == []


# --- refusals of the session itself ----------------------------------------------------------


def test_right_credentials_open_the_session_and_wrong_ones_end_it_for_good():
    exchange = Exchange(credentials_required=True)
    assert of(Welcomed, exchange.connect(client(token="right"), "a"))
    for bad in (client(token="wrong"), client()):
        (ended,) = of(Ended, exchange.connect(bad, "b"))
        assert (ended.error.code, ended.final) == ("auth", True)


def test_a_broker_that_is_full_may_have_room_later():
    made = client()
    made.opened("c")
    (ended,) = made.receive(b"\x00")
    assert isinstance(ended, Ended)
    assert (ended.error.code, ended.final) == ("overloaded", False)


def test_a_listener_that_is_no_broker_is_recognised_by_its_first_byte():
    made = client()
    made.opened("c")
    (ended,) = made.receive(b"SSH-2.0-x\r\n")
    assert isinstance(ended, Ended)
    assert ended.final


def test_another_connection_under_our_name_ends_this_one_for_good():
    exchange = Exchange()
    made = joined(exchange)
    told = Packet(method="ERR", code="name_in_use", reason="connected elsewhere")
    (ended,) = made.receive(encode_frame(encode(told)))
    assert isinstance(ended, Ended)
    assert ended.final


def test_an_error_about_no_request_is_told_and_the_session_goes_on():
    made = joined(Exchange())
    told = Packet(method="ERR", code="syntax", reason="what?")
    (complained,) = made.receive(encode_frame(encode(told)))
    assert isinstance(complained, Complained)
    assert made.ready


def test_bytes_that_are_no_packet_end_the_connection_but_not_the_client():
    made = joined(Exchange())
    (ended,) = made.receive(encode_frame(b"senp{version=1 method="))
    assert isinstance(ended, Ended)
    assert not ended.final


def test_what_cannot_be_encoded_is_refused_here_and_leaves_no_trace():
    made = client()
    with pytest.raises(UnsupportedError):
        made.publish(Notification({"a": float("nan")}))
    with pytest.raises(WireError, match="does not fit"):
        made.publish(Notification({"a": "x" * 70_000}))
    assert made.abandon() == []
