"""A fingerprint is as good as the content it is of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbn.model import Bag, Notification
from kbn.model.settled import fingerprint
from kbn.temporal.events import same_content

SCALARS = st.sampled_from([None, True, False, 0, 1, 0.0, -0.0, 1.0, float("nan"), "", "1", "x"])
VALUES = SCALARS | st.lists(SCALARS, max_size=3).map(Bag)
CONTENTS = st.dictionaries(st.sampled_from(["a", "b", "ab"]), VALUES).map(Notification)


@given(CONTENTS, CONTENTS)
def test_fingerprints_are_equal_exactly_for_the_same_content(one, other) -> None:
    assert (fingerprint(one) == fingerprint(other)) == same_content(one, other)


@given(CONTENTS, st.randoms(use_true_random=False))
def test_a_fingerprint_ignores_the_order_of_names_and_of_members(said, random) -> None:
    items = list(said.attributes.items())
    random.shuffle(items)

    def mixed(value):
        if not isinstance(value, Bag):
            return value
        return Bag(random.sample(value.members, len(value.members)))

    again = Notification({name: mixed(value) for name, value in items})
    assert fingerprint(again) == fingerprint(said)


def test_a_fingerprint_is_stored_and_so_never_changes() -> None:
    said = Notification({"b": Bag([2, "x", None]), "a": -0.0, "é": True})
    assert fingerprint(said) == -1941106970742871520
