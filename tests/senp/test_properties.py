"""Laws of the codec over random packets, and over random damage to them."""

from __future__ import annotations

import pickle
import random

from hypothesis import given
from hypothesis import strategies as st

import senp
from fuzz.senp_packets import SEEDS, examine, mutate
from kbn.model import Filter, Notification, Subscription
from senp import DEFAULT_LIMITS, Packet, Pattern
from senp._decode import decode_plain
from tests.strategies import (
    any_subscriptions,
    content_filters,
    notifications,
    wide_names,
    wide_values,
)

ids = st.text(max_size=20)
longs = st.integers(-(2**63), 2**63 - 1)
events = notifications(wide_names, wide_values)
#: Events as most are: plain names and values, which the short cut reads itself.
plain_events = notifications(st.sampled_from(["a", "b.c", "KBN_PUB_TYPE", "_x"]), wide_values)
payloads = st.one_of(
    st.none(),
    events,
    plain_events,
    st.lists(events, max_size=3).map(tuple),
    any_subscriptions(),
    st.builds(Pattern, st.lists(content_filters(), max_size=3).map(tuple)),
)


def optional(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(st.none(), strategy)


packets = st.builds(
    Packet,
    version=st.just(1),
    method=st.one_of(st.sampled_from(sorted(senp.METHODS)), st.text(max_size=5)),
    ttl=st.integers(-3, 127),
    id=optional(ids),
    to=optional(st.one_of(ids, st.lists(ids, min_size=2, max_size=4).map(tuple))),
    handler=optional(st.text(max_size=30)),
    seq=optional(st.integers(1, 2**63 - 1)),
    code=optional(ids),
    reason=optional(st.text(max_size=30)),
    pos=optional(st.integers(0, 2**63 - 1)),
    uid=optional(ids),
    at=optional(longs),
    history=st.booleans(),
    since=optional(longs),
    durable=st.booleans(),
    token=optional(ids),
    user=optional(ids),
    password=optional(ids),
    payload=payloads,
)
traffic = st.builds(
    lambda ttl, id, to, seq, event: Packet(
        method="PUB", ttl=ttl, id=id, to=to, seq=seq, payload=event
    ),
    st.integers(1, 127),
    optional(ids),
    optional(st.one_of(ids, st.lists(ids, min_size=2, max_size=4).map(tuple))),
    optional(st.integers(1, 2**63 - 1)),
    plain_events,
)


@given(packets)
def test_what_is_encoded_decodes_to_the_same_packet(packet: Packet):
    assert senp.decode(senp.encode(packet)) == packet


@given(packets)
def test_a_packet_is_written_in_printable_ascii(packet: Packet):
    assert all(0x20 <= byte < 0x7F for byte in senp.encode(packet))


@given(packets)
def test_header_and_payload_joined_are_the_packet(packet: Packet):
    header, payload = senp.encode_header(packet), senp.encode_payload(packet.payload)
    assert senp.join(header, payload) == senp.encode(packet)


@given(traffic)
def test_the_short_cut_agrees_with_the_plain_decoder(packet: Packet):
    data = senp.encode(packet)
    assert senp.decode(data) == decode_plain(data.decode("latin-1"), DEFAULT_LIMITS) == packet


@given(traffic)
def test_a_canonical_event_without_escapes_is_offered_for_reuse(packet: Packet):
    data = senp.encode(packet)
    body = senp.decode_with_body(data)[1]
    if b"\\" not in data and (packet.seq or 0) < 10**18:
        assert body == senp.encode_payload(packet.payload)
    else:
        assert body in (None, senp.encode_payload(packet.payload))


@given(events)
def test_an_event_alone_survives_the_way_there_and_back(event: Notification):
    assert senp.decode_event(senp.encode_event(event)) == event
    assert list(senp.decode_event(senp.encode_event(event))) == list(event)


@given(any_subscriptions())
def test_a_subscription_alone_survives_the_way_there_and_back(wanted: Subscription):
    assert senp.decode_subscription(senp.encode_subscription(wanted)) == wanted


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back_as_itself_and_is_laid_out_as_in_java(value: float):
    text = senp.encode_value(value).decode()
    assert float(text).hex() == value.hex()
    assert "+" not in text
    assert "e" not in text
    plain = value == 0 or 1e-3 <= abs(value) < 1e7
    assert ("E" not in text) == plain
    mantissa = text.partition("E")[0]
    whole, point, fraction = mantissa.lstrip("-").partition(".")
    assert point
    assert fraction
    assert plain or (len(whole) == 1 and whole != "0")


@given(st.randoms(use_true_random=False), st.sampled_from(SEEDS))
def test_a_damaged_packet_means_something_or_is_refused_as_documented(
    rng: random.Random, seed: bytes
):
    examine(mutate(rng, seed))


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_as_documented(data: bytes):
    examine(data)


@given(st.binary(max_size=60))
def test_random_bytes_inside_an_event_keep_both_decoders_together(data: bytes):
    examine(b'senp{version=1 method="PUB" ttl=30 id="p" seq=7} event{ a=' + data + b"}")


@given(packets)
def test_packets_can_be_pickled(packet: Packet):
    assert pickle.loads(pickle.dumps(packet)) == packet


@given(st.lists(packets.map(senp.encode), max_size=4), st.data())
def test_every_cut_of_a_stream_gives_the_same_packets(sent: list[bytes], data: st.DataObject):
    stream = b"".join(senp.encode_frame(packet) for packet in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reader = senp.FrameReader()
    received = [
        packet
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for packet in reader.feed(stream[start:end])
    ]
    assert received == sent
    assert reader.pending == 0


def test_filters_of_a_pattern_stay_filters():
    pattern = Pattern((Filter(), Filter()))
    assert senp.decode(senp.encode(Packet(method="SUB", payload=pattern))).payload == pattern
