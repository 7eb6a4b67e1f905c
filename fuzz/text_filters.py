"""Mutated texts against the readers: only documented errors may come out.

    python -m fuzz.text_filters --count 100000 [--seed 1]

Starts from the vectors, cuts, doubles, swaps and splices them, and reads each
result as subscription, event and JSON. What is accepted must print and read back
as the same tree. Prints one JSON line of counters; exit status 1 if anything else
than a ``KbnError`` came out.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from kbn.errors import KbnError
from kbn.language import (
    dumps_event,
    dumps_subscription,
    loads_event,
    loads_subscription,
    parse_event,
    parse_subscription,
    print_event,
    print_subscription,
)

VECTORS = Path(__file__).parents[1] / "tests" / "vectors" / "text"
MARKS = r'( ) [ ] { } " \ # , = != < <= > >= ± +- . : / - + é 😀'
WORDS = "and or in any prefix subbag[ superbag related is_a during after( filter( last relation("
VALUES = 'overlaps start end true null 2s 0ms 1e999 -0.0 9223372036854775808 p:x NaN ""'
FORMS = r'"any" "all" {"any":[ {"all":[ ]} "KBN_END_TIME" {"after": "\ud800"'
PIECES = (*f"{MARKS} {WORDS} {VALUES} {FORMS}".split(), " ", "\n", "\x00", "\ud800")
MAX_LENGTH = 2_000

Reader = tuple[str, Callable[[str], Any], Callable[[Any], str]]
READERS: tuple[Reader, ...] = (
    ("subscription", parse_subscription, print_subscription),
    ("event", parse_event, print_event),
    ("json_subscription", loads_subscription, dumps_subscription),
    ("json_event", loads_event, dumps_event),
)


def seeds() -> list[str]:
    """Every text of the vectors, and the JSON forms of those that are right."""
    texts: list[str] = []
    for name in ("subscriptions", "events", "errors"):
        texts += [case["text"] for case in yaml.safe_load((VECTORS / f"{name}.yaml").read_text())]
    for _, read, write in ((*READERS[0][:2], dumps_subscription), (*READERS[1][:2], dumps_event)):
        for text in list(texts):
            try:
                texts.append(write(read(text)))
            except KbnError:
                continue
    return texts


def mutate(text: str, texts: list[str], rng: random.Random) -> str:
    """A few random edits; the result stays short enough to be read quickly."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        at = rng.randint(0, len(text))
        to = min(len(text), at + rng.randint(0, 8))
        match rng.randrange(5):
            case 0:
                text = text[:at] + text[to:]
            case 1:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            case 2:
                text = text[:to] + text[at:to] * rng.randint(1, 40) + text[to:]
            case 3:
                other = rng.choice(texts)
                text = text[:at] + other[rng.randint(0, len(other)) :]
            case 4:
                text = (
                    text[:at]
                    + chr(rng.choice((rng.randrange(128), rng.randrange(0x3000))))
                    + text[to:]
                )
    return text[:MAX_LENGTH]


def check(text: str, reader: Reader, counters: Counter[str]) -> None:
    """One text through one reader."""
    name, read, write = reader
    try:
        held = read(text)
    except KbnError as error:
        counters[f"{name}_{error.code}"] += 1
        return
    counters[f"{name}_accepted"] += 1
    if read(write(held)) != held:
        raise AssertionError(f"{write(held)!r} does not read back")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    rng = random.Random(chosen.seed)
    texts = seeds()
    counters: Counter[str] = Counter()
    undocumented = 0
    for _ in range(chosen.count):
        text = mutate(rng.choice(texts), texts, rng)
        for reader in READERS:
            try:
                check(text, reader, counters)
            except Exception:
                undocumented += 1
                print(f"{reader[0]} on {text!r}", file=sys.stderr)
                traceback.print_exc()
    line = {"fuzz": "text_filters", "count": chosen.count, "seed": chosen.seed}
    print(json.dumps({**line, "undocumented": undocumented, **dict(sorted(counters.items()))}))
    return 1 if undocumented else 0


if __name__ == "__main__":
    sys.exit(main())
