"""What a service and its operator do with the pattern, by a real broker."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import kbn
from case_studies.dynamic_logging import KbnHandler, follow
from case_studies.dynamic_logging.watch import main
from case_studies.served import served
from tests.sockets import DEADLINE


def comes_to(log: logging.Logger, level: int) -> bool:
    end = time.monotonic() + DEADLINE
    while log.level != level and time.monotonic() < end:
        pass
    return log.level == level


def guess(log: logging.Logger, times: int) -> None:
    for _ in range(times):
        log.warning("no entry", extra={"category": "login_failed"})


def followed(url: str, calm: float) -> tuple[logging.Logger, KbnHandler, Callable[[], None]]:
    log, handler = logging.getLogger("tests.shop"), KbnHandler(url)
    log.addHandler(handler)
    return log, handler, follow(log, url, calm)


def test_a_service_turns_its_own_level_up_and_its_end_turns_it_down(tmp_path: Path) -> None:
    with served(tmp_path) as url, kbn.connect_sync(url) as client:
        log, handler, stop = followed(url, calm=10 * DEADLINE)
        seen = client.subscribe("log_level = 3")
        try:
            assert log.level == logging.WARNING
            log.info("nobody hears this")
            guess(log, 3)
            assert comes_to(log, logging.INFO)
            log.info("now it is told")
            assert seen.get(timeout=DEADLINE)["log_message"] == "now it is told"
        finally:
            stop()
            log.removeHandler(handler)
            handler.close()
        assert log.level == logging.WARNING


def test_calm_turns_the_level_of_a_service_down_again(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        log, handler, stop = followed(url, calm=0.05)
        try:
            log.setLevel(logging.INFO)
            assert comes_to(log, logging.WARNING)
        finally:
            stop()
            log.removeHandler(handler)
            handler.close()


def test_nothing_is_followed_where_nobody_is() -> None:
    with pytest.raises(kbn.UnreachableError):
        follow(logging.Logger("shop"), "ka://127.0.0.1:1")


def test_the_operator_sees_errors_then_everything_then_errors(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "case_studies.dynamic_logging.watch"]
    with served(tmp_path) as url, kbn.connect_sync(url) as client:
        screen = subprocess.Popen(
            [*command, "--broker", url, "--calm", "1s"], stdout=subprocess.PIPE, text=True
        )
        giving_up = threading.Timer(DEADLINE, screen.kill)
        giving_up.start()
        assert screen.stdout is not None
        try:
            while len(client.subscriptions()) < 3:
                assert screen.poll() is None
            log, handler = logging.Logger("shop"), KbnHandler(url)
            log.addHandler(handler)
            log.info("nobody sees this")
            log.error("disk full")
            guess(log, 3)
            said = [screen.stdout.readline().split(" ", 1)[1] for _ in range(3)]
            handler.close()
            screen.send_signal(signal.SIGINT)
            assert screen.wait(DEADLINE) == 130
        finally:
            giving_up.cancel()
            screen.kill()
            screen.wait(DEADLINE)
            screen.stdout.close()
    assert said == [
        "ERROR    shop: disk full\n",
        "--- from now on: INFO\n",
        "--- from now on: ERROR\n",
    ]


def test_a_screen_without_a_broker_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--broker", "ka://127.0.0.1:1"]) == 2
    assert "unreachable: cannot reach the broker" in capsys.readouterr().err


def test_a_calm_that_is_no_duration_is_a_wrong_question() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--calm", "soon"])
    assert ended.value.code == 2
