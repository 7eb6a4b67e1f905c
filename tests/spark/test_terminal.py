"""On a terminal: a bar that comes and goes beside clean output; and a reader that leaves."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from contextlib import suppress
from io import StringIO

import pytest
from rich.console import Console
from rich.progress import Progress

from datastore.sql.store import open_sqlite
from datastore.store import Batch
from datastore.testing.histories import entry
from kbn.cli.bars import Tasks
from kbn.model.publications import Part
from tests.spark.conftest import JAVA
from tests.spark.test_session import ROOT

#: More than a pipe holds.
EVENTS = 5000


@pytest.fixture
def folder(tmp_path):
    with open_sqlite(tmp_path / "history.db") as store:
        log = [
            entry(n, f"e{n}", Part.INSTANT, n, n, n, text="x" * 20) for n in range(1, EVENTS + 1)
        ]
        store.append(Batch(log))
    return tmp_path


def on_a_terminal(folder, *command, lines=None):
    """(exit code, output, what the terminal saw) of a verb whose reader takes so many lines."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kbn", *command, "--data-dir", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    seen = bytearray()

    def watch():
        with suppress(OSError):  # how a terminal says that nobody writes to it any more
            while some := os.read(ours, 65536):
                seen.extend(some)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with process.stdout as out:
        said = out.readlines() if lines is None else [out.readline() for _ in range(lines)]
    code = process.wait()
    watcher.join()
    os.close(ours)
    return code, said, seen.decode()


def test_archiving_shows_a_bar_that_is_gone_afterwards(folder):
    code, said, seen = on_a_terminal(folder, "archive", "--older", "1d", "--json")
    assert code == 0
    assert json.loads("".join(said))["archived"] == EVENTS
    assert "archiving" in seen
    assert seen.endswith("\x1b[1A\x1b[2K"), "the line is erased"


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(not JAVA, reason="Spark needs Java, and there is none")
def test_a_bar_beside_answers_whose_reader_leaves(folder):
    asked = ("scan", "text any", "--json", "--spark", "local[2]")
    code, said, seen = on_a_terminal(folder, *asked, lines=1)
    assert json.loads(said[0])["id"] == "e1"
    assert code == 1
    start, bar = seen.index("starting Spark"), seen.index("scanning")
    assert start < bar
    assert seen.endswith("\x1b[1A\x1b[2K"), seen[bar:]


def test_the_bar_counts_every_stage_and_never_goes_back():
    with Progress(console=Console(file=StringIO()), transient=True) as bar:
        tasks = Tasks(bar, "scanning")
        (line,) = bar.tasks
        shown = []
        for active in ([(1, 4, 1)], [(1, 4, 4)], [(2, 20, 0)], [(2, 20, 5), (3, 1, 0)], []):
            tasks.seen(active)
            shown.append((line.fields["count"], round(line.percentage)))
        assert shown == [
            ("1/4 tasks", 20),
            ("4/4 tasks", 80),
            ("4/24 tasks", 80),
            ("9/25 tasks", 80),
            ("25/25 tasks", 96),
        ]
