"""One broker per store: a lock on a file, which the system lets go when the process ends.

The file stays and tells who had it last; only the lock counts, so ``kill -9`` leaves
nothing to clean up.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kbn.errors import StoreBusyError

if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class LockFile:
    """Held from creation to ``release``; raises ``StoreBusyError`` if somebody else holds it."""

    def __init__(self, path: Path, store: str) -> None:
        self._file: int | None = None
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _take(file)
        except OSError:
            owner = os.read(file, 32).decode("ascii", "replace").strip()
            os.close(file)
            by = f" (process {owner})" if owner else ""
            raise StoreBusyError(
                f"another broker{by} has this store open: end it, or choose another store"
                " (--data-dir or --store)",
                store=store,
            ) from None
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode("ascii"))
        self._file = file

    def release(self) -> None:
        """Let go; may be called twice."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
