"""What is refused because it is too much, and that the last that is not passes."""

from __future__ import annotations

import pytest

import senp
from kbn.errors import LimitError, UnsupportedError, ValueRangeError
from kbn.model import Bag, Notification
from kbn.model.filters import MAX_ALTERNATIVES, MAX_DEPTH
from senp import Limits, Packet, WireError

SUB = b'senp{version=1 method="SUB" ttl=30 seq=4} '
NEST = b"filter{ KBN_END_TIME $= "


def nested(depth: int) -> bytes:
    return SUB + NEST * (depth - 1) + b"filter{ a =1}" + b"}" * (depth - 1)


def refusal(data: bytes, limits: Limits = senp.DEFAULT_LIMITS) -> WireError:
    with pytest.raises(WireError) as caught:
        senp.decode(data, limits)
    return caught.value


def test_sixteen_filters_may_stand_inside_each_other_and_seventeen_may_not():
    assert MAX_DEPTH == 16
    assert senp.encode(senp.decode(nested(16))) == nested(16)
    error = refusal(nested(17))
    assert (error.code, error.seq) == ("limit", 4)
    assert error.position == len(SUB) + 16 * len(NEST)


def test_depth_counts_open_filters_and_not_their_alternatives():
    level = b"filter{ KBN_END_TIME $= filters{ "
    deep = SUB + level * 15 + b"filter{}" + b"}}" * 15
    assert senp.decode(deep).method == "SUB"
    deeper = SUB + level * 16 + b"filter{}" + b"}}" * 16
    assert refusal(deeper).code == "limit"


def test_filters_beside_each_other_do_not_add_up():
    flat = SUB + b"filter{" + b" KBN_END_TIME $= filter{}" * 40 + b"}"
    assert senp.encode(senp.decode(flat)) == flat


@pytest.mark.parametrize("opening", [NEST, b"filter{ a ^<5 ", b"filters{ ", b"pattern{ ", b"["])
def test_thousands_of_openings_end_in_a_refusal_and_not_in_a_full_stack(opening: bytes):
    data = SUB + opening * (60_000 // len(opening))
    assert refusal(data).code in ("limit", "syntax")


def test_a_lower_depth_can_be_configured_and_a_greater_one_cannot():
    assert senp.decode(nested(2), Limits(max_depth=2)).method == "SUB"
    assert refusal(nested(3), Limits(max_depth=2)).code == "limit"
    with pytest.raises(ValueError, match="max_depth"):
        Limits(max_depth=17)


def test_a_filter_has_as_many_constraints_as_configured():
    four = SUB + b"filter{ a =1 b =2 c =3 d =4}"
    assert senp.decode(four, Limits(max_constraints=4)).method == "SUB"
    error = refusal(four, Limits(max_constraints=3))
    assert (error.code, error.position) == ("limit", four.rindex(b"d"))


def test_alternatives_are_counted_before_equal_ones_are_merged():
    def data(count: int) -> bytes:
        return SUB + b"filters{" + b" filter{ a =1}" * count + b"}"

    assert senp.decode(data(MAX_ALTERNATIVES)).method == "SUB"
    error = refusal(data(MAX_ALTERNATIVES + 1))
    assert error.code == "limit"
    assert error.position == len(SUB) + len(b"filters{ ") + MAX_ALTERNATIVES * 14


@pytest.mark.parametrize("field", ["id", "to"])
def test_an_id_has_at_most_255_bytes(field: str):
    def data(name: str) -> bytes:
        return f'senp{{version=1 method="PUB" ttl=30 {field}="{name}"}}'.encode()

    assert getattr(senp.decode(data("x" * 255)), field) == "x" * 255
    assert getattr(senp.decode(data("é" * 127)), field) == "é" * 127
    assert refusal(data("x" * 256)).code == "limit"
    assert refusal(data("é" * 128)).code == "limit"
    assert refusal(data("abc"), Limits(max_id=2)).code == "limit"
    with pytest.raises(LimitError):
        senp.encode(Packet(**{field: "x" * 256}))


def test_a_method_is_no_id_and_may_be_of_any_length():
    packet = Packet(method="X" * 300)
    assert senp.decode(senp.encode(packet)) == packet


def test_one_of_many_receivers_is_held_to_the_same_length():
    long = b'senp{version=1 method="PUB" ttl=30 to=["a" "' + b"x" * 256 + b'"]}'
    error = refusal(long)
    assert (error.code, error.position) == ("limit", long.index(b'"x'))


def test_a_packet_larger_than_a_frame_is_too_large():
    head = b'senp{version=1 method="PUB" ttl=30} event{ a="'
    fits = head + b"x" * (senp.MAX_PACKET - len(head) - 2) + b'"}'
    assert len(fits) == senp.MAX_PACKET
    assert senp.encode(senp.decode(fits)) == fits
    error = refusal(fits + b" ")
    assert (error.code, error.position) == ("too_large", senp.MAX_PACKET)
    assert refusal(fits, Limits(max_packet=100)).position == 100


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_finite_number_cannot_be_written(value: float):
    for held in (value, Bag([1, value])):
        with pytest.raises(UnsupportedError):
            senp.encode(Packet(payload=Notification({"a": held})))


def test_what_is_no_value_cannot_be_written():
    with pytest.raises(UnsupportedError, match="list"):
        senp.encode_value([1])  # type: ignore[arg-type]
    with pytest.raises(ValueRangeError):
        senp.encode_value("\ud800")
    with pytest.raises(UnsupportedError, match="receivers"):
        senp.encode(Packet(to=()))


def test_a_list_of_one_receiver_is_written_as_one():
    assert senp.encode(Packet(to=("a",))).endswith(b' to="a"}')
    assert Packet(to="a").receivers == Packet(to=("a",)).receivers == ("a",)
    assert Packet().receivers == ()


def test_secrets_do_not_show_in_the_text_of_a_packet():
    shown = repr(Packet(method="HLO", token="s3cret", user="ann", password="hunter2"))
    assert "s3cret" not in shown
    assert "hunter2" not in shown
    assert "user='ann'" in shown


@pytest.mark.parametrize("data", [b"filter{ a =1}", b"event", b"senp{}", b"", b'"event"{}', b"5"])
def test_only_an_event_is_read_as_an_event(data: bytes):
    with pytest.raises(WireError):
        senp.decode_event(data)


@pytest.mark.parametrize("data", [b"event{ a=1}", b"pattern{}", b"", b'"filter"{}', b"filter"])
def test_only_filters_are_read_as_a_subscription(data: bytes):
    with pytest.raises(WireError):
        senp.decode_subscription(data)
