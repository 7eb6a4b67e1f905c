"""The frames of a ``ka`` connection."""

from __future__ import annotations

import pytest

from senp import ACCEPTED, MAX_PACKET, REFUSED, FrameReader, WireError, encode_frame


def test_the_length_comes_first_most_significant_byte_first():
    assert encode_frame(b"abc") == b"\x00\x03abc"
    assert encode_frame(b"x" * 258)[:2] == b"\x01\x02"


def test_the_greeting_is_one_byte():
    assert (ACCEPTED, REFUSED) == (b"\x01", b"\x00")


def test_the_largest_packet_fits_and_one_byte_more_does_not():
    frame = encode_frame(b"x" * MAX_PACKET)
    assert frame[:2] == b"\xff\xff"
    assert FrameReader().feed(frame) == [b"x" * MAX_PACKET]
    with pytest.raises(WireError, match="at byte 65535") as caught:
        encode_frame(b"x" * (MAX_PACKET + 1))
    assert caught.value.code == "too_large"


def test_an_empty_frame_is_an_empty_packet():
    assert FrameReader().feed(b"\x00\x00\x00\x01a") == [b"", b"a"]


def test_every_split_in_two_of_a_stream_gives_the_same_packets():
    sent = [b"", b"a", b"bc" * 200, b"", b"d"]
    stream = b"".join(map(encode_frame, sent))
    for cut in range(len(stream) + 1):
        reader = FrameReader()
        assert reader.feed(stream[:cut]) + reader.feed(stream[cut:]) == sent
        assert reader.pending == 0


def test_a_stream_cut_off_inside_a_frame_leaves_bytes_pending():
    reader = FrameReader()
    assert reader.feed(b"\x00") == []
    assert reader.pending == 1
    assert reader.feed(b"\x03ab") == []
    assert reader.pending == 4
    assert reader.feed(b"c") == [b"abc"]
    assert reader.pending == 0


def test_any_buffer_can_be_fed_and_the_packets_do_not_share_it():
    source = bytearray(b"\x00\x01a\x00\x02b")
    reader = FrameReader()
    first = reader.feed(source)
    source[:] = bytes(len(source))
    assert first == [b"a"]
    assert reader.feed(memoryview(b"c")) == [b"bc"]
