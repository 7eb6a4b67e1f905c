"""Every case of the vector files, forwards, backwards and byte by byte."""

from __future__ import annotations

from collections import Counter

import pytest

import senp
from senp import DEFAULT_LIMITS, FrameReader, WireError
from senp._decode import decode_plain
from tests.senp.cases import Case, load

CASES = load()
MEANT = [case for case in CASES if case.packet is not None]
REFUSED = [case for case in CASES if case.packet is None]

meant = pytest.mark.parametrize("case", MEANT, ids=lambda case: case.id)
refused = pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)


def test_the_files_hold_at_least_three_hundred_cases_with_names_of_their_own():
    repeated = [name for name, count in Counter(case.id for case in CASES).items() if count > 1]
    assert repeated == []
    assert len(CASES) >= 300
    assert len(REFUSED) >= 100


@meant
def test_a_packet_is_read_as_the_case_says(case: Case):
    assert senp.decode(case.data) == case.packet
    assert decode_plain(case.data.decode("latin-1"), DEFAULT_LIMITS) == case.packet


@meant
def test_a_meaning_is_written_in_canonical_form(case: Case):
    assert case.packet is not None
    assert senp.encode(case.packet) == case.written
    assert senp.encode(senp.decode(case.data)) == case.written


@meant
def test_canonical_text_means_the_same(case: Case):
    assert senp.decode(case.written) == case.packet


@meant
def test_a_body_offered_for_reuse_is_the_canonical_one(case: Case):
    packet, body = senp.decode_with_body(case.data)
    assert packet == case.packet
    assert body is None or body == senp.encode_payload(packet.payload)


@refused
def test_a_malformed_packet_is_refused_with_code_and_position(case: Case):
    for read in (senp.decode, lambda data: decode_plain(data.decode("latin-1"), DEFAULT_LIMITS)):
        with pytest.raises(WireError) as caught:
            read(case.data)
        error = caught.value
        assert (error.code, error.position, error.seq) == (case.error, case.position, case.seq)
        assert str(error).endswith(f" at byte {case.position}")


def test_all_cases_come_through_the_framing_byte_by_byte():
    stream = b"".join(senp.encode_frame(case.data) for case in CASES)
    reader = FrameReader()
    frames = [frame for n in range(len(stream)) for frame in reader.feed(stream[n : n + 1])]
    assert frames == [case.data for case in CASES]
    assert reader.pending == 0
