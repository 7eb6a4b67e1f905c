"""What history costs a publication: ``python -m benchmarks.history --json [--plot FILE.svg]``.

Fifty subscribers hold the filters of the source's tests, drawn at random; a publisher
tells of 250 events, each by a START and an END, one beginning every ten seconds and
lasting three to eight. Colours of wines, which an ontology would know, are a table here.

``test1``            the store is empty at first; each publication is committed to SQLite
``test2-LIMIT``      50,000 events before; FILTER over the last LIMIT
``preload-N``        N events before, the filters of test 1
``late-10pct``       as preload-500000, one event in ten lies anywhere in the past

Preloaded is what a broker would have after so many events: the decisions of all of
them in SQLite, the latest in memory; what reaches further back asks the store.
``ms_per_publication`` is a publication admitted, matched, applied with its decisions
and committed in memory, as a broker does it; the disk's part is ``ms_insert`` and
``ms_update``. ``speedup_over_scan``: the same questions by a look at every stored row,
the newest first and no further than it must, with the rows in memory already and each
distinct filter looked at once, which is more than the source granted itself. The
answers of both are compared; a difference makes the case void. ``cost_over_N`` compares
with the first case of the kind, in rounds that alternate, so that a busy machine does
not decide.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import mean, median

from benchmarks._plots import Panel, Points, write
from benchmarks._report import Report, arguments
from datastore.factory import open_store
from datastore.store import Batch, Store
from kbn.broker.statistics import Histogram, Statistics, TimedHistory
from kbn.language import parse_subscription
from kbn.matching.index import PredicateIndex
from kbn.matching.naive import constraint_holds, matches
from kbn.matching.temporal import AskedHistory, NaiveHistory, compares
from kbn.matching.world import World
from kbn.model import Bag, Notification, Subscription
from kbn.model.events import MergedEvent, merge_all
from kbn.model.filters import Constraint
from kbn.model.operators import Related, Semantic, Window
from kbn.model.past import Box
from kbn.model.publications import Decision, LogEntry, Part
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME
from kbn.model.values import Scalar
from kbn.temporal import Admitted, TemporalEngine, inner_hash

LIMITS = (200, 500, 1000, 2000, 5000)
PRELOADS = (50_000, 500_000, 5_000_000)
CASES = (
    "test1",
    *(f"test2-{limit}" for limit in LIMITS),
    *(f"preload-{size}" for size in PRELOADS),
    "late-10pct",
)
#: The source's averages, in milliseconds, by the limit of FILTER at 50,000 events.
PUBLISHED = ((200, 193.20), (500, 284.72), (1000, 444.55), (2000, 753.96), (5000, 2957.66))
SUBSCRIBERS = 50
EVENTS = 250
PERIOD = 10_000
EPOCH = 1_600_000_000_000
#: Decisions of each inner filter that are in memory at first, as after a restart.
HEADS = 20_000
START, END = Bag(["START"]), Bag(["END"])
RED = ("Merlot", "Zinfandel", "Chianti", "Beaujolais", "Medoc")
WHITE = ("Riesling", "Chardonnay", "Muscadet", "Sancerre", "Tours")
WINES = tuple(f"wine:{name}" for name in RED + WHITE)

IS_RED = "B related wine:hasColor wine:Red"
TEST1 = (
    "A < 8",
    IS_RED,
    f"A filter(<, last 200) {{ {IS_RED} }}",
    "end during { A < 8 }",
    "start after(500ms) { A < 8 }",
    "start after(125ms) { A < 8 }",
    "A filter(<, last 200) { C > 10 }",
)
TEST2 = ("A filter(<, last {}) {{ " + IS_RED + " }}", "A filter(<, last {}) {{ C > 10 }}")


class Colours:
    """What the wine ontology says of colours."""

    def holds(self, op: Semantic | Related, value: Scalar, operand: Scalar) -> bool:
        return value in WINES[:5] if operand == "wine:Red" else value in WINES[5:]


KNOWLEDGE = Colours()
CONTENT = World(KNOWLEDGE)


def happened(number: int) -> tuple[int, int, dict[str, object]]:
    """Start, end and attributes of the preloaded event of this number, always the same."""
    chance = (number * 2_654_435_761) & 0xFFFFFFFF
    start = EPOCH + number * PERIOD
    said = {"A": chance % 10 + 1, "B": WINES[(chance >> 8) % 10]}
    return start, start + 3000 + (chance >> 14) % 5001, said


def preloaded_event(number: int) -> MergedEvent:
    """The event as a store would give it."""
    start, end, said = happened(number)
    uid, seq = f"e{number}", 2 * number + 1
    opened = Notification.trusted({**said, PUB_ID: uid, PUB_TYPE: START, START_TIME: start})
    closed = Notification.trusted({**said, PUB_ID: uid, PUB_TYPE: END, END_TIME: end})
    made = merge_all(
        [
            LogEntry(seq, uid, Part.START, start, start, start, None, opened),
            LogEntry(seq + 1, uid, Part.END, end, end, None, end, closed),
        ]
    )
    assert made is not None
    return made


class Preloaded:
    """The events before the test, for the engine to look up by id."""

    def __init__(self, size: int) -> None:
        self.size = size

    def get(self, event_id: str) -> MergedEvent | None:
        known = event_id[:1] == "e" and event_id[1:].isdigit() and int(event_id[1:]) < self.size
        return preloaded_event(int(event_id[1:])) if known else None

    def settled(self, event_id: str) -> None:
        return None


def inner_filters(subscriptions: list[Subscription]) -> list[Subscription]:
    """The distinct subscriptions in braces; none of them nests."""
    found = {
        inner_hash(c.inner): c.inner
        for subscription in subscriptions
        for alternative in subscription
        for c in alternative
        if c.inner is not None
    }
    return list(found.values())


def fill(store: Store, engine: TemporalEngine, inners: list[Subscription], size: int) -> None:
    """Write the decisions of all events, and put the latest into memory."""
    verdicts = {}
    for a in range(1, 11):
        for b in WINES:
            event = Notification({"A": a, "B": b})
            verdicts[a, b] = [inner_hash(i) for i in inners if matches(i, event, CONTENT)]
    heads: dict[str, list[Decision]] = {inner_hash(inner): [] for inner in inners}
    chunk: list[Decision] = []
    beyond: dict[str, tuple[int, int]] = {}
    first_head = max(0, size - HEADS)
    for number in range(size):
        start, end, said = happened(number)
        for inner in verdicts[said["A"], said["B"]]:
            decision = Decision(inner, f"e{number}", 2 * number + 2, True, start, end)
            chunk.append(decision)
            if number >= first_head:
                heads[inner].append(decision)
            else:
                first, last = beyond.get(inner, (start, end))
                beyond[inner] = (min(first, start), max(last, end))
        if len(chunk) >= 200_000:
            store.append(Batch(decisions=chunk))
            chunk = []
    store.append(Batch(decisions=chunk))
    for inner_filter in inners:
        name = inner_hash(inner_filter)
        box = None
        if name in beyond:
            first, last = beyond[name]
            box = Box(first, last, first, last)
        engine.load(inner_filter, heads[name], box)


class RowScan:
    """The same questions, by a look at every row; newest first, no further than it must."""

    def __init__(self, size: int) -> None:
        self.rows = [preloaded_event(number) for number in range(size)]
        self.history = NaiveHistory((), KNOWLEDGE)

    def holds(self, constraint: Constraint, event: MergedEvent, said: Notification) -> bool:
        if constraint.name not in said:
            return False
        op, inner, reference = constraint.op, constraint.inner, said[constraint.name]
        assert inner is not None
        asked = AskedHistory(self.history, 0, event)
        seen = 0
        for row in reversed(self.rows):
            if row.id == event.id or not matches(inner, row.notification, CONTENT):
                continue
            if isinstance(op, Window):
                if compares(op, constraint.name, reference, row, KNOWLEDGE):
                    return True
                seen += 1
                if seen == op.limit:
                    return False
            elif asked.admits(op, reference, row):
                return True
        return False

    def match(self, asked: list[Subscription], event: MergedEvent, said: Notification) -> set[int]:
        """Which of the distinct subscriptions match."""
        found = set()
        for number, subscription in enumerate(asked):
            (alternative,) = subscription
            plain = [c for c in alternative if c.inner is None]
            if all(constraint_holds(c, said, CONTENT) for c in plain) and all(
                self.holds(c, event, said) for c in alternative if c.inner is not None
            ):
                found.add(number)
        return found

    def keep(self, event: MergedEvent) -> None:
        if self.rows and self.rows[-1].id == event.id:
            self.rows[-1] = event
        else:
            self.rows.append(event)


class Run:
    """One test: subscribers, a publisher, an engine over a store that may hold events."""

    def __init__(self, store: Store, texts: tuple[str, ...], size: int, late: float = 0.0) -> None:
        draw = self.draw = random.Random(6)
        self.store, self.size, self.late = store, size, late
        self.distinct = [parse_subscription(text) for text in texts]
        last = 2 * size + 2 if size else 0
        self.engine = TemporalEngine(Preloaded(size), store, knowledge=KNOWLEDGE, seq=last)
        if size:
            fill(store, self.engine, inner_filters(self.distinct), size)
        self.index = PredicateIndex()
        self.chosen = [draw.randrange(len(texts)) for _ in range(SUBSCRIBERS)]
        for number, choice in enumerate(self.chosen):
            assert self.engine.acquire(self.distinct[choice]) is None
            self.index.add((number, choice), self.distinct[choice])
        self.statistics = Statistics(time.perf_counter_ns)
        self.told = self.published = 0
        self.times: list[float] = []
        #: How much longer the scan took for the publications that both answered.
        self.speedup = 0.0

    def publications(self, count: int) -> Iterator[Notification]:
        """START and END of so many further events, in the order they happen."""
        draw = self.draw
        for number in range(self.published, self.published + count):
            start = EPOCH + (self.size + number) * PERIOD
            if draw.random() < self.late:
                start = EPOCH + draw.randrange((self.size + number) * PERIOD)
            said = {"A": draw.randint(1, 10), "B": draw.choice(WINES), PUB_ID: f"n{number}"}
            yield Notification.trusted({**said, PUB_TYPE: START, START_TIME: start})
            end = start + draw.randint(3000, 8000)
            yield Notification.trusted({**said, PUB_TYPE: END, END_TIME: end})
        self.published += count

    def publish(self, said: Notification, scan: RowScan | None = None) -> tuple[set[int], float]:
        """One publication: which filters matched, and the scan's seconds, if there is one."""
        engine, statistics = self.engine, self.statistics
        clock = time.perf_counter
        began = clock()
        admitted = engine.admit(said, "u", EPOCH, EPOCH)
        assert isinstance(admitted, Admitted)
        view = TimedHistory(engine.history(admitted), statistics, time.perf_counter_ns)
        matched = self.index.match(said, World(KNOWLEDGE, view))
        middle = clock()
        scanned = 0.0
        found = {choice for _, choice in matched}  # type: ignore[misc]
        if scan is not None:
            wanted = scan.match(self.distinct, admitted.event, said) & set(self.chosen)
            scanned = clock() - middle
            if wanted != found:
                raise AssertionError(f"{said}: {found}, the scan says {wanted}")
            scan.keep(admitted.event)
        middle_again = clock()
        entry, decisions = engine.apply(engine.seq + 1, admitted)
        applied = clock()
        self.store.append(Batch([entry], decisions=decisions))
        written = clock()
        engine.committed(entry.seq)
        self.times.append(middle - began + applied - middle_again + clock() - written)
        shares = statistics.updated if entry.part is Part.END else statistics.inserted
        shares.observe(int((written - applied) * 1e9))
        self.told += len(matched)
        statistics.deliveries.observe(len(matched))
        return found, scanned

    def round(self, count: int) -> float:
        """The median cost of a publication about so many further events, in seconds."""
        self.times.clear()
        for said in self.publications(count):
            self.publish(said)
        return median(self.times)


@contextmanager
def stored() -> Iterator[Store]:
    """A new SQLite store in a folder that goes afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="kbn-history-"))
    try:
        with open_store(f"sqlite:///{folder}/history.db") as store:
            yield store
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """Runs cases and keeps what is plotted."""

    def __init__(self, report: Report, quick: bool) -> None:
        self.report, self.quick = report, quick
        self.events = 60 if quick else EVENTS
        self.scanned = 6 if quick else 30
        self.growth: list[tuple[float, float]] = []
        self.runs: dict[str, Run] = {}
        self._open = ExitStack()
        self.scan_growth: list[tuple[float, float]] = []
        self.limits: list[tuple[float, float]] = []
        self.scan_limits: list[tuple[float, float]] = []
        self.sizes: list[tuple[float, float]] = []

    def run(self, case: str) -> None:
        kind, _, number = case.partition("-")
        store = self._open.enter_context(stored())
        if case == "test1":
            self._test1(store)
            return
        if kind == "test2":
            size = 5_000 if self.quick else 50_000
            texts = tuple(text.format(number) for text in TEST2)
            run = Run(store, texts, size)
            self._measure(case, run, scan=True)
        else:
            size = 500_000 if case == "late-10pct" else int(number)
            size = size // 50 if self.quick else size
            late = 0.1 if case == "late-10pct" else 0.0
            run = Run(store, TEST1, size, late)
            self._measure(case, run, scan=not late and size <= 50_000)
        self.runs[case] = run

    def _test1(self, store: Store) -> None:
        run = Run(store, TEST1, 0)
        scan, seconds = RowScan(0), []
        void = self._compared(run, run.publications(self.events), scan, seconds)
        step = max(1, len(run.times) // 20)
        for at in range(0, len(run.times) - step + 1, step):
            # Two publications tell of one event.
            events = (at + step) / 2
            self.growth.append((events, mean(run.times[at : at + step]) * 1000))
            self.scan_growth.append((events, mean(seconds[at : at + step]) * 1000))
        self._tell("test1", run, seconds, void)

    def _measure(self, case: str, run: Run, *, scan: bool) -> None:
        seconds: list[float] = []
        void: dict[str, object] = {}
        if scan:
            scanning = RowScan(run.size)
            void = self._compared(run, run.publications(self.scanned), scanning, seconds)
            del scanning
        for said in run.publications(20):
            run.publish(said)
        run.times.clear()
        run.statistics = Statistics(time.perf_counter_ns)
        run.told = 0
        for said in run.publications(self.events):
            run.publish(said)
        self._tell(case, run, seconds, void)
        kind, _, number = case.partition("-")
        cost = median(run.times) * 1000
        if kind == "test2":
            self.limits.append((int(number), cost))
            self.scan_limits.append((int(number), mean(seconds) * 1000))
        elif kind == "preload":
            self.sizes.append((run.size, cost))

    def _compared(
        self, run: Run, said: Iterator[Notification], scan: RowScan, seconds: list[float]
    ) -> dict[str, object]:
        try:
            for publication in said:
                seconds.append(run.publish(publication, scan)[1])
        except AssertionError as error:
            return {"void": True, "reason": str(error)}
        # Means of the very same publications, in turn: a busy machine slows both.
        run.speedup = mean(seconds) / mean(run.times)
        return {}

    def _tell(self, case: str, run: Run, seconds: list[float], void: dict[str, object]) -> None:
        add, n = self.report.add, len(run.times)
        # The mean counts rare pauses of the machine as work; the median is what it costs.
        add(case, "ms_per_publication", median(run.times) * 1000, "ms", n, **void)
        add(case, "ms_per_publication_mean", mean(run.times) * 1000, "ms", n, **void)
        if seconds:
            add(case, "speedup_over_scan", run.speedup, "1", len(seconds), **void)
        statistics = run.statistics
        for name, share in (("insert", statistics.inserted), ("update", statistics.updated)):
            add(case, f"ms_{name}", _mean_ms(share), "ms", share.count)
        for held, word in ((True, "matched"), (False, "unmatched")):
            for name, operators in (("filter", ("filter",)), ("temporal", ("during", "after"))):
                parts = [statistics.operators[operator, held] for operator in operators]
                count = sum(part.count for part in parts)
                if count:
                    took = sum(part.total for part in parts) / count / 1e6
                    add(case, f"ms_{name}_{word}", took, "ms", count)
        add(case, "deliveries_per_publication", run.told / n, "1", n)
        add(case, "stored", run.size + run.published, "1", 1)

    def finish(self, plot: Path | None) -> None:
        """What the size of the history, and the limit, do to the cost; then the plot."""
        with self._open:
            for kind in ("preload", "test2"):
                cases = [case for case in self.runs if case.startswith(kind)]
                for case in cases[1:]:
                    self._ratio(case, cases[0])
        if plot is not None:
            write(plot, self._panels())

    def _ratio(self, case: str, first: str) -> None:
        """The cost of one case over another's, from rounds that alternate."""
        rounds = 3 if self.quick else 9
        ratios = []
        for _ in range(rounds):
            one, other = (self.runs[name].round(25) for name in (case, first))
            ratios.append(one / other)
        number = first.partition("-")[2]
        self.report.add(case, f"cost_over_{number}", median(ratios), "1", rounds)

    def _panels(self) -> list[Panel]:
        up = "ms per publication"
        source: Points = PUBLISHED
        limits: list[tuple[str, Points]] = [("as published, 50,000 events", source)]
        if self.limits:
            limits += [("a scan of the rows here", self.scan_limits), ("KBN here", self.limits)]
        panels = [Panel("Test 2: by FILTER's limit", "limit", up, limits, log_across=True)]
        if self.sizes:
            curves = [("KBN here", self.sizes)]
            panels.append(Panel("By events stored", "events", up, curves, log_across=True))
        if self.growth:
            growth = [("a scan of the rows here", self.scan_growth), ("KBN here", self.growth)]
            panels.append(Panel("Test 1: from an empty store", "events", up, growth))
        return panels


def _mean_ms(histogram: Histogram) -> float:
    return histogram.total / max(1, histogram.count) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--plot", type=Path)
    given, rest = parser.parse_known_args(sys.argv[1:])
    options = arguments("history", CASES, rest)
    bench = Bench(Report("history", options.json), options.quick)
    for case in options.cases:
        bench.run(case)
    bench.finish(given.plot)


if __name__ == "__main__":
    main()
