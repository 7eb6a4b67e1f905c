"""Two brokers that want one port: one stands, the other says so and how to go on."""

from __future__ import annotations

import asyncio
import errno
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from kbn.errors import RefusedError
from kbn.server.ports import hint
from kbn.server.run import Broker
from tests.server.processes import environment, served
from tests.server.processes import kbn as command
from tests.sockets import config

LOOPS = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
Loop = Callable[[], asyncio.AbstractEventLoop]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


async def start_together(*brokers: Broker) -> list[RefusedError]:
    """Start them at once; those that stand are stopped, what the others said is returned."""
    ends = await asyncio.gather(*(b.start() for b in brokers), return_exceptions=True)
    refused = []
    for broker, end in zip(brokers, ends, strict=True):
        if isinstance(end, BaseException):
            assert isinstance(end, RefusedError), end
            refused.append(end)
            continue
        address = end.listening[0]
        with socket.create_connection((address.host, address.port)):
            await broker.stop()
    return refused


def taken_by_one(loop: Loop, *brokers: Broker) -> RefusedError:
    with asyncio.Runner(loop_factory=loop) as runner:
        (refused,) = runner.run(start_together(*brokers))
    assert refused.code == "unreachable"
    return refused


@LOOPS
def test_of_two_brokers_started_together_on_one_port_one_stands(loop: Loop) -> None:
    url = f"ka://127.0.0.1:{free_port()}"
    brokers = [Broker(config(listen=(url,), identity=name)) for name in ("b1", "b2")]
    refused = taken_by_one(loop, *brokers)
    assert str(refused).startswith(f"cannot listen on {url}: ")
    assert "--listen ka://127.0.0.1:1971" in str(refused)


@LOOPS
def test_of_two_brokers_started_together_over_tls_on_one_port_one_stands(
    loop: Loop, pki: Path
) -> None:
    url = f"ka+senps://127.0.0.1:{free_port()}"
    tls = {"tls.cert": str(pki / "server.pem"), "tls.key": str(pki / "server.key")}
    brokers = [Broker(config(listen=(url,), identity=name, **tls)) for name in ("b1", "b2")]
    assert str(taken_by_one(loop, *brokers)).startswith(f"cannot listen on {url}: ")


@LOOPS
def test_of_two_brokers_that_ask_for_one_http_port_one_stands(loop: Loop) -> None:
    place = f"127.0.0.1:{free_port()}"
    listen = ("ka://127.0.0.1:0",)
    brokers = [Broker(config(listen=listen, http=place, identity=n)) for n in ("b1", "b2")]
    assert str(taken_by_one(loop, *brokers)).startswith(f"no HTTP on {place}: ")


def test_of_two_processes_started_together_one_exits_two_with_the_way_out(tmp_path: Path) -> None:
    url = f"ka://127.0.0.1:{free_port()}"
    words = ["serve", "--listen", url, "--http", "none", "--store", "none"]
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "kbn", *words],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        firsts = [process.stdout.readline() for process in both if process.stdout]
        stands = [f"listens on {url}" in line for line in firsts]
        assert sorted(stands) == [False, True], firsts
        other = both[stands.index(False)]
        _, said = other.communicate(timeout=60)
        assert other.returncode == 2
        assert said.startswith(f"kbn: unreachable: cannot listen on {url}: ")
        assert "KBN_BROKER=" in said
    finally:
        for process in both:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=60)


def test_an_http_port_that_is_taken_is_one_line_and_exit_two(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        listen = ("--listen", "ka://127.0.0.1:0", "--store", "none")
        done = command("serve", *listen, "--http", place, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"kbn: unreachable: no HTTP on {place}: ")
    assert "another broker on this machine?" in line


def test_the_way_out_is_another_port_than_the_one_that_is_taken() -> None:
    taken = OSError(errno.EADDRINUSE, "Address already in use")
    assert "KBN_LISTEN=ka://127.0.0.1:1971 make run" in hint(taken, 1969)
    assert "KBN_LISTEN=ka://127.0.0.1:1972 make run" in hint(taken, 1971)
    assert hint(OSError(errno.EADDRNOTAVAIL, "not ours"), 1969) == ""


def test_a_store_that_is_taken_names_the_data_directory(tmp_path: Path) -> None:
    with served(tmp_path):
        rival = command("serve", "--listen", "ka://127.0.0.1:0", "--http", "none", cwd=tmp_path)
    assert rival.returncode == 2
    assert "--data-dir" in rival.stderr
