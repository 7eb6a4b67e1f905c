"""The pages are true: links lead somewhere, tables are complete, examples run."""

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
from kbn.language import parse_subscription
from tests.sockets import over_sockets, running, url_of

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    path
    for place in (".", "docs", "docs/decisions", "docs/ladder", "case_studies", "case_studies/*")
    for path in ROOT.glob(f"{place}/*.md")
)
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


def test_every_filter_of_the_quick_start_is_one() -> None:
    asked = re.findall(r"kbn (?:sub|match)[^'\n]*'([^']+)'", page("docs/quickstart.md"))
    assert len(asked) >= 5
    for text in asked:
        parse_subscription(text)


@over_sockets
async def test_the_first_example_of_the_client_runs_as_it_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    block = (
        page("docs/python.md").split("\n\n    asyncio.run")[0].split("# The Python client\n")[1]
    )
    source = "\n".join(line.removeprefix("    ") for line in block.splitlines())
    async with running() as broker:
        scope: dict[str, object] = {}
        exec(source.replace("ka://127.0.0.1:1969", url_of(broker)), scope)
        await scope["main"]()  # type: ignore[operator]
    assert capsys.readouterr().out.startswith("79.5 ")


def test_what_the_package_offers_is_what_the_page_uses() -> None:
    for name in re.findall(r"\bkbn\.([A-Za-z_]+)", page("docs/python.md")):
        assert hasattr(kbn, name), f"kbn.{name}"


def test_the_reference_is_what_the_table_and_the_grammar_say() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))
    assert page("docs/reference.md") == made["reference"](), "run python docs/make_reference.py"


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = yaml.safe_load(page("mkdocs.yml"))["nav"]
    docs = ROOT / "docs"
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md")}
    decisions = {name for name in pages if name.startswith("decisions/")}
    assert set(leaves(contents)) == pages - decisions, "see nav in mkdocs.yml"


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
