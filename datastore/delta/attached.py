"""A SQL store whose old entries were moved to a Delta table: ``kbn archive``.

Law: archiving changes no answer. The store reads as one log: up to ``trimmed`` from the
table, above it from SQL, and each event by its row in ``publications``, which stays when
its entries go; so a duplicate of an archived publication, or an END that comes late, is
known for what it is. A run is planned in SQL, written with its transaction id,
verified, then marked; entries are deleted and the mark is moved in one transaction.
Killed at any point, the next call goes on: nothing is lost, nothing is there twice.
"""

from __future__ import annotations

from pathlib import Path

from datastore.delta.archive import Archive
from datastore.delta.store import RUN_SIZE, DeltaStore
from datastore.factory import ARCHIVE
from datastore.sql.store import SqlStore
from datastore.store import Capabilities, Progress, no_progress
from kbn.errors import StoreError


class ArchivedStore(DeltaStore):
    """A SQL store and its archive behind the one interface; it drains when it is told to."""

    def __init__(self, store: SqlStore, path: Path) -> None:
        archive = Archive(path, read_only=True)
        super().__init__(store.link, archive, read_only=store.read_only, names=None, keep=0)
        held = store.capabilities
        self.capabilities = Capabilities(held.engine, durable=True, push_down=True, archive=True)

    def info(self) -> dict[str, object]:
        return {
            **super().info(),
            "engine": self.capabilities.engine,
            "archive": str(self.archive.path),
        }


def attached(store: SqlStore) -> ArchivedStore:
    """The store with the archive it remembers, on the same connections."""
    path = store.meta.get(ARCHIVE)
    assert path is not None, "asked only where there is one"
    return ArchivedStore(store, Path(path))


def attach(store: SqlStore, path: Path) -> ArchivedStore:
    """Give a store its archive, made if it is not there. Raises ``StoreError`` if it has
    another one."""
    path = path.resolve()
    held = store.meta.get(ARCHIVE)
    if held is not None and Path(held) != path:
        raise StoreError(f"its archive is {held}, not {path}", store=store.link.name)
    # The table first: a store that names an archive can always be opened with it.
    Archive(path, read_only=False)
    with store.link.writing():
        store.meta.set(ARCHIVE, str(path))
    return attached(store)


def beside(url: str, data_dir: Path) -> Path:
    """Where an archive is made if nobody says: in the folder of the store."""
    if url.startswith("sqlite:///"):
        return Path(url.removeprefix("sqlite:///").split("?")[0]).parent / "archive"
    return data_dir / "archive"


def move(
    store: DeltaStore, upto: int, *, run: int = RUN_SIZE, progress: Progress = no_progress
) -> int:
    """Move entries up to ``upto`` to the archive, run by run; how many it wrote.

    Goes on where an earlier call was interrupted, then takes from SQL what is archived and
    brings the merged events up to it.
    """
    total = max(0, upto - store.archived()[0])
    done = 0
    while moved := store.drain(run, upto):
        done += moved
        progress(done, total)
    store.projection.advance(2**62)
    store.trim()
    sum(store.derive())
    return done
