"""What is read from the log for those who ask for the past equals the definition."""

from __future__ import annotations

from hypothesis import given

from kbn.matching.temporal import NaiveHistory
from kbn.temporal.lookback import standing
from tests.temporal.rig import KNOWLEDGE, entries_of
from tests.temporal.worlds import logs, subscriptions


@given(logs, subscriptions)
def test_the_events_a_filter_holds_of_in_the_end_are_those_of_the_definition(log, asked):
    entries = entries_of(log)
    history = NaiveHistory(entries, KNOWLEDGE)
    expected = {event.id for event in history.standing(asked, len(entries), "")}
    assert standing(entries, asked, KNOWLEDGE) == expected
