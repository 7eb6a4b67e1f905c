"""What stands between the blocks of a page, and in help: commands, options, keys and metrics."""

from __future__ import annotations

import asyncio
import builtins
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import pytest

import senp
from kbn import errors
from kbn.client.aio import Client
from kbn.client.stream import Stream
from kbn.language import parse_event
from kbn.server import config
from kbn.server.metrics import BrokerMetrics
from tests.commands import check, commands_in, make_targets, options_of, verb_of, verbs
from tests.pages import all_pages, name_of
from tests.server.processes import ROOT
from tests.sockets import running

PAGES = all_pages()
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
#: What a sentence leaves open: a word in capitals, a piece left out, an option in brackets.
_PLACEHOLDER = re.compile(r"…|\b[A-Z]{2,}\b|\[--")
_FILE = re.compile(
    r"(kbn|senp|datastore|tests|docs|case_studies|ontologies|benchmarks|fuzz)/[\w./-]*"
)
_DOTTED = re.compile(r"(?:kbn|senp|datastore|case_studies|ontologies)(?:\.[A-Za-z_]\w*)+(?![\w/])")
#: What looks like a name of Python and is a property of a Delta table.
_PROPERTIES = {"kbn.flat", "kbn.promoted", "kbn.store"}
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def inline(pattern: str) -> list[tuple[str, str]]:
    """Pieces of code within sentences, with their pages."""
    return [
        (name_of(path), code)
        for path in PAGES
        for code in _INLINE.findall(path.read_text(encoding="utf-8"))
        if re.match(pattern, code)
    ]


@pytest.mark.parametrize(("page", "code"), inline(r"(\.venv/bin/)?kbn [a-z]"), ids=str)
def test_a_command_within_a_sentence_names_a_verb_and_its_options(page: str, code: str) -> None:
    (command, *_) = commands_in(code.replace("[", "").replace("]", "").removesuffix("…"))
    for verb in command[1].split("|"):
        called = [verb, *command[2:]]
        verb_of(called)
        assert set(_OPTION.findall(" ".join(called))) <= options_of(called), page
    if not _PLACEHOLDER.search(code) and "|" not in command[1]:
        ((_, *called),) = commands_in(code)
        # Within a sentence a verb may stand without what it is about.
        check(called, needs_all=False)


def _known_options() -> set[str]:
    found = set().union(*(options_of(verb.split()) for verb in verbs()))
    return found | _spelled("case_studies.weather") | _spelled("case_studies.dynamic_logging")


def _spelled(module: str) -> set[str]:
    """Options of a program of ours: those in quotes in it, or in what its package shares."""
    package, name = module.split(".")[:2]
    folder = ROOT / package
    own = folder / f"{name}.py"
    files = [own if own.is_file() else folder / name / "__main__.py"]
    files += [*folder.glob("_*.py"), *folder.glob("options.py")]
    if module.count(".") > 1:  # a program within a study
        files += folder.glob(f"{name}/*.py")
    return {option for file in files for option in re.findall(r'"(--[a-z-]+)"', file.read_text())}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_option_named_alone_is_one_of_some_verb(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    alone = {code.split()[0] for code in _INLINE.findall(text) if _OPTION.match(code)}
    # `--quick` belongs to the benchmark named beside it.
    named = {option for name in _modules(text) - _OTHERS for option in _spelled(name)}
    assert {option.split("=")[0] for option in alone} <= _known_options() | named


#: Programs that are not ours, and generators without options.
_OTHERS = {"pip", "pytest", "ontologies.nebraska.generate", "ontologies.wine.generate"}


def _modules(text: str) -> set[str]:
    return set(re.findall(r"python -m ([a-z_]+(?:\.[a-z_]+)*)", text))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_programs_and_rules_that_a_page_names_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for module in _modules(text) - _OTHERS:
        assert find_spec(module) is not None, module
    for line in re.findall(r"python -m (benchmarks|fuzz)\.([^`\n]+)", text):
        module, *words = f"{line[0]}.{line[1]}".split()
        assert set(_OPTION.findall(" ".join(words))) <= _spelled(module), module
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for extra in re.findall(r"\bkbn\[([a-z,]+)\]", text):
        assert set(extra.split(",")) <= set(extras), extra
    for targets in re.findall(r"`make ([a-z -]+)`", text):
        assert set(targets.split()) <= make_targets(), targets


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_keys_variables_and_metrics_that_a_page_names_exist(path: Path) -> None:
    text = " ".join(_INLINE.findall(path.read_text(encoding="utf-8")))
    keys = set(config.known_keys())
    named = re.findall(r"\b(?:limits|times|retention|tls|handlers)\.[a-z_]+", text)
    assert set(named) <= keys
    variables = set(re.findall(r"\bKBN_[A-Z_]+", text))
    known = {config.variable(key) for key in keys} | _of_programs() | _ON_THE_WIRE
    assert variables <= known
    metrics = set(re.findall(r"\bkbn_[a-z_]+", text))
    assert metrics <= _metrics(), metrics - _metrics()


#: Attributes of events, which begin as variables do.
_ON_THE_WIRE = {"KBN_PUB_TYPE", "KBN_START_TIME", "KBN_END_TIME"}


def _of_programs() -> set[str]:
    """Variables that are read beside the configuration: by verbs, by caches, by the tests."""
    sources = [p for place in ("kbn", "tests/conftest.py") for p in _files(ROOT / place)]
    return {name for p in sources for name in re.findall(r'"(KBN_[A-Z_]+)"', p.read_text())}


def _files(place: Path) -> Iterator[Path]:
    yield from [place] if place.is_file() else place.rglob("*.py")


@cache
def _metrics() -> set[str]:
    """Everything a broker counts: with a history, and what stands in its code for other stores."""

    async def ask() -> str:
        async with running(store="memory:", master="ka://127.0.0.1:9") as broker:
            return BrokerMetrics(broker.state).page().decode()

    said = re.findall(r"^# TYPE (\w+)", asyncio.run(ask()), re.M)
    source = "".join(path.read_text() for path in _files(ROOT / "kbn" / "server"))
    named = re.findall(r'"(kbn_[a-z_]+)"', source)
    return {*said, *named, *(f"{name}_total" for name in named)}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_files_that_a_page_names_exist(path: Path) -> None:
    named = [code.partition("::")[0] for code in _INLINE.findall(path.read_text("utf-8"))]
    missing = [code for code in named if _FILE.fullmatch(code) and not (ROOT / code).exists()]
    assert missing == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_names_of_python_that_a_page_uses_exist(path: Path) -> None:
    for code in _INLINE.findall(path.read_text("utf-8")):
        found = _DOTTED.match(code)
        if found is not None and found[0] not in _PROPERTIES:
            assert resolve_name(found[0]) is not None, code
        elif re.fullmatch(r"[A-Z]\w+Error", code):
            assert any(hasattr(place, code) for place in (errors, senp, builtins)), code


@pytest.mark.parametrize(("letter", "kind"), [("c", Client), ("stream", Stream)])
def test_what_the_page_of_the_client_calls_is_there(letter: str, kind: type) -> None:
    text = (ROOT / "docs" / "python.md").read_text("utf-8")
    used = set(re.findall(rf"`[^`\n]*\b{letter}\.([a-z_]+)", text))
    assert len(used) > 3
    assert {name for name in used if not hasattr(kind, name)} == set()


# --- help ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(verbs()))
def test_what_help_gives_as_an_example_is_one(name: str) -> None:
    verb = verbs()[name]
    told = [verb.help or "", verb.epilog or "", *(p.help or "" for p in verb.params)]
    for text in told:
        for event in re.findall(r"[Ss]uch as '([^']+)'", text):
            parse_event(event)
        for code in re.findall(r"`(kbn [^`]+)`", text):
            (command,) = commands_in(code)
            check(command[1:], needs_all=False)
        # An option of another verb may be spoken of, one of no verb may not.
        assert set(_OPTION.findall(text)) <= _known_options(), text
