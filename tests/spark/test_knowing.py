"""Semantic operators in the verbs: by files, by the data directory, or refused."""

from __future__ import annotations

import json
import pickle

import pytest

from datastore.sql.store import open_sqlite
from datastore.store import Batch
from datastore.testing.histories import entry
from kbn.cli.knowing import known_from
from kbn.knowledge.spelling import Spellings
from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.world import World
from kbn.model.publications import Part
from tests.spark.test_cli import run

REDS = "wine is_a wine:RedWine"
CHAIN = f"start after(1h) {{ {REDS} }}"
WINES = ("wine:Barolo", "wine:AlsaceRiesling", "wine:nobody")


@pytest.fixture(scope="module")
def cellar(tmp_path_factory):
    made = tmp_path_factory.mktemp("cellar")
    log = [
        entry(n + 1, f"w{n}", Part.INSTANT, n * 1000, n * 1000, n, wine=WINES[n % 3])
        for n in range(9)
    ]
    with open_sqlite(made / "history.db") as store:
        store.append(Batch(log))
    return made, log


def ids(said):
    return [json.loads(line)["id"] for line in said.splitlines()]


def test_the_verbs_know_what_an_ontology_says(spark, cellar, tmp_path):
    folder, log = cellar
    known = known_from(["wine"], folder)
    world = World(knowledge=known)
    asked = parse_subscription(REDS)
    reds = [each.uid for each in log if matches(asked, each.notification, world)]
    assert reds == ["w0", "w3", "w6"]
    with_wine = ("--ontology", "wine", "--json")
    assert ids(run(folder, "history", REDS, *with_wine)[1]) == reds
    assert ids(run(folder, "scan", REDS, *with_wine)[1]) == reds
    assert ids(run(folder, "replay", f"{REDS} and {CHAIN}", *with_wine)[1]) == reds[1:]
    assert json.loads(run(folder, "backtest", REDS, CHAIN, *with_wine)[1])["only_old"] == 1
    filters = tmp_path / "filters"
    filters.write_text(f"{REDS}\n{CHAIN}\n")
    told = run(folder, "rematch", filters, *with_wine)[1]
    assert [json.loads(line)["count"] for line in told.splitlines()] == [3, 8]


def test_the_ontologies_of_the_data_directory_are_known(spark, cellar):
    folder, _ = cellar
    for verb in (("scan", REDS), ("replay", CHAIN), ("backtest", REDS, REDS)):
        code, said = run(folder, *verb)
        assert (code, "needs an ontology" in said) == (2, True)
    assert run(folder, "ontology", "load", "wine")[0] == 0
    try:
        assert ids(run(folder, "scan", REDS, "--json")[1]) == ["w0", "w3", "w6"]
    finally:
        assert run(folder, "ontology", "remove", "wine")[0] == 0


def test_what_is_known_travels_to_the_workers(cellar):
    known = known_from(["wine"], cellar[0])
    asked = parse_subscription(REDS)
    (constraint,) = next(iter(asked))
    for _ in range(2):  # as it was loaded, and after it was asked
        there = pickle.loads(pickle.dumps(known))
        assert there.hash == known.hash
        spelled = pickle.loads(pickle.dumps(Spellings(known)))
        assert spelled.spellings(constraint.op, constraint.value) == Spellings(known).spellings(
            constraint.op, constraint.value
        )
        for wine in WINES:
            assert there.holds(constraint.op, wine, constraint.value) == known.holds(
                constraint.op, wine, constraint.value
            )
