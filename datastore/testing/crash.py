"""A child that appends for ever and is killed: ``python -m datastore.testing.crash URL SEED``.

It prints each seq on a line of its own once the store has acknowledged it. The parent
kills it at some point, opens the store and counts: nothing acknowledged may be missing,
nothing may be there twice, and the store's own check passes.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import count, islice

from datastore.factory import open_store
from datastore.store import Batch, KnownInner, Store
from datastore.testing.histories import history
from kbn.model.publications import Decision, LogEntry


def entries(seed: int, after: int) -> Iterator[LogEntry]:
    """An endless history that goes on behind ``after``."""
    for part in count():
        for entry in history(seed * 1_000_003 + part, 500, first=1):
            after += 1
            yield entry._replace(seq=after, uid=f"{after // 500}-{entry.uid}")


def append_for_ever(store: Store, seed: int) -> None:
    """Append groups of a broker's size, printing what is acknowledged."""
    draw = random.Random(seed)
    coming = entries(seed, store.last_seq())
    while True:
        group = list(islice(coming, draw.choice((1, 5, 50, 200))))
        held = [Decision("f", e.uid, e.seq, draw.random() < 0.5, e.start, e.end) for e in group]
        known = KnownInner("f", "filter{}", group[-1].seq)
        store.append(
            Batch(
                group,
                decisions=[d for d in held if d.start is not None or d.end is not None],
                inners=[known],
                spool=[group[0].seq],
                marks={"upto": group[-1].seq},
            )
        )
        os.write(1, "".join(f"{entry.seq}\n" for entry in group).encode())
        if draw.random() < 0.2:
            store.work(100)


def killed_run(
    url: str, seed: int, after_bytes: int, environment: Mapping[str, str] | None = None
) -> list[int]:
    """Run a child, kill it when it has said so much; the seqs it had acknowledged."""
    child = subprocess.Popen(
        [sys.executable, "-m", "datastore.testing.crash", url, str(seed)],
        stdout=subprocess.PIPE,
        env=None if environment is None else {**os.environ, **environment},
    )
    assert child.stdout is not None
    said = b""
    try:
        while len(said) < after_bytes and (more := os.read(child.stdout.fileno(), 4096)):
            said += more
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
        said += child.stdout.read()
        child.stdout.close()
        child.wait()
    lines = said.split(b"\n")[:-1]  # a line cut short was not said
    return [int(line) for line in lines]


def verify(store: Store, acknowledged: list[int]) -> None:
    """Raise ``AssertionError`` for anything lost, doubled or inconsistent."""
    stored = [entry.seq for entry in store.log()]
    lost = set(acknowledged) - set(stored)
    assert not lost, f"{len(lost)} acknowledged entries are lost, such as {min(lost)}"
    assert len(stored) == len(set(stored)), "an entry is there twice"
    assert stored == list(range(1, len(stored) + 1)), "a batch was stored in part"
    assert store.get_mark("upto") == (stored[-1] if stored else None)
    wrong = [finding for finding in store.check() if finding.wrong]
    assert not wrong, wrong


def main() -> None:
    """The child's side."""
    url, seed = sys.argv[1:]
    append_for_ever(open_store(url), int(seed))


if __name__ == "__main__":
    main()
