"""Every block of the ladder, run as a reader would: in a shell, against a real broker.

``sh`` blocks are run in order in one folder. Named *broker*, the block starts the broker
(which the test does, on a free port); named *listener*, it runs beside the others from the
moment the broker holds its subscription. A ``text`` block is what the block before it
prints; ``…`` stands for anything, a line that is only that for any lines.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import kbn
from tests.server.processes import ROOT, environment, served
from tests.sockets import DEADLINE

PAGES = sorted((ROOT / "docs" / "ladder").glob("[0-9]-*.md"))
_FENCE = re.compile(r'^```(\w+)(?: title="(\w+)")?\n(.*?)^```$', re.M | re.S)
DEFAULT_URL = "ka://127.0.0.1:1969"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its name, what is in it."""

    language: str
    name: str | None
    text: str


def blocks(path: Path) -> list[Block]:
    found = _FENCE.findall(path.read_text(encoding="utf-8"))
    return [Block(language, name or None, text) for language, name, text in found]


def matches(said: str, expected: str) -> bool:
    """Whether output is as the page has it, ``…`` standing for anything."""
    lines = [re.escape(line).replace("…", ".*") for line in expected.rstrip("\n").split("\n")]
    pattern = "\n".join("(?:.*\n?)*?" if line == ".*" else line for line in lines)
    # A line of anything may be several, or none: its own line break is optional then.
    pattern = pattern.replace("(?:.*\n?)*?\n", "(?:.*\n)*?")
    return re.fullmatch(pattern, said.rstrip("\n")) is not None


class Reader:
    """Somebody with a shell, who types what a page says."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        bin_dir = folder / "bin"
        bin_dir.mkdir()
        shim = bin_dir / "kbn"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kbn "$@"\n')
        shim.chmod(0o755)
        self.environment = environment(KBN_BROKER=url)
        self.environment["PATH"] = f"{bin_dir}:{self.environment['PATH']}"
        self.listener: subprocess.Popen[str] | None = None

    def shell(self, text: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", text.replace(DEFAULT_URL, self.url)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, text: str) -> tuple[int, str, str]:
        process = self.shell(text)
        said, complained = process.communicate(timeout=3 * DEADLINE)
        return process.returncode, said, complained

    def listen(self, text: str) -> None:
        """Start a listener; returns when the broker holds its subscription."""
        before = self._subscriptions()
        self.listener = self.shell(text)
        end = time.monotonic() + DEADLINE
        while self._subscriptions() == before:
            assert self.listener.poll() is None, self.listener.communicate()
            assert time.monotonic() < end, f"nobody subscribed: {text}"

    def heard(self) -> str:
        assert self.listener is not None, "nobody listens on this page"
        said, complained = self.listener.communicate(timeout=DEADLINE)
        assert self.listener.returncode == 0, complained
        self.listener = None
        return said

    def _subscriptions(self) -> int:
        with kbn.connect_sync(self.url) as client:
            return len(client.subscriptions())


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_block_of_a_step_does_what_its_page_says(path: Path, tmp_path: Path) -> None:
    with served(tmp_path) as broker:
        reader = Reader(tmp_path, broker.url)
        last = (0, "", "")
        try:
            for block in blocks(path):
                match block:
                    case Block("sh", "broker", text):
                        assert text == "make run\n", "the broker is started by one command"
                    case Block("sh", "listener", text):
                        reader.listen(text)
                    case Block("sh", None, text):
                        last = reader.run(text)
                        assert last[0] in (0, 1, 2)
                        assert "Traceback" not in last[2], last[2]
                        # What fails says why; a page that shows no failure has none.
                        complained = last[0] == 2
                        assert complained == (_next_is_error(path, block)), last
                    case Block("text", None, expected):
                        assert matches(last[1], expected), last[1]
                    case Block("text", "error", expected):
                        assert matches(last[2], expected), last[2]
                    case Block("text", "listener", expected):
                        said = reader.heard()
                        assert matches(said, expected), said
                    case Block("python", None, text):
                        exec(text.replace(DEFAULT_URL, broker.url), {})
                    case _:
                        pytest.fail(f"{path.name}: a block nobody can run: {block}")
        finally:
            if reader.listener is not None:
                reader.listener.kill()
                reader.listener.communicate()


def _next_is_error(path: Path, block: Block) -> bool:
    held = blocks(path)
    after = held[held.index(block) + 1 :]
    return bool(after) and after[0].name == "error"


def test_there_are_five_steps_and_each_leads_to_the_next() -> None:
    assert [path.stem[0] for path in PAGES] == ["1", "2", "3", "4", "5"]
    for path, following in itertools.pairwise(PAGES):
        assert f"]({following.name})" in path.read_text(encoding="utf-8")


def test_the_broker_of_the_ladder_is_what_make_run_starts() -> None:
    rule = (ROOT / "Makefile").read_text(encoding="utf-8").split("\nrun:")[1].split("\n\n")[0]
    assert "/kbn serve" in rule


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
