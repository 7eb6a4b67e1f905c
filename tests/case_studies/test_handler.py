"""The handler's promises to the program it is added to."""

from __future__ import annotations

import itertools
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kbn
from case_studies.dynamic_logging import KbnHandler
from case_studies.dynamic_logging import handler as module
from case_studies.dynamic_logging.handler import (
    GOODBYE,
    LONGEST,
    NAMES,
    PATIENCE,
    Ticks,
    level_code,
)
from case_studies.served import served
from kbn.client.options import DEFAULT_URL
from tests.server.processes import served as closed_to_strangers
from tests.sockets import DEADLINE


@contextmanager
def logger(handler: KbnHandler) -> Iterator[logging.Logger]:
    made = logging.Logger("program")
    made.addHandler(handler)
    try:
        yield made
    finally:
        handler.close()


def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"ka://127.0.0.1:{taken.getsockname()[1]}"


def test_a_record_is_published_as_an_instant_with_its_extras(tmp_path: Path) -> None:
    with served(tmp_path) as url, kbn.connect_sync(url) as client:
        stream = client.subscribe("log_level >= 4")
        with logger(KbnHandler(url)) as log:
            log.info("nobody asked")
            log.warning(
                "no entry for %s",
                "admin",
                extra={
                    "category": "login_failed",
                    "tries": 3,
                    "odd": 2**70,
                    "ratio": 0.5,
                    "tags": ["a", "b"],
                    "codes": (1, 2**70),
                    "one": {True},
                    "nested": [["a"]],
                },
            )
            found = stream.get(timeout=DEADLINE)
    assert found["log_level"] == 4
    assert found["log_category"] == "login_failed"
    assert found["log_message"] == "no entry for admin"
    assert (found["tries"], found["odd"], found["ratio"]) == (3, str(2**70), 0.5)
    assert found["tags"] == kbn.Bag(["a", "b"])
    assert found["codes"] == kbn.Bag([1, str(2**70)])
    assert found["one"] == kbn.Bag([True])
    assert found["nested"] == "[['a']]"
    assert found["KBN_START_TIME"] == found["KBN_END_TIME"]
    assert sorted(map(str, found["KBN_PUB_TYPE"])) == ["END", "INSTANT", "START"]  # type: ignore[call-overload]


def test_what_a_thread_logs_arrives_in_order_at_strictly_rising_milliseconds(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as url, kbn.connect_sync(url) as client:
        stream = client.subscribe("log_level any")
        with logger(KbnHandler(url, clock=lambda: 1_700_000_000.0)) as log:
            threads = [
                threading.Thread(target=lambda: [log.error("n") for _ in range(200)])
                for _ in range(3)
            ]
            for thread in threads:
                thread.start()
            times = [stream.get(timeout=DEADLINE)["KBN_END_TIME"] for _ in range(600)]
            for thread in threads:
                thread.join()
    assert sorted(set(times)) == sorted(times)  # type: ignore[type-var]
    assert len(set(times)) == 600


@given(st.lists(st.integers(0, 2**41)))
def test_ticks_rise_strictly_and_are_never_early(clock: list[int]) -> None:
    ticks = Ticks()
    given_out = [ticks.next(now) for now in clock]
    assert all(a < b for a, b in itertools.pairwise(given_out))
    assert all(tick >= now for tick, now in zip(given_out, clock, strict=True))


def test_without_a_broker_records_wait_up_to_the_capacity_and_the_rest_is_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler = KbnHandler(nobody(), capacity=5)
    log = logging.Logger("program")
    log.addHandler(handler)
    for number in range(12):
        log.error("%d", number)
    assert handler.dropped == 7
    handler.flush(timeout=0)
    assert handler.published == 0
    handler.close()
    assert not handler._thread.is_alive()
    assert handler.dropped == 12
    said = capsys.readouterr().err.splitlines()
    assert "KbnHandler: records are dropped: 5 wait already" in said
    assert said[-1] == "KbnHandler: 12 records were not delivered"


@pytest.mark.parametrize("url", ["nonsense", "ka://", "http://127.0.0.1:80"])
def test_an_address_that_cannot_be_one_is_refused_at_once(url: str) -> None:
    with pytest.raises(kbn.RefusedError):
        KbnHandler(url)


def complained(handler: KbnHandler) -> None:
    """Wait until the handler has tried and failed."""
    end = time.monotonic() + DEADLINE
    while not handler._complaints:
        handler.flush(timeout=0.01)
        assert time.monotonic() < end


def test_that_nobody_is_there_is_said_once_and_what_was_lost_is_said_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler = KbnHandler(nobody())
    log = logging.Logger("program")
    log.addHandler(handler)
    for _ in range(3):
        log.error("lost")
    complained(handler)
    handler.close()
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("KbnHandler: records are not delivered: unreachable: cannot reach")
    assert last == "KbnHandler: 3 records were not delivered"
    assert handler.dropped == 3


def test_credentials_that_are_refused_are_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kbn.toml"
    config.write_text('[[principals]]\nname = "ann"\ntoken = "right"\n')
    with closed_to_strangers(tmp_path, "--config", str(config)) as broker:
        handler = KbnHandler(broker.url, token="wrong")
        with logger(handler) as log:
            log.error("lost")
            complained(handler)
        with logger(KbnHandler(broker.url, token="right")) as log:
            log.error("taken")
            log.handlers[0].flush()
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("KbnHandler: records are not delivered: auth: ")
    assert last == "KbnHandler: 1 record was not delivered"


def test_a_program_that_wants_no_complaints_of_logging_gets_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    handler = KbnHandler(nobody())
    with logger(handler) as log:
        log.error("lost")
    assert handler.dropped == 1
    assert capsys.readouterr().err == ""


def test_the_end_of_a_program_waits_for_an_absent_broker_once() -> None:
    handler = KbnHandler(nobody())
    log = logging.Logger("program")
    log.addHandler(handler)
    log.error("lost")
    asked: list[float] = []
    wait = handler.flush

    def flush(timeout: float = PATIENCE) -> None:
        asked.append(timeout)
        wait(timeout)

    handler.flush = flush  # type: ignore[method-assign]
    handler.flush()  # as logging.shutdown does
    handler.close()
    assert asked == [PATIENCE, 0.0]
    assert PATIENCE + GOODBYE <= 2.0, "the page says two seconds"


def test_a_broker_that_comes_late_gets_what_waited(tmp_path: Path) -> None:
    url = nobody()
    handler = KbnHandler(url, backoff=(0.01, 0.05))
    log = logging.Logger("program")
    log.addHandler(handler)
    log.error("early")
    with served(tmp_path, listen=url):
        handler.flush(timeout=DEADLINE)
        assert handler.published == 1
    handler.close()


class Awkward:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_nothing_is_raised_into_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    handler = KbnHandler(nobody())
    log = logging.Logger("program")
    log.addHandler(handler)
    log.error("%d apples", "many")
    log.error(Awkward())
    log.error("extra", extra={"thing": Awkward()})
    assert handler.broken == 3
    handler.close()
    log.error("after the end")
    assert handler.dropped == 1
    said = capsys.readouterr().err.splitlines()
    assert not any("Traceback" in line for line in said)
    broken = [line for line in said if "cannot be made into an event: TypeError" in line]
    assert len(broken) == 1
    assert "KbnHandler: 3 records were not delivered" in said


def test_what_the_broker_refuses_is_counted_and_the_rest_of_the_batch_arrives(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as url, kbn.connect_sync(url) as client:
        stream = client.subscribe('log_category = "program"')
        handler = KbnHandler(url)
        with logger(handler) as log:
            log.error("one")
            log.error("far too much", extra={f"part{n}": "x" * LONGEST for n in range(9)})
            log.error("two")
            heard = [stream.get(timeout=DEADLINE)["log_message"] for _ in range(2)]
            handler.flush(timeout=DEADLINE)
    assert heard == ["one", "two"]
    assert (handler.published, handler.refused) == (2, 1)


def test_long_and_broken_text_is_made_fit_to_travel(tmp_path: Path) -> None:
    with served(tmp_path) as url, kbn.connect_sync(url) as client:
        stream = client.subscribe("log_level any")
        with logger(KbnHandler(url)) as log:
            log.error("x" * (2 * LONGEST))
            log.error("half \ud800 a character")
            try:
                raise LookupError("gone")
            except LookupError:
                log.exception("with a trace")
            long, broken, trace = (stream.get(timeout=DEADLINE) for _ in range(3))
    assert len(str(long["log_message"])) == LONGEST
    assert broken["log_message"] == "half ? a character"
    assert "LookupError: gone" in str(trace["log_exception"])


def printed(where: str) -> str:
    """The three lines as the docstring, or the page, has them."""
    if where == "docstring":
        text = str(module.__doc__)
    else:
        text = Path(module.__file__).with_name("README.md").read_text(encoding="utf-8")
    return "".join(
        f"{line.strip()}\n"
        for line in text.splitlines()
        if line.strip().startswith(("handler = KbnHandler(", "logging.getLogger()."))
    )


@pytest.mark.parametrize("where", ["docstring", "page"])
def test_the_three_lines_as_printed_are_enough_and_the_program_ends_as_before(
    tmp_path: Path, where: str
) -> None:
    lines = printed(where)
    assert lines.count("\n") == 3
    with served(tmp_path) as url, kbn.connect_sync(url) as client:
        program = f"""
import logging
from case_studies.dynamic_logging import KbnHandler
{lines.replace(DEFAULT_URL, url)}
logging.info("three lines")
"""
        stream = client.subscribe("log_level any")
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", program],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert stream.get(timeout=DEADLINE)["log_message"] == "three lines"


def test_a_forked_child_has_a_handler_that_works(tmp_path: Path) -> None:
    if not hasattr(os, "fork") or sys.platform == "darwin":
        pytest.skip("no fork here")
    program = """
import logging, os, sys
from case_studies.dynamic_logging import KbnHandler
handler = KbnHandler(sys.argv[1])
logging.getLogger().addHandler(handler)
if os.fork() == 0:
    logging.error("child")
    handler.flush(20)
    os._exit(0)
os.wait()
logging.error("parent")
"""
    with served(tmp_path) as url, kbn.connect_sync(url) as client:
        stream = client.subscribe("log_level any")
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, url], check=True, timeout=60
        )
        heard = [stream.get(timeout=DEADLINE)["log_message"] for _ in range(2)]
    assert heard == ["child", "parent"]


@pytest.mark.parametrize(
    ("number", "name"),
    [(5, "TRACE"), (10, "DEBUG"), (20, "INFO"), (30, "WARNING"), (40, "ERROR"), (50, "CRITICAL")],
)
def test_python_levels_have_the_codes_of_the_table(number: int, name: str) -> None:
    assert NAMES[level_code(number)] == name
