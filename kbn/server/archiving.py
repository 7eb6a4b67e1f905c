"""A broker that archives by itself: ``archive.older`` and ``archive.to`` of its configuration.

The work is done by ``datastore.delta.archivist`` in a thread of its own. The Delta
library is loaded only if archiving is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from datastore.store import Store
from kbn.errors import RefusedError
from kbn.server.config import Config

if TYPE_CHECKING:
    from datastore.delta.archivist import Archivist, Say


def with_archive(store: Store, url: str, config: Config) -> Store:
    """The store with the archive that the configuration asks for, made if it is not there."""
    if config.archive.age is None:
        return store
    if not (url.startswith(("sqlite:", "postgresql:"))):
        raise RefusedError(
            "syntax",
            "archive.older is for stores in SQLite and PostgreSQL"
            + (": a delta:// store archives by itself" if url.startswith("delta:") else ""),
        )
    from datastore.delta.attached import attach, beside  # noqa: PLC0415 - an extra
    from datastore.delta.store import DeltaStore  # noqa: PLC0415
    from datastore.sql.store import SqlStore  # noqa: PLC0415

    to = config.archive.to
    if to is None and isinstance(store, DeltaStore):
        return store
    assert isinstance(store, SqlStore), "that is what these URLs open"
    return attach(store, beside(url, Path(config.data_dir)) if to is None else Path(to))


def archivist(
    store: Store | None, config: Config, now: Callable[[], int], say: Say
) -> Archivist | None:
    """The thread that archives, started; None if nobody asked for it."""
    if config.archive.age is None or store is None:
        return None
    from datastore.delta.archivist import Archivist  # noqa: PLC0415 - an extra
    from datastore.delta.store import DeltaStore  # noqa: PLC0415

    assert isinstance(store, DeltaStore), "it was opened by with_archive"
    made = Archivist(store, config.archive.age, config.times.care, now, say)
    made.start()
    return made
