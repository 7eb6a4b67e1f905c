"""What a whole broker does over loopback: the stock load, one publisher, one listener.

The broker is a process of its own. The load generator, a second one, writes
packets that were encoded before and counts the frames that come back without
decoding them: nobody but the broker decodes during the timed part. Before that,
the first publications are decoded and compared with the index; a difference
voids the case. Publications and packets in flight are bounded, so that the
broker's queues have no reason to drop; a run that stalls all the same is void.

*session*: publications carry ``seq`` and are acknowledged; one packet tells all
subscriber ids. *ka*: Siena's way, no acknowledgement, a packet for each
subscriber. *-sqlite*: acknowledged when on disk.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from statistics import median

from benchmarks._report import Report, arguments
from benchmarks.loads import stock_events, stock_filters
from kbn.matching.index import PredicateIndex
from senp import (
    ACCEPTED,
    FrameReader,
    Packet,
    decode,
    encode,
    encode_event,
    encode_frame,
    encode_subscription,
)

CASES = ("session-100", "session-5000", "ka-100", "ka-5000", "session-100-sqlite")
WINDOW = 4000
WINDOW_PACKETS = 20_000
STALLED = 10.0
CHUNK = 250
CHECKED = 500


class Broker:
    """``kbn serve`` on a port of its own; ended by its id."""

    def __init__(self, store: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "kbn", "serve", "--listen", "ka://127.0.0.1:0"),
                *("--http", "none", "--data-dir", self._folder.name),
                *(("--store", "none") if store == "none" else ()),
            ],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().split("ka://127.0.0.1:")[1].split(",")[0])

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        self._folder.cleanup()


def dial(port: int) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port))
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert line.recv(1) == ACCEPTED
    return line


def read_frames(line: socket.socket, reader: FrameReader, count: int) -> list[bytes]:
    frames: list[bytes] = []
    while len(frames) < count:
        data = line.recv(1 << 20)
        if not data:
            raise ConnectionError("the broker hung up")
        frames += reader.feed(data)
    return frames


def session(port: int, name: str) -> tuple[socket.socket, FrameReader]:
    line, reader = dial(port), FrameReader()
    line.sendall(encode_frame(encode(Packet(method="HLO", id=name))))
    (hello,) = read_frames(line, reader, 1)
    assert decode(hello).method == "HLO"
    return line, reader


class Load:
    """One case: its filters, its events, and what they must bring about."""

    def __init__(self, case: str, publications: int) -> None:
        self.case = case
        self.legacy = case.startswith("ka")
        subscriptions = int(case.split("-")[1])
        self.filters = list(stock_filters(subscriptions))
        events = list(stock_events(publications))
        index = PredicateIndex()
        for number, asked in enumerate(self.filters):
            index.add(f"s{number}", asked)
        self.told = [Counter(index.match(event)) for event in events]
        self.bodies = [encode_event(event) for event in events]
        packets = [len(t) if self.legacy else bool(t) for t in self.told]
        #: Packets the listener has seen once the n-th publication is through.
        self.through = list(accumulate(packets))
        self.ids = sum(len(t) for t in self.told)
        each = max(1.0, self.through[-1] / publications)
        self.window = max(2 * CHUNK, min(WINDOW, int(WINDOW_PACKETS / each)))

    def frames(self, start: int) -> list[bytes]:
        """One frame a publication, the ``seq`` rising from ``start``."""
        if self.legacy:
            head = b'senp{version=1 method="PUB" ttl=30 id="publisher"} %s'
            return [encode_frame(head % body) for body in self.bodies]
        head = b'senp{version=1 method="PUB" ttl=30 id="publisher" seq=%d} %s'
        return [encode_frame(head % (start + n, b)) for n, b in enumerate(self.bodies)]


class Run:
    """A broker, a publisher and a listener, ready to be timed."""

    def __init__(self, load: Load, port: int) -> None:
        self.load = load
        self._seq = 1
        if load.legacy:
            self.publisher = dial(port)
            server = socket.create_server(("127.0.0.1", 0))
            handler = f"ka+senp://127.0.0.1:{server.getsockname()[1]}"
            for number, asked in enumerate(load.filters):
                head = encode(Packet(method="SUB", id=f"s{number}", handler=handler))
                self.publisher.sendall(encode_frame(head + b" " + encode_subscription(asked)))
            # The first matching publication makes the broker call us.
            first = next(n for n, told in enumerate(load.told) if told)
            self.publisher.sendall(load.frames(0)[first])
            self.listener, _ = server.accept()
            server.close()
            self.listener.sendall(ACCEPTED)
            self.reader = FrameReader()
            read_frames(self.listener, self.reader, len(load.told[first]))
        else:
            self.publisher, self._answers = session(port, "publisher")
            self.listener, self.reader = session(port, "listener")
            for number, asked in enumerate(load.filters):
                head = encode(Packet(method="SUB", id=f"s{number}", seq=number + 1))
                self.listener.sendall(encode_frame(head + b" " + encode_subscription(asked)))
                read_frames(self.listener, self.reader, 1)

    def check(self) -> str | None:
        """Publish the first few one after the other and decode what comes; why it is wrong."""
        frames = self.load.frames(self._seq)
        for number in range(min(CHECKED, len(frames))):
            self.publisher.sendall(frames[number])
            if not self.load.legacy:
                read_frames(self.publisher, self._answers, 1)
            wanted = self.load.told[number]
            heard: Counter[str] = Counter()
            while len(heard) < len(wanted):
                for frame in read_frames(self.listener, self.reader, 1):
                    heard.update(decode(frame).receivers)
            if heard != wanted:
                return f"publication {number} told {sorted(heard)[:3]}, not {sorted(wanted)[:3]}"
        self._seq += len(frames)
        return None

    def time(self) -> float:
        """Seconds from the first byte written to the last frame and answer read."""
        load = self.load
        frames = load.frames(self._seq)
        self._seq += len(frames)
        total, packets = len(frames), load.through[-1]
        chunks = [b"".join(frames[at : at + CHUNK]) for at in range(0, total, CHUNK)]
        poll = selectors.DefaultSelector()
        poll.register(self.listener, selectors.EVENT_READ)
        poll.register(self.publisher, selectors.EVENT_READ | selectors.EVENT_WRITE)
        self.listener.setblocking(False)
        self.publisher.setblocking(False)
        sent = acked = heard = 0
        rest = b""
        writing = True
        begun = time.perf_counter()
        while heard < packets or (not load.legacy and acked < total):
            ready = poll.select(STALLED)
            if not ready:
                raise TimeoutError(f"stalled at {heard} of {packets} packets, {acked} answers")
            for key, mask in ready:
                if mask & selectors.EVENT_READ:
                    if key.fileobj is self.listener:
                        heard += len(self.reader.feed(self.listener.recv(1 << 20)))
                    else:
                        acked += len(self._answers.feed(self.publisher.recv(1 << 20)))
                if mask & selectors.EVENT_WRITE:
                    if not rest and chunks:
                        rest, chunks = chunks[0], chunks[1:]
                        sent += CHUNK
                    if rest:
                        rest = rest[self.publisher.send(rest) :]
            done = self._through(heard) if load.legacy else acked
            want = bool(rest or chunks) and sent - done < load.window
            if want != writing:
                writing = want
                mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if want else 0)
                poll.modify(self.publisher, mask)
        seconds = time.perf_counter() - begun
        poll.close()
        self.listener.setblocking(True)
        self.publisher.setblocking(True)
        return seconds

    def _through(self, heard: int) -> int:
        """How many publications are surely through, by the packets heard."""
        through = self.load.through
        low, high = 0, len(through)
        while low < high:
            middle = (low + high) // 2
            if through[middle] <= heard:
                low = middle + 1
            else:
                high = middle
        return low

    def close(self) -> None:
        self.publisher.close()
        self.listener.close()


def run_case(case: str, report: Report, quick: bool) -> None:
    publications = 20_000 if quick else 60_000
    if case.startswith("ka") or "5000" in case:
        publications //= 3
    rounds = 3 if quick else 7
    load = Load(case, publications)
    broker = Broker("default" if case.endswith("sqlite") else "none")
    extra: dict[str, object] = {"decodes": "the broker only"}
    try:
        run = Run(load, broker.port)
        wrong = run.check()
        if wrong is not None:
            extra |= {"void": True, "reason": wrong}
        seconds = [run.time() for _ in range(rounds)]
        run.close()
    finally:
        broker.close()

    def rate(count: int) -> float:
        return count / median(seconds)

    add: Callable[..., None] = report.add
    add(case, "publications_per_s", rate(publications), "1/s", rounds, **extra)
    add(case, "deliveries_per_s", rate(load.ids), "1/s", rounds, **extra)
    add(case, "packets_per_s", rate(load.through[-1]), "1/s", rounds, **extra)


def main() -> None:
    options = arguments("wire", CASES)
    report = Report("wire", options.json)
    for case in options.cases:
        run_case(case, report, options.quick)


if __name__ == "__main__":
    main()
