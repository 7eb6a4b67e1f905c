"""Well-formed traffic: the short cut reads every packet as the plain decoder does.

    python -m fuzz.senp_traffic --count 1000000 [--seed N]

Mutated packets (``fuzz.senp_packets``) are mostly refused, so the short cut rarely
gets far with them. Here packets are made, of all header fields and values, and
spelled canonically or nearly so: a double with more digits than it needs, an
escape that need not be one, a quoted name, a second space. Prints one JSON line
of counters, among them how many headers the short cut took; exits with 1 on a difference.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from unittest import mock

import senp
from fuzz.senp_packets import examine
from kbn.model import Bag, Notification, Scalar, Value
from senp import Packet, _fast

_WORDS = ("", "IBM", "a b", "p:x", "é", 'say "hi"', "back\\slash", "\x00\x7f\n", "x" * 40, "true")
_NAMES = ("a", "price", "KBN_PUB_TYPE", "pos.x", "a/b$c", "two words", "é", "", "event", "any")
_IDS = ("publisher", "client/17", "ka:broker", "~!#")
_LONGS = (0, 1, -1, 7, 10**17, 10**18, 2**63 - 1, -(2**63), 999_999_999_999_999_999)
_DOUBLES = (0.0, -0.0, 0.5, 80.25, 1e7, 9999999.5, 1e-3, 9.99e-4, 1e300, 5e-324, -1.5e-7)
#: What stands in a canonical text, and what may stand there instead.
_RESPELLED = (
    (" a=", ' "a"='),
    (" ", "  "),
    (".5", ".50"),
    (".0", ".00"),
    ("E7", "e7"),
    ("IBM", "\\111BM"),
    ("IBM", "I\\BM"),
    ("=1", "=01"),
    ("=0", "=-0"),
    ("[", "[ "),
    (" price=", ",price="),
    ("ttl=30", "ttl=130"),
    ("}", " }"),
    ('"true"', "true"),
    ('"IBM"', "IBM"),
)


def packet(rng: random.Random) -> Packet:
    """A packet of traffic: mostly events, with the fields a session gives them."""

    def maybe(value: object, chance: float = 0.3) -> object:
        return value if rng.random() < chance else None

    fields: dict[str, object] = {
        "method": rng.choice(("PUB", "PUB", "PUB", "ACK", "NOP", "XYZ")),
        "ttl": rng.choice((30, 30, 29, 1, 127, 30, 30, 30, 0, -1)),
        "id": maybe(rng.choice(_WORDS if rng.random() < 0.2 else _IDS), 0.8),
        "to": maybe(rng.choice(("s1", ("s1", "s2"), tuple(f"s/{n}" for n in range(9))))),
        "handler": maybe("ka+senp://10.0.0.5:4000", 0.1),
        "seq": maybe(rng.choice((1, 42, 10**17, 2**63 - 1)), 0.6),
        "code": maybe("syntax", 0.05),
        "pos": maybe(rng.choice((5, 6, 10**9, 0, 2**63 - 1))),
        "uid": maybe("0198c5a2-7e1c-7000-8000-0242ac120002"),
        "at": maybe(rng.choice((1_700_000_000_000, 1, 2, -1, 0))),
        "durable": rng.random() < 0.05,
        "payload": maybe(event(rng), 0.95),
    }
    return Packet(**fields)  # type: ignore[arg-type]


def event(rng: random.Random) -> Notification:
    return Notification({rng.choice(_NAMES): value(rng) for _ in range(rng.randrange(7))})


def value(rng: random.Random) -> Value:
    if rng.random() < 0.15:
        return Bag(scalar(rng) for _ in range(rng.choice((0, 1, 2, 3, 40))))
    return scalar(rng)


def scalar(rng: random.Random) -> Scalar:
    match rng.randrange(6):
        case 0:
            return rng.choice(_LONGS)
        case 1:
            return rng.randrange(-(2**63), 2**63)
        case 2:
            return rng.choice(_DOUBLES)
        case 3:
            return rng.uniform(-1e9, 1e9)
        case 4:
            return rng.choice((True, False, None))
    return rng.choice(_WORDS)


def respelled(rng: random.Random, text: str) -> str:
    """The same packet, or nearly, in another spelling of one place."""
    was, becomes = rng.choice(_RESPELLED)
    places = [at for at in range(len(text)) if text.startswith(was, at)]
    if not places:
        return text
    at = rng.choice(places)
    return text[:at] + becomes + text[at + len(was) :]


def run(count: int, seed: int) -> dict[str, object]:
    """Examine ``count`` packets and return the counters."""
    rng = random.Random(f"traffic {seed}")
    outcomes: Counter[str] = Counter()
    differences: list[str] = []
    plainly = mock.Mock(side_effect=_fast.decode_plain)
    with mock.patch.object(_fast, "decode_plain", plainly):
        for _ in range(count):
            text = senp.encode(packet(rng)).decode("ascii")
            for _ in range(rng.choice((0, 0, 1, 2))):
                text = respelled(rng, text)
            data = text.encode("ascii")
            plainly.reset_mock()
            try:
                outcomes[examine(data)] += 1
            except AssertionError as broken:
                differences.append(f"{broken}: {data!r}")
            outcomes["header_by_the_short_cut"] += not plainly.called
    return {
        "fuzz": "senp_traffic",
        "seed": seed,
        "count": count,
        "differences": len(differences),
        "outcomes": dict(sorted(outcomes.items())),
        "examples": differences[:3],
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.senp_traffic")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counters = run(options.count, options.seed)
    print(json.dumps(counters))
    if counters["differences"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
