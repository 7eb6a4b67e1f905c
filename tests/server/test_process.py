"""A broker as people run it: its five lines, its signals, its exit codes."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest

import kbn
from tests.server.processes import kbn as command
from tests.server.processes import served


def test_five_lines_say_who_where_and_what_to_type_next(tmp_path: Path) -> None:
    with served(tmp_path, "--id", "b1", "--http", "127.0.0.1:0") as broker:
        first, history, health, subscribe, publish = broker.lines
        assert first.startswith("KBN broker b1 listens on ka://127.0.0.1:")
        assert history.startswith("history: ")
        assert health.startswith("health and metrics: http://127.0.0.1:")
        assert subscribe.split(maxsplit=1)[1] == f"kbn sub --broker {broker.url} 'price < 80'"
        assert f"--broker {broker.url}" in publish


@pytest.mark.parametrize(
    ("url", "path"), [("sqlite:///x/h.db", "x/h.db"), ("delta:///tmp/x", "tmp/x")]
)
def test_the_history_line_says_where_a_relative_store_is(
    tmp_path: Path, url: str, path: str
) -> None:
    (tmp_path / "x").mkdir()
    with served(tmp_path, "--store", url) as broker:
        assert broker.lines[1] == f"history: {url} in {tmp_path / path}"
    with served(tmp_path, "--store", "memory:") as broker:
        assert broker.lines[1] == "history: memory:"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_what_waits_and_exits_zero(tmp_path: Path, number: int) -> None:
    with served(tmp_path, "--store", "none") as broker:
        client = kbn.connect_sync(broker.url, reconnect=False)
        with client, client.subscribe("n any") as stream:
            client.publish_many({"n": n, "pad": "x" * 500} for n in range(2000))
            code, said = broker.end(number)
            assert code == 0
            (line,) = said.splitlines()
            assert line.endswith(" drained and ended")
            assert [stream.get(10)["n"] for _ in range(2000)] == list(range(2000))
            with pytest.raises(kbn.UnreachableError):
                stream.get(10)


def test_a_broker_keeps_its_name_in_the_data_directory(tmp_path: Path) -> None:
    with served(tmp_path) as broker:
        first = broker.lines[0].split()[2]
        broker.end(signal.SIGTERM)
    with served(tmp_path) as broker:
        assert broker.lines[0].split()[2] == first
    assert (tmp_path / "kbn-data" / "identity").read_text().strip() == first


def test_json_logs_are_json_line_by_line(tmp_path: Path) -> None:
    with served(tmp_path, "--store", "none", "--log", "json") as broker:
        host, port = broker.url.removeprefix("ka://").split(":")
        with socket.create_connection((host, int(port))) as peer:
            assert peer.recv(1) == b"\x01"
            peer.sendall(b"\x00\x03abc" * 100)
            with kbn.connect_sync(broker.url) as client:
                client.ping()
        code, said = broker.end(signal.SIGTERM)
        assert code == 0
        told = [json.loads(line) for line in said.splitlines()]
        malformed = [line for line in told if line["event"] == "legacy_syntax"]
        assert sum(1 + line.get("more", 0) for line in malformed) == 100


def test_an_address_that_is_taken_is_one_line_and_exit_two(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"ka://127.0.0.1:{taken.getsockname()[1]}"
        done = command("serve", "--listen", url, "--http", "none", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"kbn: unreachable: cannot listen on {url}: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--listen", "ka://0.0.0.0:0"), "--insecure"),
        (("--listen", "smtp://127.0.0.1:1"), "no transport of ours"),
        (("--lisen", "ka://127.0.0.1:0"), "did you mean --listen?"),
        (("--limits-qeue", "1"), "did you mean --limits-queue?"),
        (("--port", "1970"), "say --listen ka://"),
        (("--limits-queue", "-1"), "limits.queue"),
        (("--log", "loud"), "log"),
        (("--config", "nowhere.toml"), "cannot read nowhere.toml"),
        (("--listen", "ka+senps://127.0.0.1:0"), "tls.cert"),
        (("--http", "127.0.0.1:99999"), "port"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_serve_cannot_do_is_said_on_standard_error_with_exit_two(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    listen = () if "--listen" in words else ("--listen", "ka://127.0.0.1:0")
    http = () if "--http" in words else ("--http", "none")
    done = command("serve", *listen, *http, *words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_flags_variables_and_the_file_reach_a_running_broker(tmp_path: Path) -> None:
    (tmp_path / "kbn.toml").write_text('identity = "file"\n[limits]\nconstraints = 5\n')
    words = ("--config", "kbn.toml", "--store", "none", "--limits-depth", "3")
    with (
        served(tmp_path, *words, KBN_IDENTITY="variable") as broker,
        kbn.connect_sync(broker.url) as client,
    ):
        assert client.identity == "variable"
        assert (client.limits.max_constraints, client.limits.max_depth) == (5, 3)
