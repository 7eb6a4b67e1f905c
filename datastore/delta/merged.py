"""The merged events as a Delta table: one row for each event, derived from the log.

Law: its rows are the merge, by id, of the log's entries up to ``derived``, whatever was
killed when and whoever wrote: a commit brings rows and carries (store id, derived), and
two that begin at the same version do not both succeed. So there is nothing to mend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, Transaction, write_deltalake

from datastore.delta.schema import ATTRIBUTES, flat_fields
from datastore.delta.table import Table, sync

HEAD: tuple[tuple[str, pa.DataType], ...] = (
    ("uid", pa.string()),
    ("part", pa.string()),
    ("at", pa.int64()),
    ("start_ms", pa.int64()),
    ("end_ms", pa.int64()),
    ("place_ms", pa.int64()),
    ("first_seq", pa.int64()),
    ("last_seq", pa.int64()),
    ("inserted", pa.int64()),
    ("updated", pa.int64()),
    ("day", pa.int64()),
)
#: The part of an event that has started and ended; the others are those of the log.
BOTH = "BOTH"
HALVES = ("START", "END")
#: Columns beside those of the table: the row that a new one replaces, if there is one.
OLD = (("old_seq", pa.int64()), ("old_day", pa.int64()))
STORE, RETAINED = "kbn.store", "kbn.retained"
#: How many days a merge names before it says from when to when.
_DAYS = 400


def merged_schema(promoted: Iterable[int]) -> pa.Schema:
    """The table's columns, with flat ones for these numbers of promoted names."""
    return pa.schema([*HEAD, *flat_fields(promoted), *ATTRIBUTES])


def merged_path(log: Path) -> Path:
    """Where the events of a log are: ``events`` for ``log``, ``x-events`` for ``x``."""
    return log.with_name("events" if log.name == "log" else f"{log.name}-events")


class MergedTable(Table):
    """The events as a Delta table."""

    newest_by = "last_seq"

    def __init__(
        self,
        path: Path,
        store_id: str | None = None,
        promoted: Mapping[str, int] | None = None,
    ) -> None:
        """Made if it is not there and the store is said, with flat columns for these names."""
        if store_id is None:
            super().__init__(path, None)
        else:
            super().__init__(path, promoted or {}, {STORE: store_id})

    @staticmethod
    def schema(promoted: Iterable[int]) -> pa.Schema:
        return merged_schema(promoted)

    @property
    def store_id(self) -> str:
        """Whose log it follows."""
        return self._table.metadata().configuration[STORE]

    def derived(self) -> int:
        """Up to which seq the log is in it, as of the last ``refresh``."""
        return self._table.transaction_version(self.store_id) or 0

    def retained(self) -> int:
        """How often events were taken out."""
        return int(self._table.metadata().configuration.get(RETAINED) or 0)

    # Writing

    def follow(self, promoted: Mapping[str, int]) -> None:
        """Have flat columns for what the log has them for, with the same numbers."""
        held = self.promoted()
        new = {name: number for name, number in promoted.items() if name not in held}
        if new:
            self._promote(new, self.derived())

    def commit(self, rows: pa.Table, upto: int) -> None:
        """Bring rows of ``merged_schema`` and ``OLD``, and be derived up to there, at once.

        Raises ``CommitFailedError`` if anybody else committed since the last ``refresh``.
        """
        ours = [name for name in rows.column_names if name not in dict(OLD)]
        old = rows.column("old_seq").drop_null()
        with self._lock:
            known = set(self._table.file_uris())
            version = self._table.version()
            said = CommitProperties(app_transactions=[Transaction(self.store_id, upto)])
            if not len(old):
                write_deltalake(
                    self._table, rows.select(ours), mode="append", commit_properties=said
                )
            else:
                columns = {name: f"s.{name}" for name in ours}
                merger = self._table.merge(
                    rows,
                    f"t.uid = s.uid AND t.last_seq = s.old_seq AND {_pruned(rows)}",
                    source_alias="s",
                    target_alias="t",
                    commit_properties=said,
                )
                merger.when_matched_update(columns).when_not_matched_insert(columns).execute()
            self._table.update_incremental()
            came = self._came(known, version)
        sync(came)

    def delete(self, seqs: Sequence[int]) -> None:
        """Take out the events that had these entries; for retention.

        First a mark that is always a commit: whoever is deriving from the log as it was
        before then fails, and cannot bring back what goes.
        """
        with self._lock:
            self._table.alter.set_table_properties(
                {RETAINED: str(self.retained() + 1)}, raise_if_not_exists=False
            )
            self._table.update_incremental()
        self._delete("first_seq", seqs)

    # Reading

    def halves(self) -> pa.Table:
        """The rows of the events of which one half is known."""
        heads = self._dataset().to_table(columns=["part", "last_seq"])
        # Strings are not compared by the data set: see ``Archive.of_events``.
        wanted = pc.is_in(heads.column("part"), value_set=pa.array(HALVES))
        seqs = heads.filter(wanted).column("last_seq").combine_chunks()
        return self._dataset().to_table(filter=ds.field("last_seq").isin(seqs))

    def spans(self) -> pa.Table:
        """``uid, first_seq, last_seq`` of every event."""
        return self._dataset().to_table(columns=["uid", "first_seq", "last_seq"])


def _pruned(rows: pa.Table) -> str:
    """Where the rows that are replaced can be, said so that files are skipped."""
    seqs, days = rows.column("old_seq"), pc.unique(rows.column("old_day").drop_null())
    low, high = pc.min_max(days).as_py().values()
    where = f"t.day >= {low} AND t.day <= {high}"
    if len(days) <= _DAYS:
        where = f"t.day IN ({', '.join(map(str, sorted(days.to_pylist())))})"
    first, last = pc.min_max(seqs).as_py().values()
    return f"{where} AND t.last_seq >= {first} AND t.last_seq <= {last}"
