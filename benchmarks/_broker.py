"""A broker in a process of its own, for benchmarks that go over sockets."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


class Served:
    """A running broker: its address, its port, its memory."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url
        self.port = int(url.rsplit(":", 1)[1])

    def resident_kib(self) -> int:
        """What the broker's process holds in memory now."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


@contextmanager
def served(*words: str) -> Iterator[Served]:
    """``kbn serve`` on a free port of loopback, without store."""
    with tempfile.TemporaryDirectory() as folder:
        fixed = ("--listen", "ka://127.0.0.1:0", "--http", "none", "--store", "none")
        process = subprocess.Popen(
            [sys.executable, "-m", "kbn", "serve", *fixed, "--data-dir", folder, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            yield Served(process, first.split(" listens on ")[1].split(",")[0].strip())
        finally:
            process.terminate()
            process.wait(timeout=30)
            process.stdout.close()


def allow_many_files() -> int:
    """Ask for as many open files as the system allows; returns how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def median_of(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """The medians of figures taken without and with a disturbance."""
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)
