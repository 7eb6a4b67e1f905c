"""The verbs through a real Spark Connect server: the answers of a session of one's own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from datastore.delta.attached import attach, move
from datastore.sql.store import open_sqlite
from datastore.store import Batch
from datastore.testing.histories import entry
from kbn.model.publications import Part
from tests.spark.conftest import JAVA
from tests.spark.connect import ConnectServer
from tests.spark.test_cli import EVENTS
from tests.spark.test_session import ROOT

WINES = [
    entry(7, "f", Part.INSTANT, 5000, 5000, EVENTS[-1].arrived, wine="wine:Barolo"),
    entry(8, "g", Part.INSTANT, 6000, 6000, EVENTS[-1].arrived, wine="wine:AlsaceRiesling"),
]
WARNED = 'start after(5s) { sev = "warning" }'


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = ConnectServer(tmp_path_factory.mktemp("connect"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One store archived half way, so that both Delta and the data source are read."""
    made = tmp_path_factory.mktemp("store")
    with open_sqlite(made / "history.db") as store:
        store.append(Batch([*EVENTS, *WINES]))
        move(attach(store, made / "archive"), 4)
    return made


def told(server, folder, *command):
    """What a verb prints, as JSON values. In a process of its own: a session is one or the
    other."""
    more = ["--json", "--data-dir", str(folder), "--spark", server.url]
    done = subprocess.run(
        [sys.executable, "-m", "kbn", *command, *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(not JAVA, reason="Spark needs Java, and there is none")
class TestConnect:
    def test_scan_and_replay(self, server, folder):
        found = told(server, folder, "scan", "level any", "--limit", "3")
        assert [event["id"] for event in found] == ["a", "b", "e"]
        found = told(server, folder, "replay", WARNED, "--last", "4d")
        assert [entry["seq"] for entry in found] == [2, 6, 7, 8]

    def test_terms_are_known_on_the_server(self, server, folder):
        asked = f"wine is_a wine:RedWine and {WARNED}"
        found = told(server, folder, "replay", asked, "--ontology", "wine")
        assert [entry["seq"] for entry in found] == [7]

    def test_rematch(self, server, folder, tmp_path):
        (tmp_path / "filters").write_text(f"level any\n{WARNED}\n")
        found = told(server, folder, "rematch", str(tmp_path / "filters"))
        counts = [(row["count"], row["first"], row["last"]) for row in found]
        assert counts == [(4, 1, 6), (4, 2, 8)]

    def test_backtest(self, server, folder):
        (found,) = told(server, folder, "backtest", "level any", "level > 1")
        assert (found["both"], found["only_old"], found["only_new"]) == (3, 1, 0)
        assert [sample["seq"] for sample in found["samples_only_old"]] == [1]

    def test_mine(self, server, folder):
        (found,) = told(server, folder, "mine", "--by", "sev")
        assert found["entries"] == 8
        assert found["sequences"][0]["kinds"] == ["warning", "warning"]
