"""The commands of a shell block, and whether they are spelled right, without running them."""

from __future__ import annotations

import re
import shlex
from functools import cache
from importlib import import_module
from typing import Any

import typer.main

from kbn.cli.main import build
from kbn.language import parse_event, parse_subscription
from tests.server.processes import ROOT

#: Why what stands on a page is not typed by a test, by the program it starts with.
ELSEWHERE = {
    "docker": "needs Docker; tests/test_compose.py reads what it starts",
    "make": "makes an environment first; what its rule starts is run by the tests",
    "pip": "installs from a network",
    "kbn": "talks to machines that are not here",
}
#: Packages of Python on our pages that nothing of ours needs, so that they are not installed.
OTHERS = {"polars": "reads the archive by itself", "duckdb": "reads the archive by itself"}
#: What a command is called with on a page, where that is not its own name.
_ALIASES = (
    (".venv/bin/kbn",),
    ("docker", "compose", "run", "--rm", "jobs"),
)
_HEREDOC = re.compile(r"<<'?(\w+)'?(.*\n)(?:.*\n)*?\1\n")
_TOKEN = re.compile(
    r"""(?P<space>(?:[ \t]|\\\n)+)|(?P<comment>\#[^\n]*)|(?P<end>[\n;|&]+)|(?P<turn>\d?[<>]+&?)
    |(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|\$\((?:'[^']*'|[^()'])*\)|[^\s;|&<>'"\\])+)""",
    re.X,
)
_WITHIN = re.compile(r"\$\(((?:'[^']*'|[^()'])*)\)")
_SET = re.compile(r"\w+=")
#: Parameters that are filters and events, by what help calls them.
_FILTERS = ("FILTER", "[FILTER]", "F", "G", "OLD", "NEW")


def commands_in(text: str) -> list[list[str]]:
    """Each command of a block as its words; what stands in ``$(…)`` is one, too."""
    found: list[list[str]] = []
    words: list[str] = []
    turned = False
    text = _HEREDOC.sub(r"\2", text if text.endswith("\n") else text + "\n")
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "end":
                found, words = [*found, _plain(words)], []
            case "turn":
                turned = True
            case "word" if turned:
                turned = False
            case "word":
                for within in _WITHIN.findall(token[0]):
                    found += commands_in(within)
                words.append("".join(shlex.split(token[0])))
    return [command for command in found if command]


def _plain(words: list[str]) -> list[str]:
    """Without what a shell takes for itself, and with ``kbn`` called so."""
    while words and (words[0] in ("do", "then", "!") or _SET.match(words[0])):
        words = words[1:]
    if words and words[0] in ("for", "done", "if", "fi", "while", "cat", "."):
        return []
    for alias in _ALIASES:
        if tuple(words[: len(alias)]) == alias:
            return ["kbn", *words[len(alias) :]]
    return words


def on_spark(command: list[str]) -> bool:
    """Whether a command makes a Spark session: always, or because it was asked to."""
    if command[:1] != ["kbn"] or command[1:2] == ["--help"]:
        return False
    verb, _, rest = verb_of(command[1:])
    masters = [p.default for p in verb.params if "--spark" in p.opts]
    return bool(masters) and (masters[0] is not None or "--spark" in rest)


@cache
def whole() -> Any:
    """The command with all its verbs."""
    return typer.main.get_command(build())


def verbs() -> dict[str, Any]:
    """Every verb that does something, by the words it is called with."""
    found: dict[str, Any] = {}
    for name, command in whole().commands.items():
        held = getattr(command, "commands", None)
        if held is None:
            found[name] = command
        else:
            found |= {f"{name} {verb}": under for verb, under in held.items()}
    return found


def verb_of(words: list[str]) -> tuple[Any, str, list[str]]:
    """The verb that words call, its name and the words left for it."""
    known = verbs()
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in known:
            return known[name], name, words[length:]
    raise AssertionError(f"kbn has no verb {' '.join(words[:2])!r}")


def check(words: list[str], *, needs_all: bool = True) -> None:
    """Read a command as ``kbn`` would, and its filters and events; nothing is done."""
    verb, name, rest = verb_of(words)
    try:
        context = verb.make_context(name, list(rest))
        if name == "serve":
            others = import_module("kbn.cli.serve")._others
            others(context.args)
    except typer.exceptions.TyperException as error:
        if not needs_all and str(error).startswith("Missing "):
            return
        raise AssertionError(f"kbn {' '.join(words)}: {error}") from None
    for parameter in verb.params:
        given = context.params.get(parameter.name)
        if given is not None and parameter.metavar in _FILTERS:
            parse_subscription(given)
        elif given is not None and parameter.name == "event":
            parse_event(given)


def options_of(words: list[str]) -> set[str]:
    """Every option that a verb takes; for ``serve`` the keys of the configuration, too."""
    verb, name, _ = verb_of(words)
    found = {spelled for p in verb.params for spelled in p.opts if spelled.startswith("--")}
    if name == "serve":
        config = import_module("kbn.server.config")
        found |= {config.flag(key) for key in config.known_keys()}
    return found | {"--help"}


def make_targets() -> set[str]:
    """What ``make help`` lists."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):.*##", text, re.M))
