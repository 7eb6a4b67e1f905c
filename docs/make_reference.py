"""Writes ``reference.md`` from the operator table and the grammar.

    python docs/make_reference.py

A test holds the page equal to what this writes.
"""

from __future__ import annotations

import re
from pathlib import Path

import kbn.language
from kbn.language import parse_subscription
from kbn.model.operators import Allen, BagKind, Content, Semantic
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


if __name__ == "__main__":
    (HERE / "reference.md").write_text(reference(), encoding="utf-8")
