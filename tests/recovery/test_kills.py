"""``kbn serve`` killed at random points under load: nothing acknowledged is lost or doubled.

Each store, with a publisher that sends again what was not acknowledged and a durable
subscriber that comes back. How long a restart took is printed, not judged.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from datastore.delta.attached import ArchivedStore
from datastore.factory import open_store
from tests.recovery.load import Load, serial_of
from tests.server.processes import Served, kbn, served

DEEP = os.environ.get("KBN_PROFILE") == "deep"
KILLS = 1_000 if DEEP else 4


def store_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    if kind == "postgresql":
        made: str = request.getfixturevalue("postgres")()
        return made
    return f"{kind}:///{folder}/history?low_water=0"


#: Everything is old enough at once, and looked for all the time.
ARCHIVING = ("--archive-older", "0s", "--times-care", "0.01")


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1].strip("/"))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "delta"])
def test_what_was_acknowledged_survives_kills(kind, request, tmp_path) -> None:
    survive(kind, KILLS, store_of(kind, request, tmp_path), tmp_path)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_broker_killed_while_it_archives_loses_and_doubles_nothing(
    kind, request, tmp_path
) -> None:
    url = store_of(kind, request, tmp_path)
    survive(f"{kind}, archiving", 50 if DEEP else 5, url, tmp_path, *ARCHIVING, most=2_000)
    with open_store(url) as store:
        assert isinstance(store, ArchivedStore)
        rows, seqs = store.archive.distinct()
        assert rows == seqs == store.archived()[0] > 0
        assert store.info()["runs"] > 2, "it was archived in pieces"


def survive(kind: str, kills: int, url: str, tmp_path: Path, *more: str, most: int = 400) -> None:
    """Kill a broker under load so often, after at most so many publications each, and look
    after each kill at what is on disk."""
    words = ("--store", url, "--data-dir", str(tmp_path / "data"), *more)
    random = Random(f"kills {kind}")
    load = Load(len(kind))
    restarts: list[float] = []
    for number in range(kills + 1):
        begun = time.monotonic()
        with served(tmp_path, *words) as broker:
            restarts.append(time.monotonic() - begun)
            last = number == kills
            upto = len(load.acknowledged) + random.randrange(1, most)

            end = _when_quiet(load) if last else killing(broker)
            asyncio.run(load.drive(port_of(broker.url), upto, end))
            if last:
                asyncio.run(_hear_the_rest(load, port_of(broker.url), url))
                broker.end(signal.SIGTERM)
            else:
                broker.process.wait(timeout=60)
        with open_store(url) as store:
            log = list(store.log())
            assert not load.lost(log), "acknowledged and lost"
            serials = [serial_of(entry) for entry in log]
            assert len(serials) == len(set(serials)), "stored twice"
            wrong = [finding for finding in store.check() if finding.wrong]
            assert not wrong, wrong
    assert not load.missed(load.owed(log))
    checked = kbn("store", "check", "--store", url)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    sys.stdout.write(
        f"{kind}: {kills} kills, {len(load.acknowledged)} acknowledged, lost 0, doubled 0,"
        f" told {load.told} of {sum(map(len, load.heard.values()))},"
        f" ready again after at most {max(restarts):.2f} s\n"
    )


def killing(broker: Served) -> Callable[[], bool]:
    """Kills the broker when it is asked."""

    def kill() -> bool:
        broker.process.send_signal(signal.SIGKILL)
        return False  # go on until the connection ends

    return kill


def _when_quiet(load: Load) -> Callable[[], bool]:
    return lambda: not load.waiting


async def _hear_the_rest(load: Load, port: int, url: str) -> None:
    """Listen until the subscriber has everything it is owed."""
    with open_store(url, read_only=True) as store:
        owed = load.owed(list(store.log()))
    listening = asyncio.create_task(load.listen(port))
    try:
        async with asyncio.timeout(30):
            while load.missed(owed):
                assert not listening.done(), listening
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"never heard: {load.missed(owed)}") from None
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
