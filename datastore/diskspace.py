"""The low-water mark: refuse to write while there is still room to recover.

A disk that is full stops more than the history; so appends are refused with
``store_unavailable`` when less than ``low_water`` bytes are free, and accepted again
when there is room. Cost: one ``statvfs``, about a microsecond.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from kbn.errors import StoreError

DEFAULT_LOW_WATER = 64 * 2**20


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


class DiskSpace:
    """Watches the disk that holds ``folder``."""

    def __init__(
        self,
        folder: Path,
        low_water: int = DEFAULT_LOW_WATER,
        free: Callable[[Path], int] = _free_bytes,
    ) -> None:
        self.folder = folder
        self.low_water = low_water
        self._free = free

    def is_low(self) -> bool:
        """Whether less than the low-water mark is free."""
        return self._free(self.folder) < self.low_water

    def require(self) -> None:
        """Raise ``StoreError`` when the disk is nearly full."""
        free = self._free(self.folder)
        if free < self.low_water:
            raise StoreError(
                f"only {free:,} bytes are free, less than the low-water mark of"
                f" {self.low_water:,}: make room, nothing is stored until then",
                store=str(self.folder),
            )
