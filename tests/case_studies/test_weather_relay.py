"""The weather service's alerts for one's own broker: each START and END once, in time."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from case_studies.review import read_log
from case_studies.served import served
from case_studies.weather import relay
from case_studies.weather.bulletins import END, START, WARNING, Alert, Bulletin
from case_studies.weather.places import counties

SAMPLE = Path(relay.__file__).with_name("sample_alerts.json")


def bulletins(name: str, begin: int, end: int) -> list[Bulletin]:
    alert = Alert(name, "tstorm", WARNING, (counties()["Hamilton"],), "weather service")
    return [Bulletin(begin, START, alert), Bulletin(end, END, alert)]


def said(told: relay.Relay, feed: list[Bulletin], now: int | None) -> list[tuple[str, str]]:
    found = told.due(feed, now)
    for bulletin in found:
        told.done(bulletin)
    return [(b.alert.id, b.part) for b in found]


@contextmanager
def address(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# --- what is due -------------------------------------------------------------------------------


def test_each_part_is_said_once_and_at_its_time() -> None:
    told, feed = relay.Relay(), bulletins("a", 10, 30)
    assert said(told, feed, 5) == []
    assert said(told, feed, 10) == [("a", START)]
    assert said(told, feed, 20) == []
    assert said(told, feed, 30) == [("a", END)]
    assert said(told, feed, 40) == []


def test_an_announced_end_is_said_though_the_service_lists_the_alert_no_more() -> None:
    told = relay.Relay()
    assert said(told, bulletins("a", 10, 30), 12) == [("a", START)]
    assert said(told, [], 29) == []
    assert said(told, [], 31) == [("a", END)]


def test_an_end_that_comes_sooner_than_announced_takes_its_place() -> None:
    told = relay.Relay()
    said(told, bulletins("a", 10, 30), 12)
    assert said(told, bulletins("a", 10, 20)[1:], 21) == [("a", END)]
    assert said(told, [], 31) == []


def test_a_start_that_is_withdrawn_before_its_time_is_not_said() -> None:
    told = relay.Relay()
    assert said(told, bulletins("a", 10, 30), 5) == []
    assert said(told, [], 40) == []


def test_of_a_recording_everything_is_said() -> None:
    assert said(relay.Relay(), bulletins("a", 10, 30), None) == [("a", START), ("a", END)]


# --- over a broker -----------------------------------------------------------------------------


def test_a_recording_is_published_once_whoever_publishes_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(tmp_path, knows=["nebraska"]) as url:
        assert relay.main([str(SAMPLE), "--broker", url]) == 0
        first = capsys.readouterr().out
        assert relay.main([str(SAMPLE), "--broker", url]) == 0
    parts = [(entry.uid, entry.part) for entry in read_log(tmp_path)]
    assert len(parts) == len(set(parts)) > 10
    assert first.startswith(f"{len(parts)} published (")
    assert "0 refused" in first
    assert "other event (no watch or warning of thunderstorms" in first


def test_an_address_is_asked_again_and_only_what_is_new_is_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    features = json.loads(SAMPLE.read_text(encoding="utf-8"))["features"]
    feed, rounds = tmp_path / "active", iter(["more", "gone", "end"])

    def write(count: int) -> None:
        feed.write_text(json.dumps({"features": features[:count]}), encoding="utf-8")

    def wait(seconds: float) -> None:
        assert seconds == 60
        match next(rounds):
            case "more":
                write(len(features))
            case "gone":
                feed.unlink()
            case _:
                raise KeyboardInterrupt

    write(3)
    data = tmp_path / "data"
    with served(data, knows=["nebraska"]) as url, address(tmp_path) as http:
        words = [f"{http}/active", "--broker", url, "--every", "60s"]
        assert relay.main(words, wait) == 0
    told = capsys.readouterr()
    first, second, last = told.out.splitlines()
    count = int(first.split()[0])
    assert count > 0
    assert f" {count} published before, 0 refused" in second
    stored = len(list(read_log(data)))
    assert int(second.split()[0]) == stored - count > 0
    assert last == f"ended; {stored} published in all"
    assert "404" in told.err
    assert "again in 60 s" in told.err


def test_what_cannot_be_read_or_reached_is_said_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = ["--broker", "ka://127.0.0.1:9"]
    assert relay.main(["/nowhere.json", *nobody]) == 2
    assert "cannot read the alerts" in capsys.readouterr().err
    assert relay.main(["http://127.0.0.1:9/alerts", *nobody]) == 2
    assert "an address needs the network" in capsys.readouterr().err
    assert relay.main([str(SAMPLE), *nobody]) == 2
    assert "cannot publish" in capsys.readouterr().err
    for wrong in ("soon", "0s"):
        with pytest.raises(SystemExit, match="2"):
            relay.main([str(SAMPLE), "--every", wrong])
