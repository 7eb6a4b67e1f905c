"""The power fails under a broker: what it wrote since its last fsync is gone, and yet
nothing it acknowledged is lost.

The shim of the store's own power test is loaded into ``kbn serve``; it keeps what
every write replaced, and the writes that were not synced are taken back.
"""

from __future__ import annotations

import asyncio
import os
from random import Random

from datastore.factory import open_store
from tests.datastore.test_power import forgetful, undo  # noqa: F401  a fixture
from tests.recovery.load import Load, serial_of
from tests.recovery.test_kills import killing, port_of
from tests.server.processes import served

CUTS = 200 if os.environ.get("KBN_PROFILE") == "deep" else 3


def test_nothing_acknowledged_is_lost_by_a_power_cut(forgetful, tmp_path) -> None:  # noqa: F811
    folder = (tmp_path / "data").resolve()
    folder.mkdir()
    url = f"sqlite:///{folder}/history.db?low_water=0"
    log = tmp_path / "undo"
    shim = {
        "LD_PRELOAD": str(forgetful),
        "FORGETFUL_DIR": str(folder),
        "FORGETFUL_LOG": str(log),
    }
    random = Random("power")
    load = Load(7)
    synced = 0
    for _ in range(CUTS):
        with served(tmp_path, "--store", url, "--data-dir", str(folder), **shim) as broker:
            upto = len(load.acknowledged) + random.randrange(1, 400)
            asyncio.run(load.drive(port_of(broker.url), upto, killing(broker)))
            broker.process.wait(timeout=60)
        synced += undo(log)[1]
        # Shared memory does not survive a power cut; SQLite makes it anew from the log.
        (folder / "history.db-shm").unlink(missing_ok=True)
        with open_store(url) as store:
            entries = list(store.log())
            assert [finding for finding in store.check() if finding.wrong] == []
        assert not load.lost(entries), "acknowledged and lost"
        serials = [serial_of(entry) for entry in entries]
        assert len(serials) == len(set(serials)), "stored twice"
    assert load.acknowledged
    assert synced > 0, "the shim saw no synced write: it was not loaded"
