from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbn.covering.region import Region, common_prefix, successor
from kbn.model.operators import Content

_LETTERS = st.sampled_from(["a", "b", "\x00", "\ud7ff", "\ue000", "\U0010fffe", "\U0010ffff"])
_WORDS = st.text(_LETTERS, max_size=4)


@given(_WORDS, _WORDS)
def test_a_string_starts_with_a_prefix_exactly_between_it_and_its_successor(prefix, word):
    end = successor(prefix)
    assert word.startswith(prefix) == (prefix <= word and (end is None or word < end))


@given(st.text(max_size=6))
def test_a_successor_can_be_encoded(prefix):
    end = successor(prefix)
    if end is not None:
        assert end.encode("utf-8").decode("utf-8") > prefix


@given(_WORDS, _WORDS, _WORDS)
def test_all_strings_of_an_interval_share_its_common_prefix(low, high, word):
    region = Region([(Content.GE, low), (Content.LE, high)])
    if low <= word <= high:
        assert not region.empty
        assert word.startswith(common_prefix(region))


def test_the_common_prefix_is_the_longest():
    assert common_prefix(Region([(Content.GT, "ab1"), (Content.LT, "ab2")])) == "ab1"
    assert common_prefix(Region([(Content.GT, "ab1"), (Content.LT, "ab3")])) == "ab"


def test_an_end_that_another_constraint_excludes_is_open():
    region = Region([(Content.LE, 5), (Content.NE, 5.0), (Content.GE, 1)])
    assert (region.low, region.low_open, region.high, region.high_open) == (1, False, 5, True)
