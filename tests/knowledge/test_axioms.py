"""Each axiom of OWL that an operator can see, and the reasoners held equal on it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.knowledge.ask import ask, assembled, hierarchy

CASES = yaml.safe_load(
    (Path(__file__).parent.parent / "vectors/knowledge/axioms.yaml").read_text()
)
IDS = [case["id"] for case in CASES]


def turtle(case):
    return case["turtle"] + case.get("more", "")


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_operators_answer_as_the_axiom_says(case):
    known = hierarchy(turtle(case))
    for question in case.get("holds", []):
        assert ask(known, question), question
    for question in case.get("fails", []):
        assert not ask(known, question), question


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.parametrize("reasoner", ["owlrl", "reasonable"])
def test_after_the_builder_every_reasoner_has_said_the_same(case, reasoner):
    """Equal hashes: equal answers to every question. And our own rules missed nothing."""
    made = assembled(turtle(case), reasoner)
    assert made.hierarchy.hash == hierarchy(turtle(case)).hash
    assert made.unheard == 0
