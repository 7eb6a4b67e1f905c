"""Log lines: two forms, one a second of each kind, nothing forged."""

from __future__ import annotations

import io
import json

from kbn.server.logs import RateLimited, make_logger


class Lines:
    """A logger that writes into memory under a clock of the test's own."""

    def __init__(self, form: str) -> None:
        self.now = 0
        self.stream = io.StringIO()
        self.log = RateLimited(make_logger(form, self.stream), lambda: self.now)

    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def test_json_lines_have_time_level_event_and_message() -> None:
    written = Lines("json")
    written.log.say("warning", "slow_subscriber", "ann: dröppt\nnew line")
    (line,) = written.lines()
    told = json.loads(line)
    assert (told["level"], told["event"]) == ("warning", "slow_subscriber")
    assert told["message"] == "ann: dröppt\nnew line"
    assert told["time"].endswith("+00:00")


def test_pretty_lines_are_one_line_each_whatever_a_peer_sent() -> None:
    written = Lines("pretty")
    written.log.say("info", "x", "one\r\n12:00:00 error forged: two")
    (line,) = written.lines()
    assert line.endswith("info    x: one\\r\\n12:00:00 error forged: two")


def test_a_flood_gives_one_line_a_second_that_says_how_many_more_there_were() -> None:
    written = Lines("json")
    for number in range(1000):
        written.now += 3
        written.log.say("warning", "legacy_syntax", f"packet {number}")
    written.log.say("info", "other", "not held up by the flood")
    flood = [json.loads(line) for line in written.lines() if "legacy" in line]
    assert len(flood) == 3
    assert flood[1]["more"] == 333
    assert any("not held up" in line for line in written.lines())
    written.log.flush(everything=True)
    last = json.loads(written.lines()[-1])
    assert last["message"] == "packet 999"
    told = sum(1 + json.loads(line).get("more", 0) for line in written.lines() if "legacy" in line)
    assert told == 1000


def test_what_was_held_back_is_written_once_a_second_has_passed() -> None:
    written = Lines("pretty")
    written.log.say("info", "x", "first")
    written.log.say("info", "x", "second")
    written.log.say("info", "x", "third")
    written.log.flush()
    assert len(written.lines()) == 1
    written.now = 1_000
    written.log.flush()
    assert written.lines()[1].endswith("x: third (and 1 more)")


def test_an_unexpected_failure_shows_its_traceback_in_one_json_line() -> None:
    written = Lines("json")
    try:
        raise KeyError("lost")
    except KeyError:
        written.log.failed("internal", "a task failed")
    (line,) = written.lines()
    assert "KeyError: 'lost'" in json.loads(line)["exception"]
