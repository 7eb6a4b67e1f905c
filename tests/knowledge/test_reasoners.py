"""Random ontologies: whatever a reasoner finds, our own rules had found."""

from __future__ import annotations

import os
import random

import pytest
import rdflib

from kbn.errors import UnsupportedError
from kbn.knowledge import reason
from kbn.knowledge.builder import build
from kbn.knowledge.closure import Closure
from kbn.knowledge.hierarchy.names import XSD
from kbn.knowledge.hierarchy.parts import Literal
from kbn.knowledge.loader import neutral
from kbn.knowledge.request import Request
from tests.knowledge.ask import assembled
from tests.knowledge.worlds import PREFIXES, random_triples

WORLDS = 300 if os.environ.get("KBN_PROFILE") == "deep" else 8
DATATYPES = {"n": XSD + "double", "b": XSD + "boolean", "s": None}


def node(term):
    if isinstance(term, Literal):
        datatype = DATATYPES[term.sort]
        text = str(term.value).lower() if term.sort == "b" else str(term.value)
        return rdflib.Literal(text, datatype=rdflib.URIRef(datatype) if datatype else None)
    return rdflib.BNode(term[2:]) if term.startswith("_:") else rdflib.URIRef(term)


@pytest.mark.parametrize("reasoner", ["owlrl", "reasonable"])
def test_a_reasoner_adds_nothing_to_our_own_rules(reasoner):
    for seed in range(WORLDS):
        stated = random_triples(random.Random(f"reasoners {seed}"))
        closed = Closure(stated, most=100_000, max_list=100)
        closed.run()
        before = build(closed, PREFIXES, {}).hash
        found, warnings = reason.infer([tuple(map(node, t)) for t in stated], reasoner)
        assert warnings == []
        assert closed.hear(map(neutral, found)) == 0, (seed, stated)
        closed.run()
        assert build(closed, PREFIXES, {}).hash == before, seed


def test_reasonable_is_the_default_and_another_name_is_refused():
    assert Request(()).chosen_reasoner() == "reasonable"
    with pytest.raises(UnsupportedError, match="no reasoner"):
        Request((), reasoner="guesswork").chosen_reasoner()


def test_a_reasoner_that_gives_up_is_replaced_by_the_reference(monkeypatch):
    def panic(triples):
        raise BaseException("panicked")  # as compiled code does

    monkeypatch.setattr(reason, "_by_reasonable", panic)
    made = assembled(":A rdfs:subClassOf :B .", "reasonable")
    assert "owlrl was asked instead" in made.warnings[0]
