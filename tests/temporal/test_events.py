"""Which part of which event a publication tells, what is refused, and how parts merge."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbn.errors import RefusedError
from kbn.model import Bag, Notification, Part
from kbn.model.events import merge_all
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME, TIME_MAX, TIME_MIN
from kbn.temporal import Admitted, Duplicate, Telling, TemporalEngine, classify
from tests.temporal.worlds import END, INSTANT, START, contents, publication


@pytest.mark.parametrize(
    ("notification", "told"),
    [
        (publication("PLAIN", a=1), Telling("#1", Part.PLAIN, 7, 7)),
        (publication("START", "e", 3), Telling("e", Part.START, 3, None)),
        (publication("END", "e", None, 9), Telling("e", Part.END, None, 9)),
        (publication("END", "e", 3, 9), Telling("e", Part.END, 3, 9)),
        (publication("END", "e", 9, 9), Telling("e", Part.END, 9, 9)),
        (publication("INSTANT", "e", 5, 5), Telling("e", Part.INSTANT, 5, 5)),
        (
            publication("INSTANT", "e", 3, 3).merged({PUB_TYPE: Bag(["END", "INSTANT", "START"])}),
            Telling("e", Part.INSTANT, 3, 3),
        ),
        (publication("START", "e", TIME_MIN), Telling("e", Part.START, TIME_MIN, None)),
        (publication("END", "e", None, TIME_MAX), Telling("e", Part.END, None, TIME_MAX)),
    ],
)
def test_a_publication_tells_one_part_of_one_event(notification, told):
    assert classify(notification, "#1", 7) == told


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({PUB_ID: "e"}, "temporal_missing"),
        ({START_TIME: 3}, "temporal_missing"),
        ({END_TIME: 3, PUB_ID: "e"}, "temporal_missing"),
        ({PUB_TYPE: START, START_TIME: 3}, "temporal_missing"),
        ({PUB_TYPE: START, PUB_ID: "e"}, "temporal_missing"),
        ({PUB_TYPE: END, PUB_ID: "e"}, "temporal_missing"),
        ({PUB_TYPE: END, PUB_ID: "e", START_TIME: 3}, "temporal_missing"),
        ({PUB_TYPE: INSTANT, PUB_ID: "e", START_TIME: 3}, "temporal_missing"),
        ({PUB_TYPE: INSTANT, PUB_ID: "e", END_TIME: 3}, "temporal_missing"),
        ({PUB_TYPE: "START", PUB_ID: "e", START_TIME: 3}, "syntax"),
        ({PUB_TYPE: Bag(["START", "END"]), PUB_ID: "e", START_TIME: 3, END_TIME: 3}, "syntax"),
        ({PUB_TYPE: Bag(["START", "START"]), PUB_ID: "e", START_TIME: 3}, "syntax"),
        ({PUB_TYPE: Bag(["START", 1]), PUB_ID: "e", START_TIME: 3}, "syntax"),
        ({PUB_TYPE: Bag([]), PUB_ID: "e", START_TIME: 3}, "syntax"),
        ({PUB_TYPE: START, PUB_ID: "", START_TIME: 3}, "syntax"),
        ({PUB_TYPE: START, PUB_ID: 5, START_TIME: 3}, "syntax"),
        ({PUB_TYPE: START, PUB_ID: None, START_TIME: 3}, "syntax"),
        ({PUB_TYPE: START, PUB_ID: "e", START_TIME: 3.0}, "syntax"),
        ({PUB_TYPE: START, PUB_ID: "e", START_TIME: True}, "syntax"),
        ({PUB_TYPE: END, PUB_ID: "e", END_TIME: "3"}, "syntax"),
        ({PUB_TYPE: END, PUB_ID: "e", END_TIME: None}, "syntax"),
        ({PUB_TYPE: START, PUB_ID: "e", START_TIME: TIME_MIN - 1}, "time_range"),
        ({PUB_TYPE: END, PUB_ID: "e", END_TIME: TIME_MAX + 1}, "time_range"),
        ({PUB_TYPE: START, PUB_ID: "e", START_TIME: 3, END_TIME: 5}, "temporal_conflict"),
        ({PUB_TYPE: INSTANT, PUB_ID: "e", START_TIME: 3, END_TIME: 5}, "temporal_conflict"),
        ({PUB_TYPE: END, PUB_ID: "e", START_TIME: 5, END_TIME: 3}, "temporal_conflict"),
    ],
)
def test_what_is_half_temporal_is_refused_with_a_code(attributes, code):
    with pytest.raises(RefusedError) as refused:
        classify(Notification(attributes), "#1", 7)
    assert refused.value.code == code


def test_a_plain_publication_stamped_beyond_the_calendar_is_refused():
    with pytest.raises(RefusedError) as refused:
        classify(publication("PLAIN", a=1), "#1", TIME_MAX + 1)
    assert refused.value.code == "time_range"


def told(*published):
    """An engine that was told these publications, all of them accepted."""
    engine = TemporalEngine()
    for number, notification in enumerate(published):
        admitted = engine.admit(notification, f"#{number}", 7, 7)
        assert isinstance(admitted, Admitted)
        engine.apply(engine.seq + 1, admitted)
    return engine


@pytest.mark.parametrize(
    ("known", "again"),
    [
        (publication("START", "e", 3, a=1), publication("START", "e", 4, a=1)),
        (publication("START", "e", 3, a=1), publication("START", "e", 3, a=2)),
        (publication("START", "e", 3, a=1), publication("START", "e", 3, a=1.0)),
        (publication("START", "e", 3, a=1), publication("START", "e", 3)),
        (publication("END", "e", None, 9), publication("END", "e", None, 8)),
        (publication("END", "e", None, 9), publication("END", "e", 3, 9)),
        (publication("INSTANT", "e", 3, 3), publication("START", "e", 3)),
        (publication("INSTANT", "e", 3, 3), publication("END", "e", None, 3)),
        (publication("INSTANT", "e", 3, 3), publication("INSTANT", "e", 4, 4)),
        (publication("START", "e", 3), publication("INSTANT", "e", 3, 3)),
        (publication("END", "e", None, 3), publication("INSTANT", "e", 3, 3)),
        (publication("START", "e", 3), publication("END", "e", 4, 9)),
        (publication("START", "e", 3), publication("END", "e", None, 2)),
        (publication("END", "e", 3, 9), publication("START", "e", 4)),
        (publication("END", "e", None, 9), publication("START", "e", 10)),
    ],
)
def test_what_contradicts_the_known_is_refused_and_changes_nothing(known, again):
    engine = told(known)
    before = engine.event("e")
    with pytest.raises(RefusedError) as refused:
        engine.admit(again, "#9", 7, 7)
    assert refused.value.code == "temporal_conflict"
    assert engine.event("e") == before
    assert engine.seq == 1


@pytest.mark.parametrize(
    "known",
    [
        publication("START", "e", 3, a=1),
        publication("END", "e", None, 9, b=Bag([1, 2])),
        publication("INSTANT", "e", 3, 3),
    ],
)
def test_the_same_again_is_a_duplicate_however_its_bags_are_ordered(known):
    turned = Notification(
        {n: Bag(reversed(v.members)) if isinstance(v, Bag) else v for n, v in known.items()}
    )
    assert told(known).admit(turned, "#9", 8, 8) == Duplicate("e")


def test_a_start_is_a_duplicate_also_after_the_end_came():
    start, end = publication("START", "e", 3, a=1), publication("END", "e", None, 9, a=2)
    assert told(start, end).admit(start, "#9", 8, 8) == Duplicate("e")
    assert told(end, start).admit(end, "#9", 8, 8) == Duplicate("e")


def test_a_plain_uid_told_again_is_a_duplicate_or_a_conflict():
    engine = told(publication("PLAIN", a=1))
    assert engine.admit(publication("PLAIN", a=1), "#0", 7, 8) == Duplicate("#0")
    for other in (publication("PLAIN", a=2), publication("START", "#0", 3)):
        with pytest.raises(RefusedError, match="#0"):
            engine.admit(other, "#0", 7, 8)


def test_end_wins_and_the_type_is_what_has_been_seen():
    start = publication("START", "e", 3, a=1, b=1)
    event = told(start, publication("END", "e", None, 9, a=2)).event("e")
    assert (event.start, event.end, event.final) == (3, 9, True)
    assert event.notification == Notification(
        {
            PUB_ID: "e",
            PUB_TYPE: Bag(["START", "END"]),
            START_TIME: 3,
            END_TIME: 9,
            "a": 2,
            "b": 1,
        }
    )


@st.composite
def peaceful(draw):
    """Publications without a conflict among them, about a few events."""
    found = []
    for name in ("e", "f", "g"):
        start = draw(st.integers(0, 5))
        end = start + draw(st.integers(0, 5))
        stated = draw(st.sampled_from([None, start]))
        parts = {
            "START": publication("START", name, start, **draw(contents)),
            "END": publication("END", name, stated, end, **draw(contents)),
            "INSTANT": publication("INSTANT", name, start, start, **draw(contents)),
        }
        kinds = draw(st.sampled_from([(), ("START",), ("END",), ("START", "END"), ("INSTANT",)]))
        found.extend(parts[kind] for kind in kinds)
    return found


@given(peaceful())
def test_the_merged_history_does_not_depend_on_the_order_of_arrival(published):
    histories = []
    for order in permutations(published):
        engine = told(*order)
        events = [engine.event(name) for name in ("e", "f", "g")]
        histories.append(
            [
                event and (event.start, event.end, event.parts, event.notification)
                for event in events
            ]
        )
    assert all(history == histories[0] for history in histories)


@given(peaceful())
def test_repeating_a_peaceful_history_gives_only_duplicates(published):
    engine = told(*published)
    assert all(isinstance(engine.admit(p, "#x", 7, 7), Duplicate) for p in published)


def test_an_event_can_be_rebuilt_from_its_log_rows():
    engine = TemporalEngine()
    rows = []
    for notification in (publication("END", "e", None, 9, a=2), publication("START", "e", 3, a=1)):
        rows.append(engine.apply(engine.seq + 5, engine.admit(notification, "#", 7, 7))[0])
    assert merge_all(rows) == engine.event("e")
    assert [(row.seq, row.part, row.start, row.end) for row in rows] == [
        (5, Part.END, None, 9),
        (10, Part.START, 3, None),
    ]
