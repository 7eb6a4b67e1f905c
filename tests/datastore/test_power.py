"""A power cut: what was written since the last fsync is gone, what was acknowledged is not."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from datastore.factory import open_store
from datastore.testing.crash import killed_run, verify

CUTS = 300 if os.environ.get("KBN_PROFILE") == "deep" else 4
_HEAD = struct.Struct("=5q")


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory) -> Path:
    """The shim, compiled; it needs a C compiler and a loader that preloads."""
    compiler = shutil.which("cc")
    if compiler is None or not Path("/proc/self/fd").exists():
        pytest.skip("no C compiler here, or no Linux")
    made = tmp_path_factory.mktemp("shim") / "forgetful.so"
    source = Path(__file__).with_name("forgetful.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(source), "-ldl"]
    subprocess.run([*command, "-lpthread"], check=True)
    return made


def undo(log: Path) -> tuple[int, int]:
    """Play the log backwards; how many writes were forgotten, and how many were synced."""
    data = log.read_bytes()
    records, at = [], 0
    while at + _HEAD.size <= len(data):
        kind, path_size, offset, size, held = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        path = data[at : at + path_size].decode()
        old = data[at + path_size : at + path_size + held]
        at += path_size + held
        records.append((chr(kind), path, offset, size, old))
    safe: set[str] = set()
    forgotten = kept = 0
    for kind, path, offset, size, old in reversed(records):
        if kind == "S":
            safe.add(path)
        elif path in safe:
            kept += 1
        elif Path(path).exists():
            forgotten += 1
            with open(path, "r+b") as file:
                file.seek(offset)
                file.write(old)
                file.truncate(size)
    log.unlink()
    return forgotten, kept


def test_nothing_acknowledged_is_lost_by_a_power_cut(forgetful, tmp_path) -> None:
    folder = (tmp_path / "data").resolve()
    folder.mkdir()
    url = f"sqlite:///{folder}/history.db?low_water=0"
    log = tmp_path / "undo"
    environment = {
        "LD_PRELOAD": str(forgetful),
        "FORGETFUL_DIR": str(folder),
        "FORGETFUL_LOG": str(log),
    }
    draw = random.Random("power")
    acknowledged: list[int] = []
    forgotten = kept = 0
    for seed in range(CUTS):
        acknowledged += killed_run(url, seed, draw.randrange(1, 20_000), environment)
        lost, synced = undo(log)
        forgotten, kept = forgotten + lost, kept + synced
        # Shared memory does not survive a power cut; SQLite makes it anew from the log.
        (folder / "history.db-shm").unlink(missing_ok=True)
        with open_store(url) as store:
            verify(store, acknowledged)
    assert acknowledged
    assert kept > 0, "the shim saw no synced write: it was not loaded"


def test_the_shim_does_forget_what_was_not_synced(forgetful, tmp_path) -> None:
    """The test above can fail: a store that does not sync loses what it acknowledged."""
    folder = (tmp_path / "data").resolve()
    folder.mkdir()
    file, log = folder / "file", tmp_path / "undo"
    file.write_bytes(b"old")
    code = (
        "import os, sys; f = os.open(sys.argv[1], os.O_RDWR);"
        "os.pwrite(f, b'synced', 0); os.fsync(f); os.pwrite(f, b'XXXXXXXXXX', 2); os._exit(0)"
    )
    environment = {
        **os.environ,
        "LD_PRELOAD": str(forgetful),
        "FORGETFUL_DIR": str(folder),
        "FORGETFUL_LOG": str(log),
    }
    import sys

    subprocess.run([sys.executable, "-c", code, str(file)], check=True, env=environment)
    assert file.read_bytes() == b"syXXXXXXXXXX"
    assert undo(log) == (1, 1)
    assert file.read_bytes() == b"synced"
