"""A broker in a process of its own, on a free port of loopback, with its own data directory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import ontologies
from kbn.knowledge.library import Library
from kbn.knowledge.request import Source

#: Seconds a broker may take to stand or to go.
PATIENCE = 60
#: A free port of loopback.
ANYWHERE = "ka://127.0.0.1:0"


class BrokerDiedError(RuntimeError):
    """The broker ended before it stood; the message is what it said."""


def load_ontologies(data_dir: Path, names: Sequence[str]) -> None:
    """Put ontologies of ours where a broker with that data directory finds them."""
    library = Library(data_dir)
    for name in names:
        library.prepare_load(Source.read(ontologies.path(name)), name=name).commit()


@contextmanager
def served(data_dir: Path, *, knows: Sequence[str] = (), listen: str = ANYWHERE) -> Iterator[str]:
    """Run ``kbn serve`` as long as the block lasts; gives its address.

    Raises ``BrokerDiedError`` if it does not come to stand.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    load_ontologies(data_dir, knows)
    fixed = ("--listen", listen, "--http", "none", "--data-dir", str(data_dir))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KBN_")}
    with (data_dir / "broker.log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "kbn", "serve", *fixed],
            stdout=subprocess.PIPE,
            stderr=log,
            env=kept,
            text=True,
        )
        assert process.stdout is not None
        try:
            # The whole of what it prints, so that it never waits for a reader.
            said = [process.stdout.readline() for _ in range(5)]
            if " listens on " not in said[0]:
                process.wait(timeout=PATIENCE)
                log.seek(0)
                raise BrokerDiedError(f"the broker did not start: {log.read().strip()}")
            yield said[0].split(" listens on ")[1].split(",")[0].strip()
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(timeout=PATIENCE)
            process.stdout.close()
