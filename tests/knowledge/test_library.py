"""The cache, and the ontologies of a data directory."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kbn.errors import MalformedError, OntologyError
from kbn.knowledge import build, cache
from kbn.knowledge.build import obtain
from kbn.knowledge.cache import Cache
from kbn.knowledge.library import Library
from kbn.knowledge.request import Limits, Request, Source
from tests.knowledge.ask import HEAD, ask, source

ONE = source(":A rdfs:subClassOf :B .", "one.ttl")
TWO = source(":B rdfs:subClassOf :C .", "two.ttl")


@pytest.fixture
def counted(monkeypatch):
    """How often a worker ran."""
    runs = []
    really = build.run_worker

    def run(request):
        runs.append(request)
        return really(request)

    monkeypatch.setattr(build, "run_worker", run)
    return runs


def test_the_second_time_the_cache_answers(tmp_path, counted):
    first = obtain(Request((ONE,)), Cache(tmp_path))
    again = obtain(Request((ONE,)), Cache(tmp_path))
    assert (first.cached, again.cached) == (False, True)
    assert first.hierarchy.hash == again.hierarchy.hash
    assert first.warnings == again.warnings
    assert len(counted) == 1


def test_the_cache_answers_without_importing_rdflib(tmp_path):
    path = tmp_path / "one.ttl"
    path.write_bytes(ONE.data)
    code = (
        "import sys\nfrom pathlib import Path\nfrom kbn.knowledge.build import obtain\n"
        "from kbn.knowledge.cache import Cache\n"
        "from kbn.knowledge.request import Request, Source\n"
        "built = obtain(Request((Source.read(Path(sys.argv[1])),)), Cache(Path(sys.argv[2])))\n"
        "print(built.cached, any(name in sys.modules for name in ('rdflib', 'owlrl')))\n"
    )
    call = [sys.executable, "-c", code, str(path), str(tmp_path / "cache")]
    outputs = [subprocess.check_output(call, text=True) for _ in range(2)]
    assert outputs == ["False False\n", "True False\n"]


def test_the_key_covers_all_that_decides_the_result(tmp_path):
    base = Request((ONE,))
    imported = tmp_path / "i.ttl"
    imported.write_text("")
    linked = replace(base, catalogue=(("http://i", str(imported)),))
    keys = {
        base.key(),
        replace(base, sources=(TWO,)).key(),
        replace(base, sources=(ONE, TWO)).key(),
        replace(base, sources=(TWO, ONE)).key(),
        replace(base, sources=(replace(ONE, format="nt"),)).key(),
        replace(base, sources=(replace(ONE, skos=True),)).key(),
        replace(base, prefixes=(("p", "http://p"),)).key(),
        replace(base, reasoner="owlrl").key(),
        replace(base, limits=Limits(max_list=5)).key(),
        linked.key(),
    }
    imported.write_text("#")
    keys.add(linked.key())
    assert len(keys) == 11
    assert base.key() == Request((ONE,)).key()


def test_a_damaged_entry_is_made_anew(tmp_path, counted):
    obtain(Request((ONE,)), Cache(tmp_path))
    (entry,) = tmp_path.glob("*.kbnh")
    entry.write_bytes(entry.read_bytes()[:-1])
    assert not obtain(Request((ONE,)), Cache(tmp_path)).cached
    entry.write_bytes(b"{}")
    assert not obtain(Request((ONE,)), Cache(tmp_path)).cached
    assert len(counted) == 3
    assert obtain(Request((ONE,)), Cache(tmp_path)).cached


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert not obtain(Request((ONE,)), Cache(blocked / "cache")).cached


def test_old_entries_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "KEPT", 2)
    held = Cache(tmp_path)
    for key in "abc":
        held.put(key, b"x")
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_refused_is_not_remembered(tmp_path, counted):
    bad = Request((Source("bad.ttl", b"nonsense", "turtle"),))
    for _ in range(2):
        with pytest.raises(OntologyError):
            obtain(bad, Cache(tmp_path))
    assert len(counted) == 2


# --- the library -----------------------------------------------------------------------------


def test_an_empty_library_knows_nothing(tmp_path):
    assert Library(tmp_path).current() is None
    assert Library(tmp_path).entries == ()


def test_loaded_files_are_there_at_the_next_start(tmp_path):
    for each in (ONE, TWO):
        Library(tmp_path).prepare_load(each).commit()
    library = Library(tmp_path)
    assert [entry.name for entry in library.entries] == ["one", "two"]
    current = library.current()
    assert current is not None
    assert current.cached
    assert ask(current.hierarchy, "x:A more_specific x:C")


def test_a_change_counts_when_it_is_committed(tmp_path):
    library = Library(tmp_path)
    change = library.prepare_load(ONE)
    assert library.current() is None
    assert change.built is not None
    assert ask(change.built.hierarchy, "x:A more_specific x:B")
    change.commit()
    assert library.current().hierarchy.hash == change.built.hierarchy.hash


def test_the_same_name_replaces_in_its_place(tmp_path):
    library = Library(tmp_path)
    for each in (ONE, TWO, source(":A rdfs:subClassOf :Z .", "one.ttl")):
        library.prepare_load(each).commit()
    assert [entry.name for entry in library.entries] == ["one", "two"]
    known = library.current().hierarchy
    assert ask(known, "x:A more_specific x:Z")
    assert not ask(known, "x:A more_specific x:B")
    assert len(list((library.directory / "files").iterdir())) == 2


def test_what_is_removed_is_gone_with_its_terms(tmp_path):
    library = Library(tmp_path)
    for each in (ONE, TWO):
        library.prepare_load(each).commit()
    library.prepare_remove("one").commit()
    assert not library.current().hierarchy.knows("x:A")
    last = library.prepare_remove("two")
    assert last.built is None
    last.commit()
    assert library.current() is None
    with pytest.raises(OntologyError, match="not loaded"):
        library.prepare_remove("two")


def test_a_refused_file_changes_nothing(tmp_path):
    library = Library(tmp_path)
    library.prepare_load(ONE).commit()
    with pytest.raises(OntologyError):
        library.prepare_load(Source("bad.ttl", b"nonsense", "turtle"))
    assert [entry.name for entry in library.entries] == ["one"]
    assert len(list((library.directory / "files").iterdir())) == 1
    assert library.current() is not None


def test_the_catalogue_is_kept_with_the_file(tmp_path):
    food = tmp_path / "food.ttl"
    food.write_text(HEAD + ":B rdfs:subClassOf :C .")
    importing = source(
        "<http://x/o> owl:imports <http://x/food> . :A rdfs:subClassOf :B .", "wine.ttl"
    )
    library = Library(tmp_path / "data")
    library.prepare_load(importing, catalogue={"http://x/food": food}).commit()
    food.unlink()
    for path in (library.directory / "cache").iterdir():
        path.unlink()
    again = Library(tmp_path / "data").current()
    assert again.warnings == ()
    assert ask(again.hierarchy, "x:A more_specific x:C")


def test_an_index_that_cannot_be_read_is_named(tmp_path):
    library = Library(tmp_path)
    library.directory.mkdir()
    for text in ("nonsense", "{}", json.dumps({"entries": [{"odd": 1}], "imports": []})):
        (library.directory / "library.json").write_text(text)
        with pytest.raises(MalformedError, match=r"library\.json"):
            library.current()


def test_the_default_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("KBN_CACHE_DIR", str(tmp_path))
    assert cache.default_cache().directory == tmp_path / "ontologies"
    monkeypatch.delenv("KBN_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.default_cache().directory == tmp_path / "kbn" / "ontologies"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert Path(".cache", "kbn") == cache.default_cache().directory.relative_to(Path.home()).parent
