"""Every block of every page: run as a reader would, or at least read by what it is for."""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from case_studies import options
from datastore.delta.schema import HEAD
from kbn.broker import accounting
from kbn.language import loads_subscription, parse_event, parse_subscription
from kbn.server import config
from senp import decode
from tests.commands import (
    ELSEWHERE,
    OTHERS,
    check,
    commands_in,
    make_targets,
    on_spark,
)
from tests.pages import Block, PageError, all_pages, blocks, matches, name_of
from tests.reader import Reader
from tests.reading import read_through
from tests.server.processes import ROOT
from tests.sockets import Raw, over_sockets, port_of, running

PAGES = all_pages()


def readable(path: Path) -> list[Block]:
    """The blocks of a page, none if it has faults: those are one test's business."""
    try:
        return blocks(path)
    except PageError:
        return []


def needs_spark(path: Path) -> bool:
    """Whether a page is read in ``tests/spark``, where there is one session for all."""
    return any(
        any(map(on_spark, commands_in(block.text)))
        if block.language == "sh"
        else "spark." in block.text
        for block in readable(path)
        if block.kind in (("sh", None), ("sh", "no broker"), ("python", None))
    )


def typed(path: Path) -> bool:
    return any(block.runs for block in readable(path))


# --- run -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [p for p in PAGES if typed(p) and not needs_spark(p)], ids=name_of
)
def test_every_block_of_a_page_does_what_the_page_says(path: Path, tmp_path: Path) -> None:
    assert read_through(path, Reader(tmp_path)) > 0


def test_the_broker_of_the_pages_is_what_make_run_starts() -> None:
    rule = (ROOT / "Makefile").read_text(encoding="utf-8").split("\nrun:")[1].split("\n\n")[0]
    assert "/kbn serve" in rule


def test_from_a_fresh_clone_to_the_first_notification_it_is_three_commands() -> None:
    told: list[str] = []
    for block in blocks(ROOT / "README.md"):
        if block.kind == ("text", "listener"):
            break
        told += block.text.splitlines() if block.language == "sh" else []
    else:
        pytest.fail("README shows no notification")
    assert [line.split()[0] for line in told] == ["make", ".venv/bin/kbn", ".venv/bin/kbn"]
    assert told[0] == "make run"


# --- read --------------------------------------------------------------------------------------


def _filters(block: Block) -> None:
    """One after the other; a line that is indented goes on."""
    asked = re.split(r"\n(?!\s)", block.text.strip("\n"))
    for text in asked:
        parse_subscription(text)


def _events(block: Block) -> None:
    for line in block.text.splitlines():
        parse_event(line)


def _packets(block: Block) -> None:
    """Every packet can be decoded, but one that is answered by the error of not being one."""
    lines = [line for line in block.text.splitlines() if line]
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        # What is left out of a packet on the page is left out here.
        packet = re.sub(r"^[→←] ", "", line).replace("=…", "=0")
        packet = re.sub(r"(?<=[\s{\[])…\s?", "", packet)
        if "ERR" in after:
            with pytest.raises(Exception, match="at byte 57"):
                decode(packet.encode())
        else:
            decode(packet.encode())


def _configuration(block: Block) -> None:
    """A broker would take it, and every principal's filters."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(block.text)
        file.flush()
        made = config.load(Path(file.name), {}, {})
    for principal in made.principals:
        parse_subscription(principal.publish or "")
        parse_subscription(principal.subscribe or "")


def _json(block: Block) -> None:
    loads_subscription(block.text)


def _elsewhere(block: Block) -> None:
    """What cannot be run has a reason, and is spelled as its program wants it."""
    found = commands_in(block.text)
    assert found, f"{block.place}: nothing is typed here"
    for words in found:
        why = f"{block.place}: {words[0]} can be run: make it sh, or say why not"
        assert words[0] in ELSEWHERE, why
        if words[0] == "kbn":
            check(words[1:])
        elif words[0] == "make":
            assert set(words[1:]) <= make_targets(), block.place
        elif words[:2] == ["docker", "compose"]:
            services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
            scaled = re.findall(r"--scale (\S+)=", " ".join(words))
            assert set(scaled) <= set(services), block.place


def _other_programs(block: Block) -> None:
    """Programs of others that read our files: what they name is there."""
    first = ast.parse(block.text, block.place).body[0]
    assert isinstance(first, ast.Import), f"{block.place}: it should import {block.title}"
    assert first.names[0].name == block.title, block.place
    columns = set(re.findall(r'(?:col|group_by)\("(\w+)"\)', block.text))
    assert columns <= {name for name, _ in HEAD}, f"{block.place}: {columns}"


def _options(block: Block) -> None:
    known = options.parser("any", "").format_help()
    for line in block.text.splitlines():
        assert f"{line.split()[0]} " in known.replace("\n", " "), f"{block.place}: {line}"


def _laws(block: Block) -> None:
    """As the module has them that keeps the books."""
    for line in block.text.splitlines():
        assert f"    {line}\n" in (accounting.__doc__ or ""), f"{block.place}: {line}"


def _ran(block: Block) -> None:
    """Compared while the page was read; here only what such a block may be."""
    assert block.text.strip(), block.place


#: Every kind of block there is, and who reads it.
KINDS: dict[tuple[str, str | None], Callable[[Block], None]] = {
    ("sh", None): _ran,
    ("sh", "broker"): _ran,
    ("sh", "listener"): _ran,
    ("sh", "no broker"): _ran,
    ("console", None): _elsewhere,
    ("python", None): _ran,
    ("python", "connected"): _ran,
    **{("python", package): _other_programs for package in OTHERS},
    ("text", None): _ran,
    ("text", "error"): _ran,
    ("text", "listener"): _ran,
    ("text", "broker"): _ran,
    ("text", "options"): _options,
    ("text", "laws"): _laws,
    ("filter", None): _filters,
    ("event", None): _events,
    ("senp", None): _packets,
    ("senp", "session"): _packets,
    ("toml", None): _configuration,
    ("json", None): _json,
}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_block_says_what_it_is_and_is_that(path: Path) -> None:
    before: Block | None = None
    for block in blocks(path):
        assert block.kind in KINDS, f"{block.place}: a block nobody can run or read: {block.kind}"
        KINDS[block.kind](block)
        if block.kind in (("text", None), ("text", "error")):
            runs = before is not None and before.runs
            assert runs, f"{block.place}: output, and nothing before it that prints"
        before = block


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("So:\n\n    kbn who\n", r":3: an indented block"),
        ("```sh\nkbn who\n", r":1: a fence that is not closed"),
        ("```\nkbn who\n```\n", r":1: write a fence"),
        ("- a list\n\n  ```sh\n", r":3: write a fence"),
    ],
)
def test_code_that_does_not_say_what_it_is_is_named_by_its_line(
    text: str, problem: str, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(PageError, match=problem):
        blocks(page)


@over_sockets
async def test_the_session_of_the_wire_is_what_a_broker_says() -> None:
    (block,) = [b for b in blocks(ROOT / "docs" / "wire.md") if b.kind == ("senp", "session")]
    async with running() as broker:
        peer = await Raw.open(port_of(broker))
        heard: list[str] = []
        for line in block.text.splitlines():
            way, packet = line.split(" ", 1)
            if way == "→":
                await peer.send(packet.replace("…", "x"))
                continue
            if not heard:
                heard = [await peer.receive()]
            said = heard.pop()
            assert matches(said, packet), said
        await peer.close()


# --- what is shown -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "expected", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("id 7f\nrest\nmore\nend", "id …\n…\nend\n", True),
        ("x\nend", "…\nend\n", True),
        ("end", "…\nend\n", True),
        ("a b c", "a … c", True),
        ("a b d", "a … c", False),
        ("price < 5 (x)", "price < 5 (x)", True),
    ],
)
def test_an_ellipsis_stands_for_anything_and_nothing_else_does(
    said: str, expected: str, same: bool
) -> None:
    assert matches(said, expected) is same


def test_the_commands_of_a_block_are_found_as_a_shell_finds_them() -> None:
    text = (
        "id=$(kbn pub 'a=1')  # one\nkbn pub <<'E' | tail -n 1\nkbn no\nE\nX=1 kbn sub 'b #= 1'\n"
    )
    assert commands_in(text) == [
        ["kbn", "pub", "a=1"],
        ["kbn", "pub"],
        ["tail", "-n", "1"],
        ["kbn", "sub", "b #= 1"],
    ]


@pytest.mark.parametrize(
    "wrong",
    ["sub --no 'a any'", "sup 'a any'", "sub 'a <'", "serve --limits-quue 1"],
)
def test_a_command_that_is_misspelled_is_noticed(wrong: str) -> None:
    ((_, *words),) = commands_in(f"kbn {wrong}")
    with pytest.raises(Exception, match=r"no verb|No such option|ends too early|unknown option"):
        check(words)
