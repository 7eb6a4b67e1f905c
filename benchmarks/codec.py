"""How many packets a second one core decodes and encodes.

The ``seq`` of every packet differs, and so do some values, so that no memory
of whole packets helps. Before timing, each packet is checked to survive the
way there and back; a case that does not is void.
"""

from __future__ import annotations

import gc
import time
import uuid
from collections.abc import Callable
from statistics import median

import senp
from benchmarks._report import Report, arguments
from kbn.model import Bag, Constraint, Notification, Subscription
from kbn.model.operators import Content
from senp import Packet

CASES = ("pub4", "sub4", "pub-temporal")


def pub4(n: int) -> Packet:
    event = Notification(
        {"symbol": f"S{n % 1000}", "price": 20 + n % 997 / 8, "volume": n * 7, "open": n % 2 == 0}
    )
    return Packet(method="PUB", id="publisher", seq=n + 1, payload=event)


def sub4(n: int) -> Packet:
    wanted = Subscription.of(
        Constraint("symbol", Content.EQ, f"S{n % 1000}"),
        Constraint("price", Content.LT, 20 + n % 997 / 8),
        Constraint("volume", Content.GT, n * 7),
        Constraint("exchange", Content.PREFIX, "NY"),
    )
    return Packet(method="SUB", id=f"client/{n}", seq=n + 1, payload=wanted)


def pub_temporal(n: int) -> Packet:
    at = 1_700_000_000_000 + n
    event = Notification(
        {
            "PUB_ID": str(uuid.UUID(int=n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)),
            "KBN_PUB_TYPE": Bag(["START", "END", "INSTANT"]),
            "KBN_START_TIME": at,
            "KBN_END_TIME": at,
            "severity": "warning",
            "county": f"county-{n % 93}",
            "level": 0.1 * (n % 50),
        }
    )
    return Packet(method="PUB", id="publisher", seq=n + 1, payload=event)


_MAKERS: dict[str, Callable[[int], Packet]] = {
    "pub4": pub4,
    "sub4": sub4,
    "pub-temporal": pub_temporal,
}


def rate(work: Callable[[object], object], items: list[object]) -> float:
    """Items a second, the collector held off so that it does not count twice."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for item in items:
            work(item)
        return len(items) / (time.perf_counter() - start)
    finally:
        gc.enable()


def main() -> None:
    options = arguments("codec", CASES)
    report = Report("codec", options.json)
    size, rounds = (5_000, 3) if options.quick else (20_000, 7)
    for case in options.cases:
        packets = [_MAKERS[case](n) for n in range(size)]
        wire = [senp.encode(packet) for packet in packets]
        void: dict[str, object] = {}
        if [senp.decode(data) for data in wire] != packets:
            void = {"void": True, "reason": "decode(encode(packet)) differs from the packet"}
        decoded, encoded = [], []
        for _ in range(rounds):
            decoded.append(rate(senp.decode, wire))
            encoded.append(rate(senp.encode, packets))
        report.add(case, "decode_per_s", median(decoded), "1/s", rounds, **void)
        report.add(case, "encode_per_s", median(encoded), "1/s", rounds, **void)


if __name__ == "__main__":
    main()
