"""The Delta log: appended to with transaction ids, read by seq and by id.

Law: run ``n`` of a store is in the table once or not at all, whatever was killed when:
each commit carries (store id, run), and a run that is there is not written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, Transaction, write_deltalake

from datastore.delta.decode import from_columns
from datastore.delta.schema import to_columns
from datastore.delta.table import Table, sync
from kbn.model.publications import LogEntry


class Archive(Table):
    """The log as a Delta table."""

    def __init__(self, path: Path, *, read_only: bool, names: Iterable[str] = ()) -> None:
        """``names`` are promoted from the start if the table is made here."""
        numbers = {name: number for number, name in enumerate(names, 1)}
        super().__init__(path, None if read_only else numbers)
        #: How often entries were asked of the table.
        self.reads = 0

    # Writing

    def promote(self, names: Iterable[str]) -> None:
        """Give these names flat columns from the next run on."""
        held = self.promoted()
        new = [name for name in names if name not in held]
        if new:
            start = max(held.values(), default=0) + 1
            self._promote({name: start + at for at, name in enumerate(new)}, self._newest())

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
            came = self._came(known, version)
        sync(came)  # the journal forgets what is drained

    def delete(self, seqs: Sequence[int]) -> None:
        """Take entries out; for retention."""
        self._delete("seq", seqs)

    # Reading

    def read(self, low: int, high: int) -> Iterator[LogEntry]:
        """Entries with low ≤ seq ≤ high, in order, as of the call; made as they are taken."""
        self.reads += 1
        found = self.rows(low, high)
        seqs = found.column("seq")
        if len(seqs) and not pc.all(pc.greater(seqs[1:], seqs[:-1])).as_py():
            found = found.take(pc.sort_indices(seqs))
        return from_columns(found, self.promoted())

    def rows(self, low: int, high: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The same as columns, in no order."""
        asked = (ds.field("seq") >= low) & (ds.field("seq") <= high)
        return self._dataset().to_table(columns=columns, filter=asked)

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
        self.reads += 1
        held = self._dataset().to_table(filter=ds.field("seq").isin(pa.array(seqs, pa.int64())))
        return {entry.seq: entry for entry in from_columns(held, self.promoted())}

    def summary(self, low: int, high: int) -> tuple[int, int]:
        """How many entries lie in the range, and the sum of their seqs."""
        found = self.rows(low, high, ["seq"]).column("seq")
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
        held = self._statistics()
        for name in ("min.part", "max.part"):
            if name not in held.column_names or held.column(name).null_count:
                return True
        # END < INSTANT < PLAIN < START
        low = min(held.column("min.part").to_pylist(), default="PLAIN")
        high = max(held.column("max.part").to_pylist(), default="PLAIN")
        return bool(low < "INSTANT" or high > "PLAIN")

    def bounds(self, column: str) -> tuple[int | None, int | None]:
        """The least and the greatest of a column, from its statistics where there are any."""
        held = self._statistics()
        named = (f"min.{column}", f"max.{column}")
        counted = all(n in held.column_names and not held.column(n).null_count for n in named)
        low, high = (
            (held.column(n) for n in named) if counted else (self._column(column, None),) * 2
        )
        return pc.min(low).as_py(), pc.max(high).as_py()

    def _newest(self) -> int:
        return self.bounds("seq")[1] or 0

    def _sorted(self, table: pa.Table) -> list[LogEntry]:
        return sorted(from_columns(table, self.promoted()), key=lambda entry: entry.seq)
