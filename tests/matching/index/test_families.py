"""The branch families by themselves: what leads where, and what is remembered."""

from __future__ import annotations

import random
from collections.abc import Collection

import pytest

from kbn.errors import NoOntologyError
from kbn.matching.index import PredicateIndex, semantic, strings
from kbn.matching.index.checks import Check, Probe
from kbn.matching.index.semantic import Terms
from kbn.matching.index.strings import Contains, Prefix, Suffix
from kbn.matching.naive import matches
from kbn.matching.world import NOTHING_KNOWN, World
from kbn.model import Constraint, Notification, Subscription
from kbn.model.operators import Content, Related, Semantic
from kbn.model.values import Scalar
from tests.matching.index.worlds import StubKnowledge

PROBE = Probe(Notification(), NOTHING_KNOWN)


@pytest.mark.parametrize("few", [0, 32])
@pytest.mark.parametrize(
    ("family", "holds"),
    [
        (Prefix, str.startswith),
        (Suffix, str.endswith),
        (Contains, str.__contains__),
    ],
)
def test_a_text_leads_to_the_patterns_in_it_and_to_each_once(
    family: type, holds, few: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(strings, "FEW", few)
    draw = random.Random(f"patterns {family.__name__}")
    branches, held = family(), set()
    for _ in range(800):
        pattern = "".join(draw.choices("abc", k=draw.randrange(6)))
        if pattern in held:
            branches.cut(pattern)
            held.remove(pattern)
        else:
            branches.grow(pattern, None, pattern)
            held.add(pattern)
        text = "".join(draw.choices("abc", k=draw.randrange(9)))
        expected = sorted(pattern for pattern in held if holds(text, pattern))
        assert sorted(branches.reach(text, PROBE)) == expected
    assert list(branches.reach(7, PROBE)) == []


def test_what_a_value_reaches_is_asked_of_the_knowledge_once():
    knowledge = StubKnowledge()
    index = PredicateIndex()
    for key in range(100):
        index.add(key, Subscription.of(Constraint("w", Semantic.IS_A, f"c{key}")))
    told = Notification({"w": "v"})
    first = index.match(told, World(knowledge))
    assert first
    assert index.match(told, World(knowledge)) == first
    assert set(knowledge.asked.values()) == {1}
    index.add("new", Subscription.of(Constraint("w", Semantic.IS_A, "c-new")))
    index.match(told, World(knowledge))
    assert set(knowledge.asked.values()) == {1}
    assert len(knowledge.asked) == 101


def test_another_ontology_is_asked_anew():
    index = PredicateIndex()
    asked = {key: Subscription.of(Constraint("w", Related("p"), f"c{key}")) for key in range(30)}
    for key, subscription in asked.items():
        index.add(key, subscription)
    told = Notification({"w": "v"})
    answers = []
    for salt in (1, 2, 1):
        world = World(StubKnowledge(salt))
        answers.append(index.match(told, world))
        assert answers[-1] == {k for k, s in asked.items() if matches(s, told, world)}
    assert answers[0] == answers[2] != answers[1]


@pytest.mark.parametrize(("often", "held"), [(1, 200_000), (1, 10), (3, 200_000)])
def test_terms_that_come_and_go_leave_right_answers_behind(
    often: int, held: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(semantic, "REMEMBERED", 3)
    monkeypatch.setattr(semantic, "OFTEN", often)
    monkeypatch.setattr(semantic, "HELD", held)
    draw = random.Random("terms")
    world = World(StubKnowledge())
    index, live = PredicateIndex(), {}
    beside = [
        (),
        (),
        (Constraint("x", Content.LT, 2),),
        (Constraint("x", Content.LT, 3), Constraint("y", Content.GE, 1)),
        (Constraint("x", Content.NE, 1),),
        (Constraint("x", Content.EQ, 1),),
        (Constraint("w", Semantic.IS_A, "c7"),),
    ]
    for step in range(1500):
        if live and draw.random() < 0.5:
            key = draw.choice(list(live))
            index.remove(key)
            del live[key]
        else:
            constraint = Constraint("w", Semantic.MORE_SPECIFIC, f"c{draw.randrange(40)}")
            live[step] = Subscription.of(constraint, *draw.choice(beside))
            index.add(step, live[step])
        for _ in range(draw.randrange(4)):
            term = draw.choice(["u", "v", "w", "x", 1, 1.0, True])
            told = Notification({"w": term, "x": draw.randrange(4), "y": draw.randrange(3)})
            expected = {k for k, s in live.items() if matches(s, told, world)}
            assert index.match(told, world) == expected
    for key in live:
        index.remove(key)
    assert not index._root


def terms_of(count: int) -> list[tuple[str, Check]]:
    """Operands with their checks, as the table hands them to a family."""
    names = [f"c{i}" for i in range(count)]
    return [(name, Check(Constraint("w", Semantic.IS_A, name))) for name in names]


def test_an_answer_stays_right_when_the_gaps_of_the_log_are_closed():
    world = World(StubKnowledge())
    terms: Terms[str] = Terms(Semantic.IS_A, lambda nodes, most: None)
    probe = Probe(Notification(), world)
    operands = terms_of(400)
    for key, check in operands[:300]:
        terms.grow(key, check, key)
    terms.reach("v", probe)
    for key, _ in operands[:250]:
        terms.cut(key)
    for key, check in operands[300:]:
        terms.grow(key, check, key)
    left = [key for key, _ in operands[250:]]
    expected = [key for key in left if world.knowledge.holds(Semantic.IS_A, "v", key)]
    assert list(terms.reach("v", probe)) == expected
    assert len(terms) == len(left)


def test_values_that_made_room_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(semantic, "REMEMBERED", 10)
    monkeypatch.setattr(semantic, "OFTEN", 1)
    allowed: list[int] = []

    def merge(nodes: Collection[str], most: int) -> tuple[list[str], int]:
        allowed.append(most)
        return list(nodes), 100

    terms: Terms[str] = Terms(Semantic.IS_A, merge)
    for key, check in terms_of(30):
        terms.grow(key, check, key)
    probe = Probe(Notification(), World(StubKnowledge()))
    for value in range(200):
        terms.reach(value, probe)
    assert len(allowed) > 100
    assert min(allowed) >= semantic.HELD - 10 * 100
    for key, _ in terms_of(30):
        assert len(terms._named_by.get(key, ())) <= 10


def test_a_question_that_raised_is_asked_again():
    class Shy:
        refuse = True

        def holds(self, op: Semantic | Related, value: Scalar, operand: Scalar) -> bool:
            if self.refuse and operand == "c1":
                raise NoOntologyError("is_a")
            return True

    index, shy = PredicateIndex(), Shy()
    for key in range(3):
        index.add(key, Subscription.of(Constraint("w", Semantic.IS_A, f"c{key}")))
    with pytest.raises(NoOntologyError):
        index.match(Notification({"w": "v"}), World(shy))
    shy.refuse = False
    assert index.match(Notification({"w": "v"}), World(shy)) == {0, 1, 2}
