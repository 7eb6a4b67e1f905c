"""The verbs over all of history, as people use them; one store, archived half way."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from datastore.delta.attached import attach, move
from datastore.sql.store import open_sqlite
from datastore.store import Batch
from datastore.testing.histories import entry
from kbn.cli.main import app
from kbn.errors import KbnError
from kbn.model.publications import Part

DAY = 86_400_000
EVENTS = [
    entry(1, "a", Part.INSTANT, 1000, 1000, 5 * DAY, sev="warning", level=1),
    entry(2, "b", Part.START, 2000, None, 6 * DAY, sev="warning", level=2),
    entry(3, "c", Part.START, 500, None, 7 * DAY, sev="watch"),
    entry(4, "c", Part.END, None, 900, 8 * DAY, sev="clear"),
    entry(5, "d", Part.PLAIN, 3000, None, 9 * DAY, level=9),
    entry(6, "e", Part.INSTANT, 2500, 2500, 9 * DAY, sev="warning", level=3),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("cli")
    with open_sqlite(made / "history.db") as store:
        store.append(Batch(EVENTS))
        move(attach(store, made / "archive"), 4)
    return made


def run(folder, *arguments):
    result = CliRunner().invoke(app, [*map(str, arguments), "--data-dir", str(folder)])
    if isinstance(result.exception, KbnError):
        return 2, str(result.exception)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def seqs(said):
    return [json.loads(line)["seq"] for line in said.splitlines()]


def test_replay_prints_what_would_have_been_delivered_in_order(spark, folder):
    code, said = run(folder, "replay", 'sev = "warning"', "--json")
    assert code == 0
    assert seqs(said) == [1, 2, 6]
    first = json.loads(said.splitlines()[0])
    assert first["event"]["level"] == 1
    assert (first["id"], first["arrived"]) == ("a", 5 * DAY)
    nested = 'start after(1d) { sev = "warning" and start during { sev any } }'
    assert run(folder, "replay", nested, "--json") == (1, "")


def test_last_counts_back_from_the_newest_stored_arrival_archived_or_not(spark, folder):
    assert seqs(run(folder, "replay", "level any", "--json", "--last", "3d")[1]) == [2, 5, 6]
    before = ("--from", "1970-01-06", "--to", "1970-01-08")
    assert seqs(run(folder, "replay", "level any", "--json", *before)[1]) == [1, 2]


def test_scan_says_what_history_says_and_takes_temporal_filters(spark, folder):
    for text in ("level any", 'sev = "clear"', ""):
        code, said = run(folder, "scan", text, "--json")
        told, wanted = run(folder, "history", text, "--json")
        assert code == told
        # The order of attributes inside an event is not kept by the archive.
        assert list(map(json.loads, said.splitlines())) == list(
            map(json.loads, wanted.splitlines())
        )
    code, said = run(folder, "scan", 'start after(5s) { sev = "warning" }', "--json")
    assert [json.loads(line)["id"] for line in said.splitlines()] == ["b", "e"]
    assert code == 0


def test_a_dry_run_prints_the_plan_and_does_nothing(spark, folder):
    code, said = run(folder, "replay", "level > 1", "--dry-run")
    assert code == 0
    assert "MapInArrow" in said
    assert said.startswith("reads ")
    assert "1 to 4" in said
    assert "5 to 6" in said
    assert "Physical Plan" in run(folder, "scan", "level > 1", "--dry-run")[1]
    assert "Physical Plan" in run(folder, "mine", "--dry-run")[1]


def test_backtest_prints_a_table_and_draws_a_picture(spark, folder, tmp_path):
    picture = tmp_path / "counts.svg"
    code, said = run(folder, "backtest", "level any", "level > 1", "--svg", picture)
    assert code == 1
    rows = dict(line.rsplit(None, 1) for line in said.splitlines()[1:6])
    assert rows == {"old": "4", "new": "3", "both": "3", "only old": "1", "only new": "0"}
    assert "only old   1  " in said
    assert picture.read_text().startswith("<svg ")
    code, said = run(folder, "backtest", "level any", "level >= 1", "--json")
    assert code == 0
    assert json.loads(said)["only_old"] == 0


def test_rematch_counts_for_each_line_of_a_file(spark, folder, tmp_path):
    asked = tmp_path / "filters"
    asked.write_text('level any\n\n# nothing\nstart after(5s) { sev = "warning" }\nx = 1\n')
    pairs = tmp_path / "pairs"
    code, said = run(folder, "rematch", asked, "--json", "--pairs", pairs)
    found = [json.loads(line) for line in said.splitlines()]
    assert code == 0
    assert [(row["count"], row["first"], row["last"]) for row in found] == [
        (4, 1, 6),
        (2, 2, 6),
        (0, None, None),
    ]
    rows = spark.read.parquet(str(pairs)).collect()
    assert sorted(map(tuple, rows)) == [(1, 0), (2, 0), (2, 1), (5, 0), (6, 0), (6, 1)]
    asked.write_text("level >\n")
    assert run(folder, "rematch", asked)[0] == 2


def test_mine_prints_statistics_and_keeps_them(spark, folder, tmp_path):
    kept = tmp_path / "statistics.json"
    code, said = run(folder, "mine", "--by", "sev", "--write", kept, "--json")
    found = json.loads(said)
    assert code == 0
    assert found == json.loads(kept.read_text())
    assert found["entries"] == 6
    assert {row["name"] for row in found["attributes"]} == {"sev", "level"}
    assert found["promote"] == ["sev", "level"]
    first = found["sequences"][0]
    assert (first["kinds"], first["count"]) == (["warning", "warning"], 2)
    info = json.loads(run(folder, "store", "info", "--json")[1])
    assert info["statistics"]["entries"] == 6
    assert info["statistics"]["file"].endswith("history-statistics.json")
    table = run(folder, "mine", "--by", "sev", "--cover", "0.5")[1]
    assert "worth an index and flat columns: sev, level" in table
    assert "warning then warning" in table
    assert "after(1s) would have caught 50 %" in table
    assert 'sev = "warning" and start after(1s) { sev = "warning" }' in table


def test_store_index_takes_what_mine_found(spark, tmp_path):
    with open_sqlite(tmp_path / "history.db") as store:
        store.append(Batch(EVENTS))
    code, said = run(tmp_path, "store", "index", "--mined")
    assert (code, "run `kbn mine` first" in said) == (2, True)
    assert run(tmp_path, "store", "index")[1] == "indexed: nothing\n"
    assert run(tmp_path, "mine")[0] == 0
    assert run(tmp_path, "store", "index", "--mined")[1] == "indexed: level, sev\n"
    assert run(tmp_path, "store", "index", "x", "--json")[1] == (
        '{"indexed": ["level", "sev", "x"]}\n'
    )
    assert run(tmp_path, "store", "index", "sev", "--only")[1] == "indexed: sev\n"
    with open_sqlite(tmp_path / "history.db"):
        code, said = run(tmp_path, "store", "index", "level")
        assert (code, "another broker" in said) == (2, True)
        assert run(tmp_path, "mine")[0] == 0, "mining is done beside a running broker"
    assert run(tmp_path, "store", "check")[0] == 0
    # Another store under the same name is not taken for the one that was mined.
    (tmp_path / "history.db").unlink()
    with open_sqlite(tmp_path / "history.db"):
        pass
    assert json.loads(run(tmp_path, "store", "info", "--json")[1])["statistics"] is None


def test_a_wrong_question_is_answered_before_a_session_is_made(folder, tmp_path):
    assert run(folder, "replay", "level >")[0] == 2
    assert run(folder, "replay", "level any", "--last", "3d", "--to", "5")[0] == 2
    assert run(folder, "replay", "level any", "--from", "yesterday")[0] == 2
    assert run(folder, "backtest", "level any", "level = 1", "--from", "9", "--to", "8")[0] == 2
    assert run(folder, "backtest", "level any", "level = 1", "--last", "soon")[0] == 2
    code, said = run(folder, "scan", 'a is_a "Wine"')
    assert (code, "no ontology" in said or "ontology" in said) == (2, True)
    assert run(tmp_path, "scan", "a = 1")[0] == 2
    code, said = run(folder, "replay", "a = 1", "--store", "memory:")
    assert code == 2


def test_archive_optimize_and_vacuum_tell_what_they_did(tmp_path):
    with open_sqlite(tmp_path / "history.db") as store:
        store.append(Batch(EVENTS))
    plan = json.loads(run(tmp_path, "archive", "--older", "1d", "--dry-run", "--json")[1])
    assert (plan["after"], plan["upto"]) == (0, 6)
    assert not (tmp_path / "archive").exists()
    code, said = run(tmp_path, "archive", "--older", "1d", "--json")
    assert (code, json.loads(said)["archived"]) == (0, 6)
    assert json.loads(run(tmp_path, "archive", "--older", "1d", "--json")[1])["archived"] == 0
    assert run(tmp_path, "archive", "--to", tmp_path / "other")[0] == 2
    assert run(tmp_path, "history", "level any")[0] == 0
    assert json.loads(run(tmp_path, "store", "optimize", "--json")[1])["files_after"] > 0
    assert run(tmp_path, "store", "optimize", "--by-start")[0] == 0
    assert json.loads(run(tmp_path, "store", "vacuum", "--dry-run", "--json")[1])["dry_run"]
    assert run(tmp_path, "store", "vacuum", "--hours", "0")[0] == 0
    assert run(tmp_path, "store", "check")[0] == 0
