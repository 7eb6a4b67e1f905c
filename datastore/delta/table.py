"""What both Delta tables have in common: promoted names, files, versions, care.

A promoted name has a number for ever, and flat columns from then on. Files are
rewritten by compaction and by merging, so whether a column is in a file does not say
whether its rows were written with it: the table remembers after which number of the log
a name became flat (``kbn.flat``), and a name counts as flat if no row is older.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable, Field
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import PrimitiveType

from datastore.delta.schema import flat_fields, log_schema
from kbn.errors import StoreError

PROMOTED, FLAT = "kbn.promoted", "kbn.flat"
#: How many ranges one delete names.
_RANGES = 200
#: How often a commit is tried when somebody else was faster.
_TRIES = 5
_DELTA_TYPES = {pa.int64(): "long", pa.float64(): "double", pa.string(): "string"}


class Table:
    """One Delta table. Safe for one writing thread and any number that read."""

    #: The column that says how new a row is, as a number of the log.
    newest_by: ClassVar[str] = "seq"

    def __init__(
        self,
        path: Path,
        promoted: Mapping[str, int] | None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """``promoted`` are flat from the start if the table is made here; None: it is not."""
        self.path = path
        self._lock = threading.Lock()
        try:
            if is_table(path):
                self._table = DeltaTable(str(path))
            elif promoted is None:
                raise StoreError("there is no Delta table", store=str(path))
            else:
                self._table = DeltaTable.create(
                    str(path),
                    self.schema(promoted.values()),
                    partition_by=["day"],
                    configuration={**(properties or {}), **_said(promoted, {})},
                    raise_if_key_not_exists=False,
                )
        except (DeltaError, OSError) as error:
            raise StoreError(str(error), store=str(path)) from error

    @staticmethod
    def schema(promoted: Iterable[int]) -> pa.Schema:
        """The columns, with flat ones for these numbers."""
        return log_schema(promoted)

    # Promoted names

    def promoted(self) -> dict[str, int]:
        """Names with flat columns, by their numbers; numbers are never used again."""
        return {name: int(number) for number, name in self._property(PROMOTED).items()}

    def flat_names(self) -> frozenset[str]:
        """Promoted names that no row holds in a map."""
        since = self._property(FLAT)
        held = self._statistics()
        named = f"min.{self.newest_by}"
        if not held.num_rows:
            oldest = None
        elif named not in held.column_names or held.column(named).null_count:
            return frozenset()
        else:
            oldest = pc.min(held.column(named)).as_py()
        return frozenset(
            name
            for name, number in self.promoted().items()
            if oldest is None or oldest > since.get(str(number), 0)
        )

    def _promote(self, numbers: Mapping[str, int], since: int) -> None:
        """Flat columns for these; rows up to ``since`` hold them in the maps."""
        there = {field.name for field in self._table.schema().fields}
        missing = [f for f in flat_fields(numbers.values()) if f[0] not in there]
        flat = {**self._property(FLAT), **{str(number): since for number in numbers.values()}}
        with self._lock:
            if missing:
                self._table.alter.add_columns(
                    [Field(name, PrimitiveType(_DELTA_TYPES[kind])) for name, kind in missing]
                )
            self._table.alter.set_table_properties(
                _said({**self.promoted(), **numbers}, flat), raise_if_not_exists=False
            )
            self._table.update_incremental()

    def _property(self, name: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self._table.metadata().configuration.get(name) or "{}")
        return said

    # Care

    def compact(self) -> dict[str, Any]:
        """Join small files of a day into large ones."""
        return self.optimize()

    def optimize(self, *, by_start: bool = False) -> dict[str, Any]:
        """Join small files of a day; ``by_start`` also sorts them by the events' start. Who
        reads meanwhile does not wait for it."""
        work = DeltaTable(str(self.path)).optimize
        try:
            done: dict[str, Any] = work.z_order(["start_ms"]) if by_start else work.compact()
        except CommitFailedError as error:
            raise StoreError(
                "another program changed the table meanwhile: try again", store=str(self.path)
            ) from error
        finally:
            self.refresh()
        return done

    def vacuum(self, hours: int, *, dry_run: bool) -> list[str]:
        """Delete files that no version of the last ``hours`` needs; which ones."""
        with self._lock:
            gone = self._table.vacuum(hours, dry_run=dry_run, enforce_retention_duration=False)
            self._table.update_incremental()
        return list(gone)

    def _delete(self, column: str, seqs: Iterable[int]) -> None:
        """Take rows out by a number. The predicate holds numbers only."""
        spans = list(_spans(sorted(seqs)))
        for at in range(0, len(spans), _RANGES):
            said = " OR ".join(
                f"({column} >= {int(low)} AND {column} <= {int(high)})"
                for low, high in spans[at : at + _RANGES]
            )
            for left in reversed(range(_TRIES)):
                with self._lock:
                    try:
                        self._table.delete(said)
                        break
                    except CommitFailedError:
                        # Somebody else rewrote the same files.
                        if not left:
                            raise
                    finally:
                        self._table.update_incremental()

    # Looking

    def refresh(self) -> None:
        with self._lock:
            self._table.update_incremental()

    def bytes(self) -> int:
        sizes = pa.table(self._table.get_add_actions()).column("size_bytes")
        return pc.sum(sizes).as_py() or 0

    def files(self) -> int:
        return len(self._table.file_uris())

    def version(self) -> int:
        """The table's version as of the last ``refresh``, for readers that pin it."""
        return self._table.version()

    def _statistics(self) -> pa.Table:
        return pa.table(self._table.get_add_actions(flatten=True))

    def _column(self, name: str, asked: ds.Expression | None) -> pa.ChunkedArray:
        return self._dataset().to_table(columns=[name], filter=asked).column(name)

    def _dataset(self) -> ds.Dataset:
        with self._lock:
            return self._table.to_pyarrow_dataset()

    def _came(self, known: set[str], version: int) -> list[Path]:
        """The files of data and of the log that came since then."""
        new = set(self._table.file_uris()) - known
        commits = range(version + 1, self._table.version() + 1)
        logs = [self.path / "_delta_log" / f"{number:020}.json" for number in commits]
        return [*(Path(unquote(uri.removeprefix("file://"))) for uri in new), *logs]


def is_table(path: Path) -> bool:
    """Whether there is a Delta table."""
    return DeltaTable.is_deltatable(str(path))


def _said(promoted: Mapping[str, int], flat: Mapping[str, int]) -> dict[str, str]:
    names = {str(number): name for name, number in promoted.items()}
    return {PROMOTED: json.dumps(names), FLAT: json.dumps(flat)}


def sync(files: Sequence[Path]) -> None:
    """Force files and their folders to disk: the writer leaves that to the system."""
    folders = {parent for file in files for parent in (file.parent, file.parent.parent)}
    for path in (*files, *folders):
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _spans(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of consecutive numbers."""
    start = last = None
    for seq in seqs:
        if last is not None and start is not None and seq != last + 1:
            yield start, last
            start = seq
        start = seq if start is None else start
        last = seq
    if start is not None and last is not None:
        yield start, last
