"""``kbn ontology``, and the offline verbs with an ontology."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

HEAD = "@prefix x: <http://x/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"


@pytest.fixture
def kbn(tmp_path):
    """The command, in a directory and with a cache of its own."""

    def run(*arguments: str) -> tuple[int, str, str]:
        env = {
            **os.environ,
            "KBN_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": os.getcwd(),
            "PYTHONIOENCODING": "utf-8",
        }
        done = subprocess.run(
            [sys.executable, "-m", "kbn", *arguments],
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env=env,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.ttl").write_text(HEAD + "x:A rdfs:subClassOf x:B . x:i a x:A .")
    (tmp_path / "b.ttl").write_text(HEAD + "x:A rdfs:subClassOf x:C . x:i a x:A .")
    return tmp_path


def test_match_and_explain_take_files_and_our_own_names(kbn, files):
    asked = ("w is_a x:B", "--event", 'w="x:i"')
    assert kbn("match", *asked, "--ontology", "a.ttl")[:2] == (0, "match\n")
    assert kbn("match", *asked, "--ontology", "b.ttl")[:2] == (1, "no match\n")
    both = kbn("match", *asked, "--ontology", "b.ttl", "--ontology", "a.ttl")
    assert both[:2] == (0, "match\n")
    code, out, _ = kbn(
        *("explain", "w is_a wine:ItalianWine", "--event", 'w="wine:ChiantiClassico"'),
        *("--ontology", "wine"),
    )
    assert code == 0
    assert "ChiantiClassico → ItalianWine" in out


def test_covers_follows_the_class_order_only_with_an_ontology(kbn, files):
    pair = ("w is_a x:B", "w is_a x:A")
    assert kbn("covers", *pair)[0] == 1
    assert kbn("covers", *pair, "--ontology", "a.ttl")[0] == 0
    assert kbn("covers", *reversed(pair), "--ontology", "a.ttl")[0] == 1


def test_without_an_ontology_a_semantic_operator_exits_with_2(kbn):
    code, _, err = kbn("match", "w is_a x:B", "--event", 'w="x:i"')
    assert code == 2
    assert "no_ontology" in err


def test_what_is_loaded_is_the_default_of_the_other_verbs(kbn, files):
    code, out, _ = kbn("ontology", "load", "a.ttl", "--json")
    assert code == 0
    assert json.loads(out)["loaded"] == ["a"]
    assert kbn("match", "w is_a x:B", "--event", 'w="x:i"')[0] == 0
    assert kbn("covers", "w is_a x:B", "w is_a x:A")[0] == 0
    elsewhere = ("--data-dir", "elsewhere")
    assert kbn("match", "w is_a x:B", "--event", 'w="x:i"', *elsewhere)[0] == 2
    listed = json.loads(kbn("ontology", "list", "--json")[1])
    assert [each["name"] for each in listed["ontologies"]] == ["a"]
    assert listed["hash"] == json.loads(out)["hash"]
    assert listed["cached"]
    assert "a.ttl" in kbn("ontology", "list")[1]
    assert kbn("ontology", "remove", "a")[0] == 0
    assert "no ontology" in kbn("ontology", "list")[1]
    assert kbn("ontology", "remove", "a")[0] == 2


def test_check_exits_with_0_fine_1_warned_2_refused(kbn, files):
    assert kbn("ontology", "check", "a.ttl")[0] == 0
    text = HEAD + (
        "x:A <http://www.w3.org/2002/07/owl#disjointWith> x:B . x:i a x:A , x:B ."
        " <http://x/o> <http://www.w3.org/2002/07/owl#imports> <http://x/far> ."
    )
    (files / "odd.ttl").write_text(text)
    code, out, _ = kbn("ontology", "check", "odd.ttl", "--json", "--reasoner", "owlrl")
    said = json.loads(out)
    assert code == 1
    assert said["reasoner"] == "owlrl"
    assert len(said["warnings"]) == 2
    (files / "bad.ttl").write_text("nonsense")
    code, _, err = kbn("ontology", "check", "bad.ttl")
    assert code == 2
    assert "bad.ttl" in err
    assert kbn("ontology", "check", "no-such-file")[0] == 2


def test_both_reasoners_give_one_hash(kbn):
    hashes = {
        json.loads(kbn("ontology", "check", "wine", "--json", "--reasoner", name)[1])["hash"]
        for name in ("owlrl", "reasonable")
    }
    assert len(hashes) == 1


def test_a_catalogue_answers_imports(kbn, files):
    imports = "<http://x/o> <http://www.w3.org/2002/07/owl#imports> <http://x/far> ."
    (files / "o.ttl").write_text(HEAD + imports)
    (files / "catalogue.json").write_text('{"http://x/far": "a.ttl"}')
    assert kbn("ontology", "check", "o.ttl")[0] == 1
    assert kbn("ontology", "check", "o.ttl", "--catalogue", "catalogue.json")[0] == 0
    (files / "catalogue.json").write_text("[]")
    assert kbn("ontology", "check", "o.ttl", "--catalogue", "catalogue.json")[0] == 2


def test_show_tells_super_and_sub_terms_types_relations_and_why(kbn, files):
    code, out, _ = kbn("ontology", "show", "x:i", "--ontology", "a.ttl")
    assert code == 0
    assert "i → A → B" in out
    code, out, _ = kbn("ontology", "show", "x:B", "--ontology", "a.ttl", "--json")
    said = json.loads(out)
    assert (code, said["kind"], said["below"][0]["term"]) == (0, "class", "x:A")
    assert kbn("ontology", "show", "x:nope", "--ontology", "a.ttl")[0] == 1
    assert kbn("ontology", "show", "x:i")[0] == 2


def test_show_draws_a_picture(kbn, files):
    kbn("ontology", "show", "wine:Barolo", "--ontology", "wine", "--svg", "barolo.svg")
    assert (files / "barolo.svg").read_text(encoding="utf-8").startswith("<svg")


def test_diff_says_what_changes_and_for_whom(kbn, files):
    assert kbn("ontology", "diff", "a.ttl", "a.ttl")[:2] == (0, "the same\n")
    (files / "subs").write_text('w is_a x:B\nw = 5\n{"any":[{"all":[["w","is_a","x:C"]]}]}\n')
    code, out, _ = kbn("ontology", "diff", "a.ttl", "b.ttl", "--subscriptions", "subs")
    assert code == 1
    assert "- x:B" in out
    assert "would match differently: w is_a x:B" in out
    assert "x:B is no longer known" in out
    said = json.loads(
        kbn("ontology", "diff", "a.ttl", "b.ttl", "--subscriptions", "subs", "--json")[1]
    )
    assert said["types"]["added"] == ["x:i is_a x:C"]
    assert [one["subscription"] for one in said["subscriptions"]] == ["w is_a x:B", "w is_a x:C"]
    kbn("ontology", "load", "a.ttl", "--data-dir", "d")
    assert kbn("ontology", "diff", "d", "a.ttl")[0] == 0


def test_skos_is_read_as_classes_when_asked_for(kbn, files):
    broader = "<http://www.w3.org/2004/02/skos/core#broader>"
    (files / "s.ttl").write_text(f"{HEAD} x:a {broader} x:b .")
    kbn("ontology", "load", "s.ttl", "--skos")
    assert kbn("match", "w more_specific x:b", "--event", 'w="x:a"')[0] == 0
    assert kbn("match", "w more_specific x:b", "--event", 'w="x:a"', "--ontology", "s.ttl")[0] == 1


def test_a_running_broker_is_taught_and_asked(tmp_path, files) -> None:
    from tests.server.processes import kbn as run
    from tests.server.processes import served

    (tmp_path / "new.ttl").write_text(HEAD + "x:A rdfs:subClassOf x:C . x:i a x:A .")
    with served(tmp_path, "--data-dir", str(tmp_path / "data")) as broker:
        at = ("--broker", broker.url)
        done = run("ontology", "load", "a.ttl", *at, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("loaded a.ttl; 4 terms")
        listed = json.loads(run("ontology", "list", "--json", *at, cwd=tmp_path).stdout)
        assert [one["name"] for one in listed["ontologies"]] == ["a"]
        diff = ("ontology", "diff", "a.ttl", "new.ttl", "--json", *at)
        assert json.loads(run(*diff, cwd=tmp_path).stdout)["subscriptions"] == []
        sub = subprocess.Popen(
            [sys.executable, "-m", "kbn", "sub", "w is_a x:B", "--count", "1", *at],
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.getcwd()},
        )
        try:
            while not (rows := run("subs", "--json", *at, cwd=tmp_path).stdout.splitlines()):
                assert sub.poll() is None
            assert "unknown" not in json.loads(rows[0])
            told = json.loads(run(*diff, cwd=tmp_path).stdout)
            assert told["subscriptions"][0]["constraints"][0]["lost"] == ["x:i"]
            assert run("pub", 'w="x:i"', *at, cwd=tmp_path).returncode == 0
            assert sub.communicate(timeout=60)[0].strip() == 'w="x:i"'
        finally:
            sub.kill()
            sub.wait()
        bad = run("ontology", "remove", "b", *at, cwd=tmp_path)
        assert (bad.returncode, "is not loaded" in bad.stderr) == (2, True)
        assert run("ontology", "remove", "a", *at, cwd=tmp_path).returncode == 0
        asked = run("sub", "w is_a x:B", *at, cwd=tmp_path)
        assert (asked.returncode, "no_ontology" in asked.stderr) == (2, True)
        run("ontology", "load", "a.ttl", *at, cwd=tmp_path)
    found = run("history", "w is_a x:B", "--data-dir", "data", "--json", cwd=tmp_path)
    assert json.loads(found.stdout)["event"] == {"w": "x:i"}
    assert run("history", "w is_a x:A", "--data-dir", "data", cwd=tmp_path).returncode == 0
    other = run(
        "history", "w is_a x:B", "--ontology", "new.ttl", "--data-dir", "data", cwd=tmp_path
    )
    assert other.returncode == 1


def test_without_a_broker_named_it_is_said_where_the_ontology_went(kbn, files):
    where = "kbn-data: a broker reads it when it starts; --broker URL teaches a running one\n"
    assert kbn("ontology", "load", "a.ttl")[2] == f"into {where}"
    assert kbn("ontology", "list")[2] == f"of {where}"
    assert kbn("ontology", "list", "--json")[2] == ""
    assert kbn("ontology", "remove", "a")[2] == f"out of {where}"


def test_a_semantic_operator_without_an_ontology_says_how_to_get_one(kbn):
    code, _, err = kbn("match", "w is_a x:B", "--event", 'w="x:i"')
    assert code == 2
    assert "`kbn ontology load FILE --broker URL` (ours: wine, nebraska, units, events)" in err
