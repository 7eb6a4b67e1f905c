"""Results of builds on disk, by key. No pickle: people copy caches.

A damaged or foreign entry is no entry. A directory that cannot be written is a
cache that never remembers; loading still works.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

#: So many results are kept; the one unused longest goes first.
KEPT = 64
_SUFFIX = ".kbnh"


class Cache:
    """A directory of files named by key."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def get(self, key: str) -> bytes | None:
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """All or nothing: a reader never sees half an entry."""
        with suppress(OSError):
            self.directory.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.directory, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                Path(name).replace(self._path(key))
            except OSError:
                Path(name).unlink(missing_ok=True)
            self._prune()

    def forget(self, key: str) -> None:
        with suppress(OSError):
            self._path(key).unlink()

    def _path(self, key: str) -> Path:
        return self.directory / (key + _SUFFIX)

    def _prune(self) -> None:
        held = sorted(self.directory.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime)
        for path in held[:-KEPT]:
            path.unlink(missing_ok=True)


def default_cache() -> Cache:
    """``KBN_CACHE_DIR``, else the user's cache directory."""
    given = os.environ.get("KBN_CACHE_DIR")
    if given:
        return Cache(Path(given) / "ontologies")
    base = os.environ.get("XDG_CACHE_HOME")
    return Cache((Path(base) if base else Path.home() / ".cache") / "kbn" / "ontologies")
