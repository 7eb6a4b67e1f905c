"""The temporal operators by hand: stories small enough to be checked by reading.

Each story is told twice, to the definition and to the temporal memory.
"""

from __future__ import annotations

import pytest

from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import World
from kbn.model import Bag, Notification
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME
from kbn.temporal import Limits, TemporalEngine


class Naive:
    """The definition, fed publication by publication."""

    def __init__(self, asked, max_open):
        self.asked = asked
        self.events = TemporalEngine()
        self.history = NaiveHistory(max_open=max_open)

    def tell(self, notification, at):
        admitted = self.events.admit(notification, f"#{self.events.seq}", at, at)
        entry, _ = self.events.apply(self.events.seq + 1, admitted)
        found = matches(self.asked, notification, World(history=self.history.about(entry)))
        self.history.append(entry)
        return found


class Remembered:
    """The temporal memory, used as a broker does."""

    def __init__(self, asked, max_open):
        self.asked = asked
        self.engine = TemporalEngine(limits=Limits(max_open=max_open))
        self.engine.acquire(asked)

    def tell(self, notification, at):
        admitted = self.engine.admit(notification, f"#{self.engine.seq}", at, at)
        found = matches(self.asked, notification, World(history=self.engine.history(admitted)))
        self.engine.apply(self.engine.seq + 1, admitted)
        return found


@pytest.fixture(params=[Naive, Remembered])
def story(request):
    def tell(asked, *published, max_open=None):
        """Which of the publications match, by their place."""
        told = request.param(parse_subscription(asked), max_open)
        answers = [
            told.tell(Notification(n), n.get(END_TIME, n.get(START_TIME, 0))) for n in published
        ]
        return [place for place, found in enumerate(answers) if found]

    return tell


def started(event, start, **attributes):
    return {PUB_ID: event, PUB_TYPE: Bag(["START"]), START_TIME: start, **attributes}


def ended(event, end, **attributes):
    return {PUB_ID: event, PUB_TYPE: Bag(["END"]), END_TIME: end, **attributes}


def instant(event, at, **attributes):
    seen = Bag(["START", "END", "INSTANT"])
    return {PUB_ID: event, PUB_TYPE: seen, START_TIME: at, END_TIME: at, **attributes}


def test_after_is_strict_and_its_limit_included(story):
    y = instant("y", 100)
    times = (99, 100, 101, 102, 103)
    told = [instant(f"x{at}", at, x=1) for at in times]
    # Only y has no x, so the others find nothing but y.
    assert story("end after(2ms) { KBN_END_TIME = 100 }", y, *told) == [3, 4]


def test_two_events_of_one_millisecond_never_chain(story):
    assert story("end after(2s) {}", instant("a", 5), instant("b", 5), instant("c", 6)) == [2]


def test_during_includes_both_borders_and_open_events(story):
    y = [started("y", 10, k=1), ended("y", 20, k=1)]
    told = [instant(f"x{at}", at) for at in (9, 10, 20, 21)]
    assert story("start during { k = 1 }", *y, *told) == [3, 4]
    assert story("start during { k = 1 }", y[0], *told) == [2, 3, 4]


def test_an_open_event_counts_no_longer_than_max_open(story):
    told = [started("y", 10, k=1), instant("a", 15), instant("b", 16)]
    assert story("start during { k = 1 }", *told, max_open=5) == [1]
    assert story("relation(finishes) { k = 1 }", *told, ended("y", 15, k=1), max_open=5) == []
    inside = [started("y", 10, k=1), started("x", 12), ended("x", 15), started("z", 12)]
    assert story("relation(during) { k = 1 }", *inside, ended("z", 16), max_open=5) == [2]


def test_three_warnings_need_three_different_events_in_order(story):
    asked = "level = 4 and end after(2s) { level = 4 and end after(2s) { level = 4 } }"
    told = [instant(n, at, level=4) for n, at in (("a", 0), ("b", 1500), ("c", 3000), ("d", 9000))]
    assert story(asked, *told) == [2]
    assert story(asked, told[0], told[1], instant("o", 2000, level=3), told[2]) == [3]


def test_a_nested_operator_looks_at_the_time_of_its_own_event(story):
    asked = "end after(10s) { k = 2 and end after(1s) { k = 1 } }"
    near = [instant("a", 0, k=1), instant("b", 900, k=2), instant("x", 9000)]
    assert story(asked, *near) == [2]
    far = [instant("a", 0, k=1), instant("b", 1100, k=2), instant("x", 9000)]
    assert story(asked, *far) == []


def test_a_decision_is_made_when_its_publication_arrives(story):
    # b was decided before a was known: that a is back-dated changes nothing.
    asked = "end after(10s) { k = 2 and end after(1s) { k = 1 } }"
    assert story(asked, instant("b", 900, k=2), instant("a", 0, k=1), instant("x", 9000)) == []


def test_an_end_may_undo_the_match_and_a_bare_one_keeps_it(story):
    asked = 'start during { sev = "warning" }'
    start = started("y", 10, sev="warning")
    probes = [instant("a", 12), instant("b", 15)]
    assert story(asked, start, probes[0], ended("y", 20, sev="clear"), probes[1]) == [1]
    assert story(asked, start, probes[0], ended("y", 20), probes[1]) == [1, 3]


def test_an_event_known_by_its_end_alone_has_no_start(story):
    end = ended("y", 20, k=1)
    probes = [instant("a", 20), instant("b", 21)]
    assert story("start during { k = 1 }", end, *probes) == []
    assert story("relation(after) { k = 1 }", end, *probes) == []
    assert story("end after(5ms) { k = 1 }", end, *probes) == [2]
    assert story("start during { k = 1 }", end, started("y", 10), *probes) == [2]


def test_the_own_event_is_never_found(story):
    assert story("end during {}", started("y", 10), ended("y", 20)) == []
    assert story("a filter(=) {}", started("y", 10, a=1), ended("y", 20, a=1)) == []


def test_filter_compares_with_the_most_recent_by_start(story):
    prices = [instant(f"e{at}", at, p=p, s=1) for at, p in ((30, 9), (10, 5), (20, 7))]
    for limit, found in ((1, []), (2, [3]), (3, [3])):
        asked = f"p filter(=, last {limit}) {{ s = 1 }}"
        assert story(asked, *prices, instant("x", 15, p=7)) == found


def test_filter_counts_events_later_than_the_one_matched(story):
    late = [instant("a", 50, p=1), instant("x", 10, p=2)]
    assert story("p filter(>) {}", *late) == [1]


def test_an_event_without_the_attribute_keeps_its_place_in_the_window(story):
    told = [instant("a", 1, p=5), instant("b", 2), instant("x", 3, p=5)]
    assert story("p filter(=, last 1) {}", *told) == []
    assert story("p filter(=, last 2) {}", *told) == [2]


def test_the_own_event_is_left_out_of_the_window_before_counting(story):
    told = [instant("a", 1, p=5), started("x", 2, p=4), ended("x", 3, p=5)]
    assert story("p filter(=, last 1) {}", *told) == [2]


def test_an_event_known_by_its_end_alone_is_ordered_by_it(story):
    told = [ended("a", 10, p=1), instant("b", 5, p=2)]
    assert story("p filter(=, last 1) {}", *told, {"p": 1}, {"p": 2}) == [2]


def test_events_of_one_start_are_ordered_by_their_first_publication(story):
    told = [started("a", 5, p=1), instant("b", 5, p=2), ended("a", 9, p=1)]
    assert story("p filter(=, last 1) { KBN_PUB_TYPE any }", *told, {"p": 1}, {"p": 2}) == [4]


def test_filter_admits_bag_operators_and_the_merged_type(story):
    told = [started("a", 1, t=Bag([1, 2])), ended("a", 2)]
    assert story("t filter(superbag) {}", *told, {"t": Bag([2, 1, 3])}, {"t": Bag([1, 3])}) == [2]
    asked = 'KBN_PUB_TYPE filter(subbag) { KBN_PUB_TYPE bageq ["START" "END"] }'
    assert story(asked, *told, started("b", 5)) == [2]


def test_a_plain_publication_satisfies_only_filter_but_is_found_by_all(story):
    plain = {"p": 1}
    for asked in ("start during {}", "end after(5s) {}", "relation(equals) {}"):
        assert story(asked, instant("a", 0, p=1), plain) == []
    assert story("p filter(=) {}", instant("a", 0, p=1), plain) == [1]
    assert story("start during { p = 1 }", plain, instant("a", 0)) == [1]
    assert story("end after(5ms) { p = 1 }", plain, instant("a", 5)) == [1]
    assert story("relation(after) { p = 1 }", plain, instant("a", 5)) == [1]
    # Its own temporal constraints are false, also inside braces.
    assert story("end after(5s) { p = 1 and end any }", plain, instant("a", 5)) == []


@pytest.mark.parametrize(
    ("relation", "x"),
    [
        ("before", (0, 9)),
        ("after", (21, 30)),
        ("meets", (0, 10)),
        ("met_by", (20, 30)),
        ("overlaps", (5, 15)),
        ("overlapped_by", (15, 25)),
        ("during", (11, 19)),
        ("contains", (9, 21)),
        ("starts", (10, 15)),
        ("started_by", (10, 25)),
        ("finishes", (15, 20)),
        ("finished_by", (5, 20)),
        ("equals", (10, 20)),
    ],
)
def test_a_relation_is_asked_at_the_end_of_the_merged_event(story, relation, x):
    told = [started("y", 10, k=1), ended("y", 20), started("x", x[0]), ended("x", x[1])]
    asked = f"relation({relation}) {{ k = 1 }}"
    assert story(asked, *told) == [3]
    assert story(asked, *told[:2], told[3]) == []  # without its start nothing is known of X


def test_an_ongoing_event_ends_at_infinity_for_relations(story):
    told = [started("y", 10, k=1), started("x", 5), ended("x", 15)]
    assert story("relation(overlaps) { k = 1 }", *told) == [2]
    assert story("relation(finished_by) { k = 1 }", *told) == []


def test_alternatives_inside_braces_share_one_window(story):
    told = [instant("a", 1, k=1, p=5), instant("b", 2, k=2, p=6), instant("c", 3, k=3, p=5)]
    asked = "p filter(=, last 1) { k = 1 or k = 2 }"
    assert story(asked, *told, {"p": 6}, {"p": 5}) == [3]


def test_numbers_of_publications_must_rise():
    engine = TemporalEngine()
    entry, _ = engine.apply(5, engine.admit(Notification({"a": 1}), "#", 0, 0))
    with pytest.raises(ValueError, match="5"):
        NaiveHistory([entry, entry])
