"""Mutated packets: whatever comes in, a packet or a documented error comes out.

    python -m fuzz.senp_packets --count 1000000 [--seed N]

Every input is decoded by the short cut and by the plain decoder, which must
agree in value and in error; what decodes must survive encoding and decoding,
and a body offered for reuse must be the canonical one. Prints one JSON line of
counters; exits with 1 if one that should be 0 is not.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections import Counter

import senp
from kbn.errors import KbnError
from senp import DEFAULT_LIMITS, Packet, WireError
from senp._decode import decode_plain

CODES = frozenset({"syntax", "limit", "too_large", "unsupported", "temporal_reference"})
#: No packet of 64 KiB takes a hundredth of this; one that does was made to hang us.
HANG_SECONDS = 2.0

SEEDS = (
    b'senp{version=1 method="PUB" ttl=30 id="p" seq=7} event{ s="IBM" price=80.5 n=-3 ok=true}',
    b'senp{version=1 method="PUB" ttl=30 id="p" to=["s1" "s2"] pos=4 uid="01" at=17} event{ a=1}',
    b'senp{version=1 method="PUB" ttl=30} event{ PUB_ID="x" KBN_PUB_TYPE=["START" "END" "INSTANT"]'
    b" KBN_START_TIME=1700000000000 KBN_END_TIME=1700000000000 level=1.0E-10 none=null}",
    b'senp{version=1 method="PUB" ttl=30} events{ event{ a="\\303\\251\\n\\"" "two words"=[1 2.5]}'
    b" event{}}",
    b'senp{version=1 method="SUB" ttl=30 id="c1" to="b1" handler="ka+senp://10.0.0.5:4000"}'
    b' filter{ price <80 symbol ="IBM" a any b >*"x" c *<"y" d *"z" e >=1 f <=2 g !=3}',
    b'senp{version=1 method="SUB" ttl=30 seq=3 history=true since=5} filter{ b #<(<) [1 3 5 7 9]'
    b' t #> ["a" "a"] wine @: "http://x/w#Red" county #>(@("http://x/g#isWestOf")) ["h"]}',
    b'senp{version=1 method="SUB" ttl=30} filter{ log_level =4 KBN_END_TIME $>2000 filter{ l =4'
    b" KBN_END_TIME $>2000 filter{ log_level =4}}}",
    b'senp{version=1 method="SUB" ttl=30} filter{ KBN_START_TIME $= filters{ filter{ c ="H"}'
    b' filter{ c ="A"}}}',
    b'senp{version=1 method="SUB" ttl=30} filters{ filter{ price ^<200 filter{ symbol ="IBM"} tags'
    b' ^#<(=) 50 filter{ a any}} filter{ KBN_END_TIME $~overlaps 500 filter{ kind ="storm"}}}',
    b'senp{version=1 method="SUB" ttl=30} pattern{ filter{ a =1} filter{ b =2}}',
    b'senp{version=1 method="HLO" ttl=30 pos=9 durable=true token="t" user="u" password="p"}',
    b'senp{version=1 method="ERR" ttl=30 seq=3 code="syntax" reason="at byte 4"}',
)
_PIECES = (
    *(b"{ } ( ) [ ] = < > <= >= != * >* *< ! ^ # @ $ #< #> #= @= @!= @: @!: @( $= $> $~".split()),
    *(b'any true false null filter filters event events pattern " \\ \\" \\377 \\400'.split()),
    *(b"0 -1 - -- 1.5 .5 5. 1e5 1e999 1e-999 9223372036854775807 9223372036854775808".split()),
    *(b"filter{ KBN_END_TIME seq= ttl= to=[ id= overlaps 007 1.50 \xc3\xa9 \xff \x00".split()),
    *(b" ", b",", b";", b"%", b"+", b"\n", b'"a"', b" a=1", b" KBN_END_TIME $= filter{"),
)


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A few random cuts, repetitions and insertions of things that mean something."""
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        to = min(len(data), at + rng.choice((1, 1, 2, 5, 20)))
        match rng.randrange(8):
            case 0:
                data = data[:at] + data[to:]
            case 1:
                data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
            case 2 | 3:
                data = data[:at] + rng.choice(_PIECES) + data[at:]
            case 4:
                data = data[:at] + rng.choice(_PIECES) + data[to:]
            case 5:
                data = data[:to] + data[at:to] * rng.choice((1, 2, 20)) + data[to:]
            case 6:
                other = rng.choice(SEEDS)
                data = data[:at] + other[rng.randrange(len(other)) :]
            case _:
                data = data[:at] if rng.random() < 0.3 else data
    return data


def examine(data: bytes) -> str:
    """``decoded``, or the code it was refused with; ``AssertionError`` if a law is broken."""
    fast, refused = _outcome(data)
    plain, refused_plainly = _plain_outcome(data)
    assert _told(refused) == _told(refused_plainly), "the short cut refuses differently"
    assert fast == plain, "the short cut means something else"
    if refused is not None:
        assert refused.code in CODES, f"undocumented code {refused.code}"
        assert 0 <= refused.position <= len(data), "the position is outside the packet"
        return refused.code
    assert fast is not None
    body = senp.decode_with_body(data)[1]
    if body is not None:
        assert body == senp.encode_payload(fast.payload), "the body is not the canonical one"
    written = senp.encode(fast)
    # Canonical text can be longer than what came, for UTF-8 travels as octal escapes.
    if len(written) <= senp.MAX_PACKET:
        again = senp.decode(written)
        assert again == fast, "encoding changes the packet"
        assert senp.encode(again) == written, "the canonical text is not stable"
    return "decoded"


def _outcome(data: bytes) -> tuple[Packet | None, WireError | None]:
    try:
        return senp.decode(data), None
    except WireError as error:
        return None, error


def _plain_outcome(data: bytes) -> tuple[Packet | None, WireError | None]:
    if len(data) > DEFAULT_LIMITS.max_packet:
        return _outcome(data)
    try:
        return decode_plain(data.decode("latin-1"), DEFAULT_LIMITS), None
    except WireError as error:
        return None, error


def _told(error: WireError | None) -> tuple[object, ...]:
    return () if error is None else (error.code, error.position, error.problem, error.seq)


def run(count: int, seed: int) -> dict[str, object]:
    """Examine ``count`` mutated packets and return the counters."""
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    failures: dict[str, list[str]] = {"crashes": [], "undocumented": [], "differences": []}
    hangs = 0
    slowest = 0.0
    warm = 0
    for number in range(count):
        if number == count // 10:
            warm = _peak_kib()
        data = mutate(rng, rng.choice(SEEDS))
        started = time.perf_counter()
        try:
            outcomes[examine(data)] += 1
        except AssertionError as broken:
            failures["differences"].append(f"{broken}: {data!r}")
        except KbnError as error:
            failures["undocumented"].append(f"{error!r}: {data!r}")
        except Exception as error:  # finding these is what a fuzzer is for
            failures["crashes"].append(f"{error!r}: {data!r}")
        took = time.perf_counter() - started
        slowest = max(slowest, took)
        hangs += took > HANG_SECONDS
    return {
        "fuzz": "senp_packets",
        "seed": seed,
        "count": count,
        **{kind: len(found) for kind, found in failures.items()},
        "hangs": hangs,
        "outcomes": dict(sorted(outcomes.items())),
        "slowest_ms": round(slowest * 1000, 3),
        "peak_growth_kib": _peak_kib() - warm,
        "examples": [example for found in failures.values() for example in found[:3]],
    }


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.senp_packets")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counters = run(options.count, options.seed)
    print(json.dumps(counters))
    if any(counters[kind] for kind in ("crashes", "undocumented", "differences", "hangs")):
        sys.exit(1)


if __name__ == "__main__":
    main()
