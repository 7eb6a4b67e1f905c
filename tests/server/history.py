"""A broker with a history over sockets, and a store that can be made to fail or wait."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import kbn.server.run
from datastore.factory import open_store
from datastore.store import Batch, Store
from kbn.errors import StoreError
from kbn.server.run import Broker
from tests.sockets import LOOPBACK, running


def store_url(folder: Path) -> str:
    return f"sqlite:///{folder}/history.db"


@asynccontextmanager
async def remembering(folder: Path, port: int = 0, **said: object) -> AsyncIterator[Broker]:
    """A broker whose history lies in the folder, on a port of its own or a given one."""
    listen = (f"ka://{LOOPBACK}:{port}",)
    flags = {"store": store_url(folder), "data_dir": str(folder), **said}
    async with running(listen=listen, **flags) as broker:
        yield broker


def stored(folder: Path) -> list[dict[str, object]]:
    """What the log holds on disk now, read beside the broker."""
    with open_store(store_url(folder), read_only=True) as store:
        return [dict(entry.notification.attributes) for entry in store.log()]


class Disk:
    """Stands before the store's ``append``: may refuse, or wait until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken = False
        self.appended = 0
        self.largest = 0
        self._free = threading.Event()
        self._free.set()
        opened = kbn.server.run.open_store

        def open_watched(url: str) -> Store:
            store = opened(url)
            write = store.append

            def append(batch: Batch) -> None:
                assert self._free.wait(60), "nobody let the disk go"
                if self.broken and batch.entries:
                    raise StoreError("the disk is gone")
                write(batch)
                self.appended += len(batch.entries)
                self.largest = max(self.largest, len(batch.entries))

            monkeypatch.setattr(store, "append", append, raising=False)
            return store

        monkeypatch.setattr(kbn.server.run, "open_store", open_watched)

    def stop(self) -> None:
        self._free.clear()

    def go(self) -> None:
        self._free.set()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)
