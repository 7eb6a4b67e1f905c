"""The Delta table: appended to with transaction ids, read by seq and by id.

Law: run ``n`` of a store is in the table once or not at all, whatever was killed when:
each commit carries (store id, run), and a run that is there is not written again.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from datastore.delta.decode import from_columns
from datastore.delta.schema import log_schema, to_columns
from kbn.errors import StoreError
from kbn.model.publications import LogEntry

_PROMOTED = "kbn.promoted"
#: How many ranges one delete names.
_RANGES = 200


class Archive:
    """One Delta table. Safe for one writing thread and any number that read."""

    def __init__(self, path: Path, *, read_only: bool, names: Iterable[str] = ()) -> None:
        """``names`` are promoted from the start if the table is made here."""
        self.path = path
        #: How often entries were asked of the table.
        self.reads = 0
        self._lock = threading.Lock()
        try:
            if DeltaTable.is_deltatable(str(path)):
                self._table = DeltaTable(str(path))
            elif read_only:
                raise StoreError("there is no Delta table", store=str(path))
            else:
                numbers = {str(number): name for number, name in enumerate(names, 1)}
                self._table = DeltaTable.create(
                    str(path),
                    log_schema(map(int, numbers)),
                    partition_by=["day"],
                    configuration={_PROMOTED: json.dumps(numbers)},
                    raise_if_key_not_exists=False,
                )
        except (DeltaError, OSError) as error:
            raise StoreError(str(error), store=str(path)) from error

    # Writing

    def promoted(self) -> dict[str, int]:
        """Names with flat columns, by their numbers; numbers are never used again."""
        said = self._table.metadata().configuration.get(_PROMOTED) or "{}"
        return {name: int(number) for number, name in json.loads(said).items()}

    def promote(self, names: Iterable[str]) -> None:
        """Give these names flat columns from the next run on."""
        held = self.promoted()
        new = [name for name in names if name not in held]
        if new:
            start = max(held.values(), default=0) + 1
            held |= {name: start + at for at, name in enumerate(new)}
            said = json.dumps({str(number): name for name, number in held.items()})
            with self._lock:
                self._table.alter.set_table_properties(
                    {_PROMOTED: said}, raise_if_not_exists=False
                )

    def last_run(self, store_id: str) -> int:
        """The newest run of that store in the table."""
        self.refresh()
        return self._table.transaction_version(store_id) or 0

    def write(self, entries: Sequence[LogEntry], store_id: str, run: int) -> None:
        """Append one run, as one commit."""
        data = to_columns(entries, self.promoted())
        with self._lock:
            known = set(self._table.file_uris())
            there = {field.name for field in self._table.schema().fields}
            version = self._table.version()
            write_deltalake(
                self._table,
                data,
                mode="append",
                schema_mode=None if there.issuperset(data.column_names) else "merge",
                commit_properties=CommitProperties(app_transactions=[Transaction(store_id, run)]),
            )
            self._table.update_incremental()
            new = set(self._table.file_uris()) - known
            commits = range(version + 1, self._table.version() + 1)
        logs = [self.path / "_delta_log" / f"{number:020}.json" for number in commits]
        _sync([*(Path(unquote(uri.removeprefix("file://"))) for uri in new), *logs])

    def delete(self, seqs: Sequence[int]) -> None:
        """Take entries out; for retention. The predicate holds numbers only."""
        spans = list(_spans(sorted(seqs)))
        for at in range(0, len(spans), _RANGES):
            said = " OR ".join(
                f"(seq >= {int(low)} AND seq <= {int(high)})"
                for low, high in spans[at : at + _RANGES]
            )
            with self._lock:
                self._table.delete(said)
                self._table.update_incremental()

    def compact(self) -> dict[str, Any]:
        """Join small files of a day into large ones; who reads does not wait for it."""
        done: dict[str, Any] = DeltaTable(str(self.path)).optimize.compact()
        self.refresh()
        return done

    def optimize(self, *, by_start: bool = False) -> dict[str, Any]:
        """Join small files of a day; ``by_start`` also sorts them by the events' start."""
        if not by_start:
            return self.compact()
        with self._lock:
            done: dict[str, Any] = self._table.optimize.z_order(["start_ms"])
            self._table.update_incremental()
        return done

    def vacuum(self, hours: int, *, dry_run: bool) -> list[str]:
        """Delete files that no version of the last ``hours`` needs; which ones."""
        with self._lock:
            gone = self._table.vacuum(hours, dry_run=dry_run, enforce_retention_duration=False)
            self._table.update_incremental()
        return list(gone)

    # Reading

    def refresh(self) -> None:
        with self._lock:
            self._table.update_incremental()

    def read(self, low: int, high: int) -> Iterator[LogEntry]:
        """Entries with low ≤ seq ≤ high, in order, as of the call; made as they are taken."""
        asked = (ds.field("seq") >= low) & (ds.field("seq") <= high)
        found = self._scan(asked)
        seqs = found.column("seq")
        if len(seqs) and not pc.all(pc.greater(seqs[1:], seqs[:-1])).as_py():
            found = found.take(pc.sort_indices(seqs))
        return from_columns(found, self.promoted())

    def of_events(self, uids: Sequence[str], low: int, high: int) -> list[LogEntry]:
        """Entries of these events within a range of seq that holds them all."""
        asked = (ds.field("seq") >= low) & (ds.field("seq") <= high)
        names = pa.array(uids, pa.string())
        self.reads += 1
        # Not part of the filter above: after a delete deltalake's statistics of strings are
        # string views, which pyarrow cannot compare with strings.
        parts = [
            batch.filter(pc.is_in(batch.column("uid"), value_set=names))
            for batch in self._dataset().to_batches(filter=asked)
        ]
        return self._sorted(pa.Table.from_batches(parts)) if parts else []

    def at(self, seqs: Sequence[int]) -> dict[int, LogEntry]:
        """The entries with these numbers."""
        held = self._scan(ds.field("seq").isin(pa.array(seqs, pa.int64())))
        return {entry.seq: entry for entry in from_columns(held, self.promoted())}

    def summary(self, low: int, high: int) -> tuple[int, int]:
        """How many entries lie in the range, and the sum of their seqs."""
        found = self._column("seq", (ds.field("seq") >= low) & (ds.field("seq") <= high))
        return len(found), pc.sum(found).as_py() or 0

    def distinct(self) -> tuple[int, int]:
        """How many rows there are, and how many different seqs."""
        found = self._column("seq", None)
        return len(found), pc.count_distinct(found).as_py()

    def first_since(self, arrived: int, high: int) -> int | None:
        asked = (ds.field("arrived") >= arrived) & (ds.field("seq") <= high)
        found: int | None = pc.min(self._column("seq", asked)).as_py()
        return found

    def has_halves(self) -> bool:
        """Whether there may be a START or an END, as far as the statistics tell."""
        held = pa.table(self._table.get_add_actions(flatten=True))
        for name in ("min.part", "max.part"):
            if name not in held.column_names or held.column(name).null_count:
                return True
        # END < INSTANT < PLAIN < START
        low = min(held.column("min.part").to_pylist(), default="PLAIN")
        high = max(held.column("max.part").to_pylist(), default="PLAIN")
        return bool(low < "INSTANT" or high > "PLAIN")

    def newest_arrival(self) -> int | None:
        """The latest arrival in the table, from its statistics."""
        held = pa.table(self._table.get_add_actions(flatten=True))
        if "max.arrived" in held.column_names and not held.column("max.arrived").null_count:
            found: int | None = pc.max(held.column("max.arrived")).as_py()
            return found
        return pc.max(self._column("arrived", None)).as_py()  # type: ignore[no-any-return]

    def bytes(self) -> int:
        sizes = pa.table(self._table.get_add_actions()).column("size_bytes")
        return pc.sum(sizes).as_py() or 0

    def files(self) -> int:
        return len(self._table.file_uris())

    def version(self) -> int:
        """The table's version as of the last ``refresh``, for readers that pin it."""
        return self._table.version()

    def counted_columns(self) -> frozenset[str]:
        """Columns that every file has statistics of, so that every file has them."""
        held = pa.table(self._table.get_add_actions(flatten=True))
        start = "null_count."
        return frozenset(
            name.removeprefix(start)
            for name in held.column_names
            if name.startswith(start) and not held.column(name).null_count
        )

    def _column(self, name: str, asked: ds.Expression | None) -> pa.ChunkedArray:
        return self._dataset().to_table(columns=[name], filter=asked).column(name)

    def _scan(self, asked: ds.Expression) -> pa.Table:
        self.reads += 1
        return self._dataset().to_table(filter=asked)

    def _sorted(self, table: pa.Table) -> list[LogEntry]:
        return sorted(from_columns(table, self.promoted()), key=lambda entry: entry.seq)

    def _dataset(self) -> ds.Dataset:
        with self._lock:
            return self._table.to_pyarrow_dataset()


def _sync(files: Iterable[Path]) -> None:
    """Force files and their folders to disk: the writer leaves that to the system, and the
    journal forgets what is drained."""
    held = list(files)
    folders = {parent for file in held for parent in (file.parent, file.parent.parent)}
    for path in (*held, *folders):
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
