"""The explanation of an event in the log is the definition's, word for word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbn.language import parse_subscription
from kbn.matching.explain import explain
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import World
from kbn.temporal.asof import as_of
from tests.temporal.rig import KNOWLEDGE, entries_of
from tests.temporal.worlds import logs, publication, subscriptions


@given(logs, subscriptions, st.sampled_from([None, 0, 3]))
def test_each_publication_is_explained_as_of_its_own_arrival(log, asked, max_open):
    entries = entries_of(log)
    wanted = {}
    naive = NaiveHistory((), KNOWLEDGE, max_open)
    for entry in entries:
        world = World(KNOWLEDGE, naive.about(entry))
        wanted[entry.seq] = explain(asked, entry.notification, world).to_json()
        naive.append(entry)
    found = {
        entry.seq: explain(asked, entry.notification, World(KNOWLEDGE, history)).to_json()
        for event in {entry.uid for entry in entries}
        for entry, history in as_of(entries, asked, event, KNOWLEDGE, max_open)
    }
    assert found == wanted


def test_what_came_later_is_not_part_of_the_explanation():
    entries = entries_of(
        [
            (publication("INSTANT", "x", 10, 10, k=2), 0),
            (publication("INSTANT", "y", 5, 5, k=1), 0),
        ]
    )
    asked = parse_subscription("k = 2 and end after(10ms) { k = 1 }")
    entry, history = next(as_of(entries, asked, "x"))
    told = explain(asked, entry.notification, World(history=history))
    assert not told.holds
    assert told.alternatives[0].constraints[-1].why == "the history is empty"
