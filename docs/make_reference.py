"""Writes ``reference.md`` from the operator table and the grammar, ``commands.md`` from ``kbn``.

    python docs/make_reference.py

A test holds the pages equal to what this writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer.main

import kbn.language
from kbn.cli.main import build
from kbn.language import parse_subscription
from kbn.model.operators import Allen, BagKind, Content, Semantic
from kbn.server.config import flag, known_keys, variable
from senp import encode_subscription

HERE = Path(__file__).parent
GRAMMAR = Path(kbn.language.__file__).with_name("grammar.lark")

HEAD = """\
# Reference

Made from the operator table (`kbn/model/operators.py`) and the grammar
(`kbn/language/grammar.lark`) by `python docs/make_reference.py`. What the words mean is told in
[the language](language.md), [knowledge](knowledge.md) and [history](history.md).
"""

#: One subscription for every form an operator has.
EXAMPLES = (
    'price < 80 and symbol != "IBM"',
    'name prefix "sensor-" and note contains "urgent" and file suffix ".csv"',
    "price any",
    "x in [1 2 3]",
    'tags superbag ["a" "a"] and b subbag[<] [1 3 5]',
    "c bageq [1 2]",
    "wine is_a wine:RedWine",
    "county superbag[related geo:isWestOf] [geo:HamiltonCountyNE]",
    'kind = "storm" or kind = "flood"',
    'start during { kind = "storm" }',
    "level = 4 and end after(2s) { level = 4 }",
    'price filter(<, last 200) { symbol = "IBM" }',
    'relation(overlaps ±500ms) { kind = "storm" }',
)


def reference() -> str:
    """The whole page."""
    return "\n".join([HEAD, _operators(), _forms(), _grammar()])


def _operators() -> str:
    rows = ["## Operators\n", "| family | text | wire |", "|---|---|---|"]
    for family in (Content, Semantic, BagKind):
        for operator in family:
            kind = "bag" if family is BagKind else family.__name__.lower()
            rows.append(f"| {kind} | `{operator.text}` | `{operator.wire}` |")
            if family is BagKind:
                rows.append(
                    f"| | `{operator.text}[op]`, op a content or semantic operator, `related P` or"
                    f" `any` | `{operator.wire}(op)` |"
                )
    rows += [
        "| semantic | `related P` | `@(IRI)` |",
        "| temporal | `during { … }` | `$=` |",
        "| | `after(2s) { … }` | `$>` and milliseconds |",
        "| | `filter(op, last N) { … }` | `^`, op and N |",
        "| | `relation(r ±D) { … }` | `$~`, r and milliseconds |",
        "",
        "The relations are " + ", ".join(f"`{relation.value}`" for relation in Allen) + ".",
    ]
    return "\n".join(rows) + "\n"


def _forms() -> str:
    """Each example as text, as JSON and on the wire."""
    rows = ["## Three spellings of one thing\n"]
    for text in EXAMPLES:
        tree = parse_subscription(text)
        rows += [
            "```text",
            kbn.language.print_subscription(tree),
            kbn.language.dumps_subscription(tree),
            encode_subscription(tree).decode("ascii"),
            "```",
            "",
        ]
    return "\n".join(rows)


def _grammar() -> str:
    """The rules, without what only the parser needs: aliases and the names of terminals."""
    text = GRAMMAR.read_text(encoding="utf-8")
    rules = text[text.index("subscription:") :]
    rules = re.sub(r"[ \t]+->.*", "", rules)
    return "## Grammar\n\n```text\n" + rules.rstrip() + "\n```\n"


COMMANDS = """\
# The command line

Made from `kbn` itself by `python docs/make_reference.py`; `kbn VERB --help` says the same. Options
may stand before or behind what a verb is about. A variable in brackets is read where the option is
not given.

| exit code | meaning |
|---|---|
| 0 | yes, or done |
| 1 | no: nothing matched, nothing was found, two things differ |
| 2 | the question was wrong, or the broker or store could not be reached |
| 130 | Ctrl-C ended a subscription |

With 2, standard error has one line, `kbn: CODE: reason`, with a code of [this list](errors.md), or
says which option is wrong.
"""


def commands() -> str:
    """The whole page of the command line."""
    found = dict(_verbs(typer.main.get_command(build())))
    listed = "\n".join(
        f"| [`kbn {name}`](#kbn-{name.replace(' ', '-')}) | {_first(verb)} |"
        for name, verb in found.items()
    )
    parts = [COMMANDS, f"| verb | |\n|---|---|\n{listed}\n"]
    parts += [_verb(name, verb) for name, verb in found.items()]
    return "\n".join([*parts, _keys()])


def _verbs(group: Any, within: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _verbs(command, f"{name} ")
        else:
            yield within + name, command


def _first(verb: Any) -> str:
    """What a verb does, in a sentence, fit for a table."""
    return _cell((verb.help or "").strip().split("\n\n")[0])


def _verb(name: str, verb: Any) -> str:
    given = [p for p in verb.params if p.param_type_name == "argument"]
    usage = " ".join(["kbn", name, *(_argument(p) for p in given), "[OPTIONS]"])
    told = "\n\n".join(
        " ".join(part.split()) for part in (verb.help or "").split("\n\n") if part.strip()
    )
    rows = [f"| `{_argument(p)}` | {_cell(p.help or '')} | |" for p in given]
    rows += [
        f"| {_option(p)} | {_cell(p.help or '')} | {_default(p)} |"
        for p in verb.params
        if p.param_type_name == "option"
    ]
    table = "\n".join(["| | meaning | default |", "|---|---|---|", *rows])
    epilog = f"\n{verb.epilog}\n" if verb.epilog else ""
    return f"## kbn {name}\n\n{told}\n\n```text\n{usage}\n```\n\n{table}\n{epilog}"


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.upper()).strip("[]")
    if parameter.nargs != 1 and not name.endswith("..."):
        name += "..."
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> str:
    value = ""
    if not parameter.is_flag:
        value = f" {parameter.metavar or _value(parameter.type_descriptor.annotation)}"
    # A bar in a table ends its column, and how it is escaped there depends on who reads it.
    spelled = ", ".join(f"`{name}{value}`" for name in parameter.opts).replace("|", " or ")
    return f"{spelled} (`{parameter.envvar}`)" if parameter.envvar else spelled


def _value(kind: type) -> str:
    """What an option takes, where it has no name for it."""
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if issubclass(kind, StrEnum):
        return "|".join(kind)
    return {int: "N", float: "X", Path: "PATH"}.get(kind, "TEXT")


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.is_flag or value is None or value == "":
        return ""
    return f"`{value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", " or ")


def _keys() -> str:
    rows = [
        f"| `{key}` | `{flag(key)}` | `{variable(key)}` |"
        for key in known_keys()
        if key != "principals"
    ]
    head = "## Keys of the configuration\n\nWhat they mean is told in [operating](operating.md).\n"
    table = "\n".join(["| key | flag of `kbn serve` | variable |", "|---|---|---|", *rows])
    return f"{head}\n{table}\n"


if __name__ == "__main__":
    (HERE / "commands.md").write_text(commands(), encoding="utf-8")
    (HERE / "reference.md").write_text(reference(), encoding="utf-8")
