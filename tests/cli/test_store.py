"""``kbn history`` and ``kbn store`` on files, as people use them."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from datastore.factory import default_url, open_store
from datastore.sql.migrate import HEAD
from datastore.store import Batch
from datastore.testing.histories import entry
from kbn.cli.main import app
from kbn.cli.places import number_of
from kbn.errors import KbnError
from kbn.model.publications import Part

DAY = 86_400_000
EVENTS = [
    entry(1, "a", Part.INSTANT, 1000, 1000, 5 * DAY, sev="warning", level=1),
    entry(2, "b", Part.START, 2000, None, 6 * DAY, sev="warning", level=2),
    entry(3, "c", Part.START, 500, None, 7 * DAY, sev="watch"),
    entry(4, "c", Part.END, None, 900, 9 * DAY, sev="clear"),
    entry(5, "d", Part.PLAIN, 3000, None, 9 * DAY, level=9),
]


@pytest.fixture(params=["sqlite", "delta"])
def url(request, tmp_path) -> str:
    made = f"{request.param}:///{tmp_path}/history"
    with open_store(made) as store:
        store.append(Batch(EVENTS))
    return made


def run(*arguments: str):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if isinstance(result.exception, KbnError):
        return 2, str(result.exception)
    return result.exit_code, result.output


def ids(*arguments: str) -> list[str]:
    code, out = run("history", *arguments, "--json")
    assert code == (0 if out else 1)
    return [json.loads(line)["id"] for line in out.splitlines()]


def test_history_lists_merged_events_by_start(url) -> None:
    assert ids("--store", url) == ["c", "a", "b", "d"]
    assert ids('sev = "warning"', "--store", url) == ["a", "b"]
    assert ids('sev = "watch"', "--store", url) == [], "the end said clear"
    assert ids("--open", "--store", url) == ["b"]
    assert ids("--limit", "2", "--store", url) == ["b", "d"]
    assert ids("--since", "1970-01-08T12:00:00", "--store", url) == ["c", "d"]


def test_history_reads_temporal_filters_from_the_whole_log(url) -> None:
    assert ids('start after(2s) { sev = "warning" }', "--store", url) == ["b"]
    assert ids('start after(2s) { sev = "warning" }', "--limit", "1", "--store", url) == ["b"]
    assert ids('start after(999ms) { sev = "warning" }', "--store", url) == []


def test_history_prints_a_line_for_people(url) -> None:
    code, out = run("history", 'sev = "clear"', "--store", url)
    assert code == 0
    assert out.startswith("1970-01-01T00:00:00.500Z … 1970-01-01T00:00:00.900Z  c  ")
    assert 'sev="clear"' in out


def test_history_works_while_the_broker_has_the_store(url) -> None:
    with open_store(url) as broker:
        broker.append(Batch([entry(6, "e", Part.PLAIN, 4000)]))
        assert ids("--store", url) == ["c", "a", "b", "d", "e"]
        assert run("store", "check", "--store", url)[0] == 0


def test_a_wrong_question_is_exit_2(url, tmp_path) -> None:
    assert run("history", "--since", "yesterday", "--store", url)[0] == 2
    assert run("history", "a <", "--store", url)[0] == 2
    assert run("history", "--store", f"sqlite:///{tmp_path}/missing.db")[0] == 2
    code, said = run("history", "--store", "mysql://x")
    assert code == 2
    assert "no such kind of store" in said


def test_info_and_check_say_what_is_there(url) -> None:
    code, out = run("store", "info", "--store", url, "--json")
    assert code == 0
    said = json.loads(out)
    assert (said["entries"], said["events"], said["last_seq"]) == (5, 4, 5)
    assert "events" in run("store", "info", "--store", url)[1]
    code, out = run("store", "check", "--store", url, "--json")
    assert (code, json.loads(out)["ok"]) == (0, True)


def test_a_projection_that_was_tampered_with_is_exit_1(tmp_path) -> None:
    import sqlite3

    url = f"sqlite:///{tmp_path}/h.db"
    with open_store(url) as store:
        store.append(Batch(EVENTS))
        store.work()
    with sqlite3.connect(tmp_path / "h.db") as connection:
        connection.execute("UPDATE publications SET end_ms = 7 WHERE uid = 'a'")
    connection.close()
    code, out = run("store", "check", "--store", url)
    assert code == 1
    assert "event a differs from the log" in out


def test_export_and_import_move_a_store_to_another_kind(url, tmp_path) -> None:
    file = tmp_path / "all.jsonl.gz"
    code, out = run("store", "export", file, "--store", url, "--json")
    assert (code, json.loads(out)["exported"]) == (0, 5)
    other = tmp_path / "other"
    assert run("store", "import", file, "--data-dir", other)[0] == 0
    assert ids("--data-dir", other) == ["c", "a", "b", "d"]
    assert run("store", "import", file, "--data-dir", other)[0] == 2, "it is not empty"
    assert run("store", "import", tmp_path / "nothing", "--data-dir", tmp_path / "x")[0] == 2


def test_migrate_says_the_version(tmp_path) -> None:
    code, out = run("store", "migrate", "--data-dir", tmp_path / "new", "--json")
    assert (code, json.loads(out)["version"]) == (0, HEAD)


def test_a_verb_of_spark_without_spark_says_what_to_install(monkeypatch, url) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    code, said = run("scan", "level any", "--store", url)
    assert code == 2
    assert "pip install 'kbn[spark]'" in said


@pytest.mark.parametrize("scheme", ["sqlite", "delta"])
def test_import_says_where_a_relative_store_is(url, scheme, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("store", "export", "all.jsonl", "--store", url)[0] == 0
    code, out = run("store", "import", "all.jsonl", "--store", f"{scheme}:///one")
    assert (code, out) == (0, f"5 entries imported: all.jsonl into {tmp_path / 'one'}\n")
    code, out = run("store", "import", "all.jsonl", "--store", f"{scheme}:///two", "--json")
    assert json.loads(out) == {"imported": 5, "file": "all.jsonl", "into": str(tmp_path / "two")}


def test_the_data_directory_may_come_from_the_environment(tmp_path, monkeypatch) -> None:
    with open_store(default_url(tmp_path)) as store:
        store.append(Batch(EVENTS))
    monkeypatch.setenv("KBN_DATA_DIR", str(tmp_path))
    assert ids() == ["c", "a", "b", "d"]
    assert run("store", "check")[0] == 0


@pytest.mark.parametrize("verb", [("history",), ("store", "info"), ("scan", "a any")])
def test_where_no_history_is_it_is_said_how_to_name_the_folder(verb, tmp_path) -> None:
    code, said = run(*verb, "--data-dir", tmp_path)
    assert code == 2
    assert "no such file: run it in the broker's folder, or say --data-dir DIR" in said


@pytest.mark.parametrize("verb", [("history",), ("sub", "a any")])
def test_an_age_in_other_units_is_answered_with_those_there_are(verb) -> None:
    code, said = run(*verb, "--since", "10m")
    assert code == 2
    assert "ms, s, min, h or d" in " ".join(said.replace("│", " ").split())


def test_what_history_prints_is_not_taken_for_events_and_it_is_said_why(url, tmp_path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(run("history", "--store", url, "--json")[1])
    code, said = run("match", "level any", "--events", path)
    assert (code, "line 1: this is not an event" in said) == (2, True), said
    assert "kbn store export" in said
    path.write_text('{"level": 1, "tags": [[1]]}\n')
    assert "this is not an event" not in run("match", "level any", "--events", path)[1]


def test_one_is_counted_in_the_singular(tmp_path) -> None:
    url = default_url(tmp_path)
    with open_store(url) as store:
        store.append(Batch(EVENTS[:1]))
    assert run("store", "check", "--store", url)[1] == "1 entry: nothing wrong\n"
    file = tmp_path / "out.jsonl"
    assert run("store", "export", file, "--store", url)[1].startswith("1 entry exported")
    assert [number_of(n, "file") for n in range(3)] == ["0 files", "1 file", "2 files"]
