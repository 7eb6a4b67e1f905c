"""The law of chunks: after its warm-up a chunk is told what it is told after everything."""

from __future__ import annotations

import os
import random
from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbn.language import parse_subscription
from kbn.matching.naive import constraint_holds, matches
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import World
from kbn.model import Constraint, Subscription
from kbn.model.filters import constraints_within
from kbn.model.operators import During
from kbn.model.publications import Part
from kbn.model.time import END_TIME
from kbn.temporal import Replay
from kbn.temporal.chunks import (
    NEVER,
    Bucket,
    Chunk,
    asks_of,
    cut,
    is_asking,
    is_warm,
    reaches_of,
)
from kbn.temporal.memory import inner_hash
from tests.temporal import sweep
from tests.temporal.rig import KNOWLEDGE, entries_of
from tests.temporal.worlds import logs, publication, subscriptions

STORIES = 3000 if os.environ.get("KBN_PROFILE") == "deep" else 150
_HALVES = (Part.START, Part.END)
_WORLD = World(KNOWLEDGE)


class Row:
    """An entry with what its event's other entry says, as ``is_warm`` and the rest ask it."""

    def __init__(self, entry, told):
        self.entry = entry
        self.seq = entry.seq
        self.last = max(one.seq for one in told)
        self.ended = max((one.seq for one in told if one.end is not None), default=NEVER)
        self.start = max((one.start for one in told if one.start is not None), default=None)
        self.end = max((one.end for one in told if one.end is not None), default=None)
        self.latest = self.start if self.end is None else self.end
        self.earliest = self.end if self.start is None else self.start
        self._told = told

    def may(self, asked):
        return any(all(map(self._may_hold, one)) for one in asked)

    def _may_hold(self, constraint):
        return any(_holds(constraint, one) for one in self._told)


def _holds(constraint, entry):
    return constraint.inner is not None or constraint_holds(constraint, entry.notification, _WORLD)


def rows_of(log):
    told = {}
    for entry in log:
        told.setdefault(entry.uid, []).append(entry)
    return [Row(entry, told[entry.uid]) for entry in log]


def least(values):
    return min((value for value in values if value is not None), default=None)


def buckets_of(rows, asks, width):
    """What an engine would find out in one look."""
    made = []
    for at in range(0, len(rows), width):
        some = rows[at : at + width]
        moments = {
            ask.number: least(_own_moment(row, ask) for row in some)
            for ask in asks
            if ask.depth == 1
        }  # fmt: skip
        sure = {}
        for ask in asks:
            if ask.window is not None:
                found = [
                    row.start
                    for row in some
                    if row.entry.part not in _HALVES
                    and matches(ask.inner, row.entry.notification, _WORLD)
                ]
                sure[ask.number] = (len(found), least(found))
        made.append(Bucket(some[-1].seq, len(some), moments, sure))
    return made


def _own_moment(row, ask):
    entry = row.entry
    if entry.part is Part.PLAIN or not all(_holds(one, entry) for one in ask.asker):
        return None
    if ask.spans and not isinstance(ask.constraint.op, During):
        return row.start
    return entry.start if ask.by_start else entry.end


def minima_of(rows, asks, wanted):
    found = []
    for ask, chunk, around in wanted:
        asking = [row for row in rows if is_asking(row, ask, chunk, around, asks)]
        moments = [row.start if ask.by_start else row.end for row in asking]
        found.append(
            (
                least(moments),
                least(row.seq for row in asking),
            )
        )
    return found


def pieces(log, subscription, *, width, count, after=0, silent=frozenset(), max_open=None):
    """(chunk, its warm-up, its entries) of a log; None if it cannot be cut."""
    asks = asks_of([subscription])
    if asks is None:
        return None
    rows = rows_of(log)
    buckets = buckets_of(rows, asks, width)
    chunks = cut(buckets, count, after)
    minima = partial(minima_of, rows, asks)
    reaches = reaches_of(asks, chunks, buckets, minima, silent=silent, max_open=max_open)
    return [
        (
            chunk,
            [row.entry for row in rows if is_warm(row, chunk, held, asks)],
            [entry for entry in log if chunk.after < entry.seq <= chunk.upto],
        )
        for chunk, held in zip(chunks, reaches, strict=True)
    ]


def told_in_pieces(log, asked, made, max_open):
    found = {}
    for _, warm, own in made:
        replay = Replay({0: asked}, KNOWLEDGE, max_open)
        for entry in warm:
            replay.learn(entry)
        found |= {entry.seq: bool(replay.feed(entry)) for entry in own}
    return found


def check(log, asked, *, width, count, max_open, after=0):
    """How many entries there were before chunks, and how many of them were warm-up."""
    made = pieces(log, asked, width=width, count=count, after=after, max_open=max_open)
    if made is None:
        return Counter(unbounded=1)
    whole = Replay({0: asked}, KNOWLEDGE, max_open)
    expected = {entry.seq: bool(whole.feed(entry)) for entry in log}
    found = told_in_pieces(log, asked, made, max_open)
    assert found == {seq: told for seq, told in expected.items() if seq > after}
    return Counter(
        cut=1,
        told=sum(expected.values()),
        before=sum(sum(e.seq <= chunk.after for e in log) for chunk, _, _ in made),
        warm=sum(len(warm) for _, warm, _ in made),
    )


@given(
    logs,
    subscriptions,
    st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(0, 12)),
    st.sampled_from([None, 0, 3]),
)
def test_a_chunk_after_its_warm_up_is_told_what_it_is_told_after_everything(
    published, asked, sizes, max_open
):
    log = entries_of(published)
    width, count, after = sizes
    check(log, asked, width=width, count=count, max_open=max_open)
    check(log, asked, width=1, count=count, max_open=max_open, after=after)


def test_long_histories_in_chunks_are_told_as_in_one_piece_and_the_warm_up_is_the_lesser_part():
    total = Counter()
    for seed in range(STORIES):
        draw = random.Random(f"chunks {seed}")
        log = entries_of([sweep._publication(draw, now) for now in range(160)])
        asked = sweep._subscription(draw, draw.choice([1, 2, 2, 3]), certain=True)
        total += check(
            log, asked, width=draw.choice([1, 5, 20]), count=draw.choice([2, 4, 9]),
            max_open=draw.choice([None, None, 5]),
        )  # fmt: skip
    assert total["cut"] > total["unbounded"]
    assert total["told"]
    assert total["warm"] < total["before"] * 0.8


@given(logs, subscriptions, st.integers(1, 6), st.integers(2, 5))
def test_decisions_about_the_events_of_a_chunk_are_those_of_the_definition(
    published, asked, width, count
):
    log = entries_of(published)
    # As an inner filter that nobody asks, it is decided of every event.
    wrapped = Subscription.of(Constraint(END_TIME, During(), asked))
    made = pieces(log, wrapped, width=width, count=count, silent=frozenset({0}))
    if made is None:
        return
    naive, name = NaiveHistory(log, KNOWLEDGE), inner_hash(asked)
    places = {entry.seq: place for place, entry in enumerate(log)}
    for _, warm, own in made:
        replay = Replay({0: wrapped}, KNOWLEDGE)
        for entry in warm:
            replay.learn(entry)
        for entry in own:
            decided = {d.inner: d.holds for d in replay.learn(entry)[0]}
            assert decided.get(name, False) == naive.decided(asked, places[entry.seq])


@pytest.mark.parametrize(
    "text",
    [
        "relation(after) { a = 1 }",
        "a filter(<, last 3) { end after(2ms) { a = 1 } }",
        "end after(2ms) { a = 1 and relation(after) { b = 1 } }",
    ],
)
def test_what_looks_back_without_bound_is_not_cut(text):
    assert asks_of([parse_subscription(text)]) is None


def last_piece(asked, *published):
    """The warm-up of the last publication and whether it is told after that alone."""
    log = entries_of(published)
    *_, (chunk, warm, own) = pieces(log, asked, width=1, count=len(log))
    assert chunk == Chunk(len(log) - 1, len(log))
    return [entry.uid for entry in warm], told_in_pieces(log, asked, [(chunk, warm, own)], None)


def instant(event, at, **content):
    return publication("INSTANT", event, at, at, **content), at


def test_a_back_dated_end_that_came_late_is_in_the_warm_up_of_what_saw_the_event_open():
    # The watch was open when the warning was decided; its END, told later, lies before it.
    warm, told = last_piece(
        parse_subscription(
            "a = 3 and KBN_START_TIME after(100ms) { a = 2 and KBN_START_TIME during { a = 1 } }"
        ),
        (publication("START", "watch", 0, a=1), 0),
        instant("warning", 500, a=2),
        (publication("END", "watch", None, 10, a=1), 510),
        instant("critical", 550, a=3),
    )
    assert warm == ["watch", "warning", "watch"]
    assert told == {4: True}


def test_a_decision_that_was_made_anew_counts_for_what_asked_before_that():
    # z held when y was decided, by the q that was open then; z's END undid it before x came.
    warm, told = last_piece(
        parse_subscription(
            "a = 3 and KBN_START_TIME after(100ms) { a = 2 and KBN_START_TIME during"
            " { a = 1 and KBN_START_TIME during { a = 0 } } }"
        ),
        (publication("START", "q", 0, a=0), 0),
        (publication("START", "z", 100, a=1), 100),
        (publication("END", "q", None, 10, a=0), 110),
        instant("y", 150, a=2),
        (publication("END", "z", None, 200, a=1), 200),
        instant("x", 210, a=3),
    )
    assert warm == ["q", "z", "q", "y", "z"]
    assert told == {6: True}


def test_a_window_is_filled_from_before_the_chunk_and_no_further():
    warm, told = last_piece(
        parse_subscription("a filter(>, last 3) { b = 1 }"),
        instant("too early", 1, a=0, b=1),
        instant("p", 2, a=5, b=1),
        instant("other", 3, a=0, b=2),
        instant("q", 4, a=9, b=1),
        instant("r", 5, a=9, b=1),
        instant("x", 6, a=6, b=1),
    )
    assert warm == ["p", "q", "r"]
    assert told == {6: True}


def test_what_comes_back_into_a_window_when_another_event_leaves_it_is_in_the_warm_up():
    log = entries_of(
        [
            instant("p", 2, a=5, b=1),
            (publication("START", "flips", 3, a=9, b=1), 3),
            (publication("END", "flips", None, 4, a=4, b=2), 4),
            instant("x", 6, a=6),
        ]
    )
    asked = parse_subscription("a filter(>, last 1) { b = 1 }")
    _, (_, warm, own) = pieces(log, asked, width=2, count=2)
    assert [entry.uid for entry in warm] == ["p", "flips"]
    assert told_in_pieces(log, asked, [(None, warm, own)], None) == {3: False, 4: True}


def test_an_event_that_is_open_too_long_to_count_is_not_in_the_warm_up():
    log = entries_of(
        [
            (publication("START", "old", 0, a=1), 0),
            (publication("START", "new", 90, a=1), 90),
            instant("x", 100, a=3),
        ]
    )
    asked = parse_subscription("a = 3 and KBN_END_TIME during { a = 1 }")
    _, (_, warm, _) = pieces(log, asked, width=2, count=2, max_open=50)
    assert [entry.uid for entry in warm] == ["new"]


def test_chunks_cover_the_numbers_and_have_about_as_many_entries_each():
    buckets = [Bucket(last, entries, {}, {}) for last, entries in ((10, 4), (20, 4), (30, 8))]
    assert cut(buckets, 2) == [Chunk(0, 20), Chunk(20, 30)]
    assert cut(buckets, 9) == [Chunk(0, 10), Chunk(10, 20), Chunk(20, 30)]
    assert cut(buckets, 3, after=10) == [Chunk(10, 20), Chunk(20, 30)]
    assert cut([], 2) == []


def test_every_constraint_of_every_level_is_an_ask_of_its_own():
    asked = parse_subscription("end after(2ms) { a = 1 and end during { b = 1 } } or a = 2")
    asks = asks_of([asked])
    assert [(ask.depth, ask.parent) for ask in asks] == [(1, None), (2, 0)]
    temporal = [c for c in constraints_within(asked) if c.inner is not None]
    assert [ask.constraint for ask in asks] == temporal
