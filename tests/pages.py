"""Pages, and the blocks they are made of: each says what it is, so that it can be checked.

Every block is fenced and says what it is:

    sh                      typed into a shell, in order, in one folder, beside a running broker
    sh title="broker"       starts one: ``make run`` is the reader's own, ``kbn serve …`` another
    sh title="listener"     each line runs beside the others once the broker has its subscription
    sh title="no broker"    the reader's broker is ended before, and started again when needed
    console                 typed where no test is (``tests/commands.py`` says why); it is read
    text                    what the block before it prints; ``…`` stands for anything, a line
                            that is only that for any lines
    text title="error"      the same on standard error, with exit code 2
    text title="listener"   what the listener prints
    text title="broker"     what the broker prints when it stands
    python                  executed, in one namespace a page; top-level ``await`` is allowed
    python title="connected"  the same with ``c``, a connected client
    python title="polars"   a program of others (``OTHERS`` there), read
    filter, event, senp, toml, json    read by the parser they are for

``sh`` with a verb that runs on Spark is invoked in this process, for one session's sake.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.server.processes import ROOT

#: Pages whose code is not typed by a reader: made by a program, or about what was.
MADE = ("docs/reference.md", "docs/commands.md", "CHANGELOG.md")
_FENCE = re.compile(r'```(\w+)(?: title="([^"]+)")?')
_RUN = {
    ("sh", None),
    ("sh", "broker"),
    ("sh", "listener"),
    ("sh", "no broker"),
    ("python", None),
    ("python", "connected"),
}
_LISTED = re.compile(r"\s*(?:[-*]|\d+\.) ")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its title, what is in it, and where it stands."""

    language: str
    title: str | None
    text: str
    place: str = field(default="", compare=False)

    @property
    def runs(self) -> bool:
        """Whether a reader's shell or Python runs it."""
        return self.kind in _RUN

    @property
    def kind(self) -> tuple[str, str | None]:
        return self.language, self.title


class PageError(AssertionError):
    """A page with something on it that nobody can check."""


def all_pages() -> list[Path]:
    """Everything a person reads, but what changed and what is made by a program."""
    places = (
        ".",
        "docs",
        "docs/*",
        "case_studies",
        "case_studies/*",
        "ontologies",
        "ontologies/*",
    )
    found = {path for place in places for path in ROOT.glob(f"{place}/*.md")}
    return sorted(found - {ROOT / name for name in MADE})


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> list[Block]:
    """The blocks of a page; raises ``PageError`` for code that does not say what it is."""
    found: list[Block] = []
    held: list[str] = []
    opened: tuple[str, str | None, str] | None = None
    before, listed = "", False
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        place = f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name}:{number}"
        if opened is not None:
            if line == "```":
                found.append(Block(*opened[:2], "".join(held), opened[2]))
                opened = None
            else:
                held.append(line + "\n")
        elif line.lstrip().startswith("```"):
            fence = _FENCE.fullmatch(line)
            if fence is None:
                raise PageError(f'{place}: write a fence as ```sh or ```sh title="listener"')
            opened, held = (fence[1], fence[2], place), []
        elif line.startswith("    ") and not before and not listed:
            raise PageError(
                f"{place}: an indented block does not say what it is: fence it, with a language"
                " and a title of tests/pages.py"
            )
        if line and not line.startswith(" "):
            listed = _LISTED.match(line) is not None
        before = line
    if opened is not None:
        raise PageError(f"{opened[2]}: a fence that is not closed")
    return found


def matches(said: str, expected: str) -> bool:
    """Whether output is as the page has it, ``…`` standing for anything."""
    lines = [re.escape(line).replace("…", ".*") for line in expected.rstrip("\n").split("\n")]
    pattern = "\n".join("(?:.*\n?)*?" if line == ".*" else line for line in lines)
    # A line of anything may be several, or none: its own line break is optional then.
    pattern = pattern.replace("(?:.*\n?)*?\n", "(?:.*\n)*?")
    return re.fullmatch(pattern, said.rstrip("\n")) is not None
