"""The merged events of a store: found or made, and brought up to its archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from datastore.delta.archive import Archive
from datastore.delta.derive import STEP, Bounds, Deriver
from datastore.delta.merged import MergedTable, merged_path
from datastore.delta.table import is_table


class Following:
    """One table beside one archive. ``moving`` is held whenever either is changed."""

    def __init__(
        self,
        archive: Archive,
        store_id: Callable[[], str],
        bounds: Bounds,
        moving: AbstractContextManager[bool],
    ) -> None:
        self._archive = archive
        self._store_id = store_id
        self._bounds = bounds
        self._moving = moving
        #: Once it was looked for and found.
        self._table: MergedTable | None = None
        self._deriver: Deriver | None = None

    def table(self) -> MergedTable | None:
        """The table as of now; None: nothing was derived yet."""
        path = merged_path(self._archive.path)
        if self._table is not None:
            self._table.refresh()
        elif is_table(path):
            self._table = MergedTable(path)
        return self._table

    def steps(self, steps: int = 2**62, size: int = STEP) -> Iterator[int]:
        """Bring the table up to the archive; after each step, how many numbers it took."""
        if self._deriver is None:
            self._deriver = Deriver(self._archive, self._made())
        for _ in range(steps):
            with self._moving:
                taken = self._deriver.step(self._bounds, size=size)
            if not taken:
                return
            yield taken

    @contextmanager
    def standing(self) -> Iterator[MergedTable]:
        """The table, made if need be, while nothing is drained, derived or retained."""
        with self._moving:
            held = self._made()
            held.refresh()
            self._archive.refresh()
            yield held

    def info(self) -> dict[str, object]:
        held = self.table()
        if held is None:
            return {"derived": 0}
        return {
            "derived": held.derived(),
            "events_table": str(held.path),
            "events_bytes": held.bytes(),
            "events_files": held.files(),
        }

    def _made(self) -> MergedTable:
        if self._table is None:
            path = merged_path(self._archive.path)
            self._table = MergedTable(path, self._store_id(), self._archive.promoted())
        return self._table
