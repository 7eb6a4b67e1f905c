"""What a semantic constraint costs: ``python -m benchmarks.semantic --json``.

``subs-10000``: 10,000 subscriptions ``kind is_a C`` over an ontology of 10,000
classes, against 10,000 subscriptions ``kind = "…"`` that give every event as many
matches. ``ratio_to_equality`` is the time of the first over that of the second once
the values were seen; ``ratio_under_churn`` the same while one subscription goes and
another comes after every tenth event; ``first_sight_us`` what an unseen value costs.
Answers are compared with naive first.

``load-10000``: the same ontology from a Turtle file: ``build_s`` in a worker,
``cached_ms`` from the cache, ``relearn_ms`` to answer with the new hierarchy for
1,000 values that have to be asked again (``relearn_worst_ms``: the slowest event).

``swap-10000``: a running broker with 10,000 such subscriptions, whose ontology is
replaced again and again while another client publishes, one event after the other.
``swap_worst_ms`` is the longest any acknowledgement took then, so also the longest the
event loop can have been held up; ``quiet_worst_ms`` the same without any swap;
``swap_s`` is how long a replacement took, the first of each file in a worker.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import kbn
from benchmarks._broker import served
from benchmarks._report import Report, arguments
from kbn.knowledge.build import obtain
from kbn.knowledge.builder import build
from kbn.knowledge.cache import Cache
from kbn.knowledge.closure import Closure
from kbn.knowledge.facts import Triple
from kbn.knowledge.hierarchy import Hierarchy
from kbn.knowledge.hierarchy.names import RDF, RDFS, Prefixes
from kbn.knowledge.request import Request, Source
from kbn.matching.index import PredicateIndex
from kbn.matching.naive import matches
from kbn.matching.world import World
from kbn.model import Constraint, Notification, Subscription
from kbn.model.operators import Content, Semantic

CASES = ("subs-10000", "load-10000", "swap-10000")
CLASSES = SUBSCRIPTIONS = 10_000
EVENTS = 4000
X = "http://x/"


def triples(seed: int = 1) -> list[Triple]:
    """Each class below an earlier one, an individual in each."""
    draw = random.Random(f"classes {seed}")
    found: list[Triple] = []
    for n in range(CLASSES):
        if n:
            found.append((f"{X}c{n}", RDFS + "subClassOf", f"{X}c{draw.randrange(n)}"))
        found.append((f"{X}i{n}", RDF + "type", f"{X}c{n}"))
    return found


def hierarchy() -> Hierarchy:
    closed = Closure(triples(), most=5_000_000, max_list=1000)
    closed.run()
    return build(closed, Prefixes({"x": X}), {})


def is_a(draw: random.Random) -> Subscription:
    term = f"x:c{draw.randrange(CLASSES)}"
    return Subscription.of(Constraint("kind", Semantic.IS_A, term))


def large(draw: random.Random) -> Subscription:
    (asked,) = is_a(draw)
    return Subscription.of(*asked, Constraint("size", Content.GT, 5))


class Rig(NamedTuple):
    """An index full of subscriptions, the events for it, and more subscriptions to come."""

    index: PredicateIndex
    events: Sequence[Notification]
    world: World
    spare: Sequence[Subscription]

    def round(self) -> float:
        """Seconds per event, the values having been seen."""
        match, world = self.index.match, self.world
        began = time.perf_counter()
        for event in self.events:
            match(event, world)
        return (time.perf_counter() - began) / len(self.events)

    def churn_round(self, first: int) -> float:
        """Seconds per event while one subscription in ten events is replaced."""
        index, world = self.index, self.world
        began = time.perf_counter()
        for at, event in enumerate(self.events):
            if at % 10 == 0:
                key = (first + at // 10) % SUBSCRIPTIONS
                index.remove(key)
                index.add(key, self.spare[key % len(self.spare)])
            index.match(event, world)
        return (time.perf_counter() - began) / len(self.events)


def rigs() -> tuple[Rig, Rig, str | None, float]:
    """The semantic rig, the equality rig, why they are void if they are, and first sight."""
    draw = random.Random("semantic")
    known = World(knowledge=hierarchy())
    asked = [is_a(draw) for _ in range(SUBSCRIPTIONS)]
    semantic = PredicateIndex()
    for key, one in enumerate(asked):
        semantic.add(key, one)
    order = draw.sample(range(CLASSES), CLASSES)
    values: list[str] = []
    equal: list[Subscription] = []
    sights: list[float] = []
    reason = None
    for at, n in enumerate(order):
        value = f"x:i{n}"
        event = Notification({"kind": value})
        began = time.perf_counter()
        found = semantic.match(event, known)
        sights.append((time.perf_counter() - began) * 1e6)
        if at < 5 and found != {k for k, one in enumerate(asked) if matches(one, event, known)}:
            reason = f"the answer for {value} differs from naive"
        # As many equalities on this value as semantic constraints it satisfies.
        equal += [Subscription.of(Constraint("kind", Content.EQ, value)) for _ in found]
        values.append(value)
        if len(equal) >= SUBSCRIPTIONS:
            break
    del equal[SUBSCRIPTIONS:]
    # Ids that match together were not handed out together, in either index: ids that
    # lie side by side in memory are copied faster, whatever found them.
    draw.shuffle(equal)
    plain = PredicateIndex()
    for key, one in enumerate(equal):
        plain.add(key, one)
    values.pop()
    events = [Notification({"kind": value}) for value in draw.choices(values, k=EVENTS)]
    for event in events:
        if len(semantic.match(event, known)) != len(plain.match(event)):
            reason = "the two have different numbers of matches"
    spare = [is_a(draw) for _ in range(1000)]
    others = [Subscription.of(Constraint("kind", Content.EQ, draw.choice(values))) for _ in spare]
    return (
        Rig(semantic, events, known, spare),
        Rig(plain, events, World(), others),
        reason,
        median(sights),
    )


def subs(report: Report, case: str, rounds: int) -> None:
    semantic, plain, reason, sight = rigs()
    void: dict[str, object] = {"void": True, "reason": reason} if reason else {}
    for _ in range(12):
        semantic.round()
        plain.round()
    quiet = [(semantic.round(), plain.round()) for _ in range(rounds)]
    found = sum(len(semantic.index.match(e, semantic.world)) for e in semantic.events)
    step = EVENTS // 10
    busy = [
        (semantic.churn_round(turn * step), plain.churn_round(turn * step))
        for turn in range(rounds)
    ]
    n = rounds
    report.add(case, "ratio_to_equality", median(a / b for a, b in quiet), "x", n, **void)
    report.add(case, "ratio_under_churn", median(a / b for a, b in busy), "x", n, **void)
    report.add(case, "events_per_s", 1 / median(a for a, _ in quiet), "1/s", n, **void)
    report.add(case, "events_per_s_under_churn", 1 / median(a for a, _ in busy), "1/s", n, **void)
    report.add(case, "matches_per_event", found / EVENTS, "ids", EVENTS, **void)
    report.add(case, "first_sight_us", sight, "us", 1000, **void)


def load(report: Report, case: str, rounds: int) -> None:
    source = Source("classes.nt", turtle(1), "turtle")
    request = Request((source,))
    with tempfile.TemporaryDirectory() as directory:
        cache = Cache(Path(directory))
        began = time.perf_counter()
        obtain(request, cache)
        report.add(case, "build_s", time.perf_counter() - began, "s", 1)
        taken = []
        for _ in range(rounds):
            began = time.perf_counter()
            again = obtain(request, cache)
            taken.append((time.perf_counter() - began) * 1e3)
        report.add(case, "cached_ms", median(taken), "ms", rounds)
    semantic, *_ = rigs()
    world = World(knowledge=again.hierarchy)
    began, slowest = time.perf_counter(), 0.0
    for event in semantic.events[:1000]:
        one = time.perf_counter()
        semantic.index.match(event, world)
        slowest = max(slowest, time.perf_counter() - one)
    report.add(case, "relearn_ms", (time.perf_counter() - began) * 1e3, "ms", 1)
    report.add(case, "relearn_worst_ms", slowest * 1e3, "ms", 1000)


def turtle(seed: int) -> bytes:
    text = "".join(f"<{s}> <{p}> <{o}> .\n" for s, p, o in triples(seed))
    return f"@prefix x: <{X}> .\n{text}".encode()


class Publisher:
    """Publishes one event after the other and times each acknowledgement."""

    def __init__(self, client: kbn.Client) -> None:
        self._client = client
        self._draw = random.Random("values")
        self.count = 0
        self.worst = 0.0

    async def run(self) -> None:
        while True:
            value = f"x:i{self._draw.randrange(CLASSES)}"
            began = time.perf_counter()
            # Every term is looked up; the size then matches nobody, so that it is the
            # broker that is measured and not those it would tell.
            await self._client.publish(kind=value, size=0)
            self.worst = max(self.worst, time.perf_counter() - began)
            self.count += 1

    def begin(self) -> None:
        self.count, self.worst = 0, 0.0


async def replace_in_broker(report: Report, case: str, swaps: int) -> None:
    files = [turtle(seed) for seed in (1, 2)]
    draw = random.Random("swap")
    with served() as broker:
        async with kbn.connect(broker.url) as loader, kbn.connect(broker.url) as other:
            await loader.load_ontology("classes", files[0], source="classes.ttl")
            async with kbn.connect(broker.url) as holder:
                held = [holder.subscribe(large(draw)) for _ in range(SUBSCRIPTIONS)]
                for stream in held:
                    await stream.ready()
                publisher = Publisher(other)
                task = asyncio.create_task(publisher.run())
                await asyncio.sleep(1)
                publisher.begin()
                await asyncio.sleep(3)
                quiet, events = publisher.worst, publisher.count
                publisher.begin()
                taken = []
                for turn in range(swaps):
                    began = time.perf_counter()
                    data = files[(turn + 1) % 2]
                    await loader.load_ontology("classes", data, source="classes.ttl")
                    taken.append(time.perf_counter() - began)
                worst, during = publisher.worst, publisher.count
                task.cancel()
    report.add(case, "swap_worst_ms", worst * 1e3, "ms", during)
    report.add(case, "quiet_worst_ms", quiet * 1e3, "ms", events)
    report.add(case, "swap_s", median(taken), "s", swaps)


def swap(report: Report, case: str, rounds: int) -> None:
    asyncio.run(replace_in_broker(report, case, 6 if rounds < 20 else 20))


def main() -> None:
    options = arguments("semantic", CASES)
    report = Report("semantic", options.json)
    rounds = 15 if options.quick else 61
    for case in options.cases:
        {"subs-10000": subs, "load-10000": load, "swap-10000": swap}[case](report, case, rounds)


if __name__ == "__main__":
    main()
