"""The subscription table: Siena's rules for SUB and UNS, by units."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbn.covering import covers
from kbn.language import parse_event, parse_subscription
from kbn.matching.naive import matches
from kbn.routing.table import PLAIN, Options, Subscriber, SubscriptionTable
from tests.strategies import content_subscriptions, notifications

HISTORY = Options(history=True)


class Rig:
    """A table with text in front of it."""

    def __init__(self) -> None:
        self.table: SubscriptionTable[None] = SubscriptionTable()

    def sub(self, name: str, text: str, options: Options = PLAIN) -> tuple[list, list]:
        subscriber = self.table.subscribers.get(name) or Subscriber(name, None)
        added, removed = self.table.subscribe(subscriber, parse_subscription(text), options)
        return [unit.number for unit in added], [unit.number for unit in removed]

    def uns(self, name: str, text: str | None = None) -> list[int]:
        asked = None if text is None else parse_subscription(text)
        return [unit.number for unit in self.table.unsubscribe(name, asked).removed]

    def told(self, event: str) -> list[str]:
        return sorted(u.subscriber.id for u in self.table.match(parse_event(event)))


def test_a_unit_that_is_covered_changes_nothing_and_one_that_covers_replaces():
    rig = Rig()
    assert rig.sub("s", "x < 5") == ([1], [])
    assert rig.sub("s", "x < 3") == ([], [])
    assert rig.sub("s", 'y = "a"') == ([2], [])
    assert rig.sub("s", "x < 9 or z any") == ([3], [1])
    assert rig.told("x=7") == ["s"]
    assert rig.sub("t", "x < 3") == ([4], [])
    assert rig.told("x=1") == ["s", "t"]


def test_units_with_other_delivery_options_neither_cover_nor_replace_each_other():
    rig = Rig()
    rig.sub("s", "x < 5")
    assert rig.sub("s", "x < 3", HISTORY) == ([2], [])
    assert rig.sub("s", "x < 9", HISTORY) == ([3], [2])
    assert rig.uns("s", "x < 9") == [1, 3]
    assert rig.table.subscribers == {}


def test_uns_removes_units_wholly_covered_and_never_single_alternatives():
    rig = Rig()
    rig.sub("s", "x < 5 or y = 1")
    rig.sub("s", "z any")
    assert rig.uns("s", "x < 9") == []
    assert rig.uns("s", "x < 9 or y any") == [1]
    assert rig.uns("nobody", "x any") == []
    assert rig.uns("s") == [2]
    assert len(rig.table) == 0


def test_the_table_counts_subscribers_with_more_than_one_unit():
    rig = Rig()
    rig.sub("s", "x < 5")
    assert rig.table.crowded == 0
    rig.sub("s", "y any")
    rig.sub("s", "z any")
    assert rig.table.crowded == 1
    rig.sub("s", "x any or y any or z any")
    assert (rig.table.crowded, len(rig.table)) == (0, 1)


def test_units_are_paged_in_the_order_of_their_arrival():
    rig = Rig()
    for n in range(6):
        rig.sub(f"s{n}", "x any")
    rig.uns("s2")
    rig.sub("s2", "x any")
    assert [unit.number for unit in rig.table.page(1, 3)] == [2, 4, 5]
    assert [unit.number for unit in rig.table.page(5, 9)] == [6, 7]


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), content_subscriptions(), st.booleans()), max_size=30
    ),
    notifications(),
)
def test_any_dialogue_leaves_what_the_rules_leave(steps, event):
    table: SubscriptionTable[None] = SubscriptionTable()
    expected: dict[str, list] = {"a": [], "b": []}
    for name, asked, leaving in steps:
        held = expected[name]
        if leaving:
            table.unsubscribe(name, asked)
            held[:] = [own for own in held if not covers(asked, own)]
        else:
            table.subscribe(table.subscribers.get(name) or Subscriber(name, None), asked)
            if not any(covers(own, asked) for own in held):
                held[:] = [*(own for own in held if not covers(asked, own)), asked]
    for name, held in expected.items():
        units = table.subscribers[name].units if name in table.subscribers else ()
        assert [unit.asked for unit in units] == held
    matched = {(unit.subscriber.id, unit.asked) for unit in table.match(event)}
    assert matched == {(n, s) for n, held in expected.items() for s in held if matches(s, event)}
