"""A broker as a process of its own: ``python -m kbn serve``, and other verbs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_LISTENS = re.compile(r"listens on (\S+?),? ?(?:$|\s)")


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("KBN_")}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


def kbn(*words: str, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a verb to its end."""
    return subprocess.run(
        [sys.executable, "-m", "kbn", *words],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


class Served:
    """A running ``kbn serve``."""

    def __init__(self, process: subprocess.Popen[str], lines: list[str]) -> None:
        self.process = process
        #: The five lines it printed when it stood.
        self.lines = lines
        found = _LISTENS.search(lines[0])
        assert found is not None, lines
        self.url = found[1]

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal; returns the exit code and what was logged."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


@contextmanager
def served(folder: Path, *words: str, **more: str) -> Iterator[Served]:
    """``kbn serve`` on a free port, up when it has printed its lines."""
    listen = () if "--listen" in words else ("--listen", "ka://127.0.0.1:0")
    http = () if "--http" in words else ("--http", "none")
    process = subprocess.Popen(
        [sys.executable, "-m", "kbn", "serve", *listen, *http, *words],
        cwd=folder,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        lines = [process.stdout.readline().rstrip("\n") for _ in range(5)]
        if process.poll() is not None:
            raise AssertionError(process.stderr.read())
        yield Served(process, lines)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(timeout=60)
        process.stdout.close()
        process.stderr.close()
