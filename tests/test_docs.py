"""The pages are true: links lead somewhere and tables are complete; ``test_pages`` runs them."""

from __future__ import annotations

import dataclasses
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import kbn
from kbn import errors
from kbn.client.options import Options, Told
from tests.commands import verbs
from tests.pages import MADE, all_pages

ROOT = Path(__file__).parent.parent
PAGES = [*all_pages(), *(ROOT / name for name in MADE)]
BESIDE = runpy.run_path(str(ROOT / "docs" / "beside.py"))
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def links() -> list[tuple[str, str]]:
    return [
        (str(path.relative_to(ROOT)), target)
        for path in PAGES
        for target in _LINK.findall(path.read_text(encoding="utf-8"))
        if "://" not in target
    ]


@pytest.mark.parametrize(("name", "target"), links(), ids=str)
def test_a_link_leads_to_something_that_exists(name: str, target: str) -> None:
    place, _, anchor = target.partition("#")
    path = (ROOT / name).parent / place if place else ROOT / name
    assert path.exists(), f"{name} links to {target}"
    if anchor and path.is_file():
        text = path.read_text(encoding="utf-8")
        headings = {
            re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).strip().replace(" ", "-")
            for line in text.splitlines()
            if line.startswith("#")
        }
        assert f'id="{anchor}"' in text or anchor in headings


def codes() -> set[str]:
    found = set(errors.REFUSALS)
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, errors.KbnError):
            found.add(value.code)
    return found - {"internal"}


@pytest.mark.parametrize("code", sorted(codes()))
def test_every_error_code_is_explained(code: str) -> None:
    assert f"`{code}`" in page("docs/errors.md")


def test_every_option_of_the_client_is_listed() -> None:
    text = page("docs/python.md")
    for name in Told.__annotations__:
        assert f"`{name}`" in text, f"{name} is missing in docs/python.md"
    for field in dataclasses.fields(Options):
        if field.name in Told.__annotations__ and isinstance(field.default, float | int | tuple):
            assert f"`{field.name}` | {str(field.default).strip('`')}" in text.replace(
                "`True`", "True"
            ).replace("`False`", "False")


def test_what_the_package_offers_is_what_the_page_uses() -> None:
    for name in re.findall(r"\bkbn\.([A-Za-z_]+)", page("docs/python.md")):
        assert hasattr(kbn, name), f"kbn.{name}"


def test_the_reference_is_what_the_table_and_the_grammar_say() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))
    assert page("docs/reference.md") == made["reference"](), "run python docs/make_reference.py"


def test_the_page_of_the_command_line_is_what_the_command_has() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))
    text = made["commands"]()
    assert page("docs/commands.md") == text, "run python docs/make_reference.py"
    for name, verb in verbs().items():
        assert f"\n## kbn {name}\n" in text
        part = text.split(f"\n## kbn {name}\n")[1].split("\n## ")[0]
        assert all(f"`{option}" in part for p in verb.params for option in p.opts if "-" in option)


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = yaml.safe_load(page("mkdocs.yml"))["nav"]
    docs = ROOT / "docs"
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md")}
    pages |= {name for name in BESIDE["beside"]() if name.endswith(".md")}
    apart = {name for name in pages if re.match("decisions/|ontologies/.*/", name)}
    assert set(leaves(contents)) == pages - apart, "see nav in mkdocs.yml"


@pytest.mark.parametrize(
    ("page", "written", "led"),
    [
        ("index.md", "../case_studies/weather/README.md", "case_studies/weather/README.md"),
        ("ladder/5-patterns.md", "../../ontologies/README.md", "../ontologies/README.md"),
        ("ladder/5-patterns.md", "../history.md", "../history.md"),
        ("case_studies/weather/README.md", "../../docs/history.md", "../../history.md"),
        ("case_studies/weather/README.md", "picture.svg", "picture.svg"),
    ],
)
def test_a_link_to_what_lies_beside_the_docs_leads_there_in_the_site(
    page: str, written: str, led: str
) -> None:
    assert BESIDE["linked"](f"see [it]({written})", page) == f"see [it]({led})"


def leaves(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list):
        for entry in nav:
            yield from leaves(entry)
    elif isinstance(nav, dict):
        for entry in nav.values():
            yield from leaves(entry)


def promised() -> list[str]:
    return re.findall(r"`(tests/[^`]+)`", page("docs/promises.md"))


@pytest.mark.parametrize("name", promised())
def test_behind_every_promise_there_is_a_test(name: str) -> None:
    path, _, test = name.partition("::")
    assert (ROOT / path).is_file(), name
    if test:
        assert re.search(rf"\bdef {test}\(", page(path)), name
