"""Explanations: the matcher's own verdicts, and the words people get."""

from __future__ import annotations

import pytest
from hypothesis import given

from kbn.language import parse_event, parse_subscription
from kbn.matching.explain import explain
from kbn.matching.naive import constraint_holds, matches
from kbn.matching.world import World
from kbn.model.operators import Related, Semantic
from tests import strategies


class Coin:
    """An oracle that answers by a fixed rule, so that both sides ask the same one."""

    def holds(self, *question):
        return hash(str(question[-1])) % 2 == 0


@given(
    strategies.any_subscriptions(strategies.names, strategies.values), strategies.notifications()
)
def test_an_explanation_says_what_the_matcher_decided_in_every_part(subscription, event):
    world = World(Coin(), Coin())
    said = explain(subscription, event, world)
    assert said.holds == matches(subscription, event, world)
    for asked, verdict in zip(subscription, said.alternatives, strict=True):
        assert [v.holds for v in verdict.constraints] == [
            constraint_holds(c, event, world) for c in asked
        ]
    assert said.to_json()["match"] is said.holds


def why(asked, event, world=None):
    said = explain(parse_subscription(asked), parse_event(event), world or World())
    return said.alternatives[0].constraints[0].why


@pytest.mark.parametrize(
    ("asked", "event", "words"),
    [
        ("x < 5", "y=1", "there is no attribute 'x'"),
        ("x any", "x=null", "the attribute is there"),
        ("x < 5", "x=4", "4 < 5 is true"),
        ("x < 5", "x=4.5", "a double and a long, compared exactly"),
        ("x = 9007199254740993", "x=9007199254740992.0", "is false (a double and a long"),
        ("x < 5", 'x="a"', "a string and a long have no order"),
        ("x <= null", "x=null", "a null has no order"),
        ("x = true", "x=1", "a long and a bool are never equal"),
        ('x prefix "a"', "x=1", "'prefix' holds between strings only"),
        ("b bageq [1 2]", "b=[1]", "the bags have 1 and 2 members"),
        ("b subbag[<] [1 3 4]", "b=[2 2 2]", "no partner of its own left for 2"),
        ("b superbag []", "b=[1]", "there is nothing to pair"),
        ("b in [1 2]", "b=2", "paired 2 with 2"),
    ],
)
def test_the_reason_is_told_in_words(asked, event, words):
    assert words in why(asked, event)


def test_semantic_and_temporal_reasons_name_the_relation():
    class Yes:
        def holds(self, *question):
            return isinstance(question[0], Semantic | Related) or len(question) == 2

    world = World(Yes(), Yes())
    assert why("w is_a wine:Red", 'w="x"', world) == '"x" is a "wine:Red"'
    assert "related by geo:west to" in why("w related geo:west geo:X", 'w="x"', world)
    assert (
        why("KBN_END_TIME during {}", "KBN_END_TIME=5", world) == "the history has such an event"
    )
