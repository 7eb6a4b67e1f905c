"""From the log to the merged events, without a JVM.

Law: a step takes the log's next numbers, merges the halves among them with those that
were known, and commits all rows with the last number: done once or not at all.

Cost: columns are copied and put together, without a look at each event. A half replaces
the row of its other half, and a file that has such rows is written anew. Of events
with one half, as many are kept in memory as ``OPEN_MOST``; beyond that each step reads
the ids of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import CommitFailedError

from datastore.delta.archive import Archive
from datastore.delta.decode import from_columns
from datastore.delta.halves import attributes, paired
from datastore.delta.merged import BOTH, HALVES, OLD, MergedTable, merged_schema
from datastore.delta.schema import DAY, log_schema, to_columns
from kbn.errors import StoreError

#: Numbers of the log that one step takes.
STEP = 200_000
#: Events with one half that are kept in memory.
OPEN_MOST = 500_000
#: How often a step is begun again when somebody else committed.
_TRIES = 5
#: Up to which number the log is complete, and which of its numbers count no more.
Bounds = Callable[[], tuple[int, frozenset[int]]]


class Deriver:
    """Brings one table up to its log, step by step."""

    def __init__(self, archive: Archive, merged: MergedTable) -> None:
        self._archive = archive
        self._merged = merged
        #: The rows of all events with one half at version ``_seen``; None: not known.
        self._open: pa.Table | None = None
        self._seen = -1

    def step(self, bounds: Bounds, *, size: int = STEP) -> int:
        """One step; how many numbers it took. Begun again if somebody else was faster."""
        for _ in range(_TRIES):
            try:
                return self._step(bounds, size)
            except CommitFailedError as error:
                self._open = None
                failure = error
        raise StoreError(str(failure), store=str(self._merged.path)) from failure

    def _step(self, bounds: Bounds, size: int) -> int:
        # The table first: what is retained after this makes the commit fail, what was
        # retained before is not in the log any more, or among the numbers that are gone.
        self._merged.refresh()
        low = self._merged.derived()
        upto, gone = bounds()
        high = min(low + size, upto)
        if high <= low:
            return 0
        self._archive.refresh()
        self._merged.follow(self._archive.promoted())
        promoted = self._merged.promoted()
        new = self._archive.rows(low + 1, high)
        if gone:
            new = new.filter(pc.invert(_is_gone(new.column("seq"), gone)))
        new = flattened(new, promoted)
        halves = new.filter(_is_half(new))
        known = self._known(halves.column("uid"))
        whole = new.filter(pc.invert(_is_half(new)))
        rows = pa.concat_tables([as_events(whole, promoted), half_rows(halves, known, promoted)])
        self._merged.commit(rows.sort_by("place_ms"), high)
        self._remember(rows)
        return high - low

    def _known(self, uids: pa.ChunkedArray) -> pa.Table:
        """The rows of the events with one half that have these ids."""
        if not len(uids):
            return self._merged.schema(()).empty_table()
        if self._open is None or self._seen != self._merged.version():
            self._open = self._merged.halves()
            self._seen = self._merged.version()
        held = self._open
        if held.num_rows > OPEN_MOST:
            self._open = None
        return held.filter(pc.is_in(held.column("uid"), value_set=uids.combine_chunks()))

    def _remember(self, rows: pa.Table) -> None:
        if self._open is None:
            return
        halves = rows.filter(_is_half(rows)).drop_columns([name for name, _ in OLD])
        known = pc.is_in(self._open.column("uid"), value_set=rows.column("uid").combine_chunks())
        left = self._open.filter(pc.invert(known))
        self._open = pa.concat_tables([left, halves], promote_options="permissive")
        self._seen = self._merged.version()


def half_rows(new: pa.Table, known: pa.Table, promoted: Mapping[str, int]) -> pa.Table:
    """Rows of the events that these STARTs and ENDs of the log tell, with what was known.

    ``known`` are rows of the table; each is the other half of one of the new.
    """
    if not new.num_rows:
        return rows_schema(promoted).empty_table()
    old = known.rename_columns({"first_seq": "seq", "inserted": "arrived"})
    names = [*log_schema(promoted.values()).names, "old"]
    both = [
        _with(names, flattened(old, promoted), was=True),
        _with(names, new, was=False),
    ]
    pairs = paired(pa.concat_tables(both, promote_options="permissive"))
    alone = as_events(pairs.alone.filter(pc.invert(pairs.alone.column("old"))), promoted)
    start, end = pairs.starts, pairs.ends
    if not start.num_rows:
        return alone
    first = pc.less(start.column("seq"), end.column("seq"))

    def chosen(mask: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
        return pc.if_else(mask, start.column(column), end.column(column))

    was_start = start.column("old")
    is_new = pc.invert(pc.or_(was_start, end.column("old")))
    # The row that is replaced lies where the half that it was began or ended.
    was = pc.if_else(was_start, _place(start), _place(end))
    lone = pa.scalar(None, pa.int64())
    later = pc.invert(first)
    made = {
        "uid": start.column("uid"),
        "part": pa.array([BOTH] * start.num_rows),
        "at": chosen(first, "at"),
        "start_ms": start.column("start_ms"),
        "end_ms": end.column("end_ms"),
        "place_ms": start.column("start_ms"),
        "first_seq": chosen(first, "seq"),
        "last_seq": chosen(later, "seq"),
        "inserted": chosen(first, "arrived"),
        "updated": chosen(later, "arrived"),
        "day": _day(start.column("start_ms")),
        "old_seq": pc.if_else(is_new, lone, chosen(was_start, "seq")),
        "old_day": pc.if_else(is_new, lone, _day(was)),
        **attributes(pairs, promoted),
    }
    schema = rows_schema(promoted)
    return pa.concat_tables(
        [alone, pa.table([made[name] for name in schema.names], schema=schema)]
    )


def flattened(rows: pa.Table, promoted: Mapping[str, int]) -> pa.Table:
    """Rows of a log with each promoted attribute in its flat column, whenever it was promoted."""
    if not rows.num_rows or not _in_maps(rows, promoted):
        return rows
    return to_columns(list(from_columns(rows, promoted)), promoted)


def follows(archive: Archive, merged: MergedTable, gone: frozenset[int]) -> bool:
    """Whether the events are those of the log, by id, first and last number, each once."""
    log = archive.rows(0, merged.derived(), ["uid", "seq"])
    if gone:
        log = log.filter(pc.invert(_is_gone(log.column("seq"), gone)))
    spans = log.group_by("uid").aggregate([("seq", "min"), ("seq", "max")])
    order = [("uid", "ascending"), ("first_seq", "ascending")]
    wanted = spans.rename_columns(["uid", "first_seq", "last_seq"]).sort_by(order)
    held = merged.spans()
    if gone:
        held = held.filter(pc.invert(_is_gone(held.column("first_seq"), gone)))
    return bool(held.select(wanted.column_names).cast(wanted.schema).sort_by(order) == wanted)


def rows_schema(promoted: Mapping[str, int]) -> pa.Schema:
    """The columns of rows on their way into the table."""
    return pa.schema([*merged_schema(promoted.values()), *OLD])


def as_events(log: pa.Table, promoted: Mapping[str, int]) -> pa.Table:
    """Each row of a log as if it were an event of its own; a plain one is an instant."""
    schema = rows_schema(promoted)
    if not log.num_rows:
        return schema.empty_table()
    plain = pc.equal(log.column("part"), "PLAIN")
    start = pc.if_else(plain, log.column("at"), log.column("start_ms"))
    end = pc.if_else(plain, log.column("at"), log.column("end_ms"))
    place = pc.coalesce(start, end)
    made = {
        "start_ms": start,
        "end_ms": end,
        "place_ms": place,
        "first_seq": log.column("seq"),
        "last_seq": log.column("seq"),
        "inserted": log.column("arrived"),
        "updated": log.column("arrived"),
        "day": _day(place),
    }
    columns = []
    for field in schema:
        held = made.get(field.name)
        if held is None and field.name in log.column_names:
            held = log.column(field.name)
        if held is None:
            held = pa.nulls(log.num_rows, field.type)
        columns.append(held.cast(field.type))
    return pa.table(columns, schema=schema)


def _place(log: pa.Table) -> pa.ChunkedArray:
    return pc.coalesce(log.column("start_ms"), log.column("end_ms"))


def _day(place: pa.ChunkedArray) -> pa.ChunkedArray:
    # Division cuts towards zero; days are counted downwards before 1970, too.
    before = pc.if_else(pc.less(place, 0), DAY - 1, 0)
    return pc.divide(pc.subtract(place, before), DAY)


def _with(names: list[str], rows: pa.Table, *, was: bool) -> pa.Table:
    """These columns, as far as they are there, and whether the rows were there before."""
    said = rows.append_column("old", pa.array([was] * rows.num_rows, pa.bool_()))
    return said.select([name for name in names if name in said.column_names])


def _is_gone(seqs: pa.ChunkedArray, gone: frozenset[int]) -> pa.ChunkedArray:
    return pc.is_in(seqs, value_set=pa.array(sorted(gone), pa.int64()))


def _is_half(log: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(log.column("part"), value_set=pa.array(HALVES))


def _in_maps(log: pa.Table, promoted: Mapping[str, int]) -> bool:
    """Whether a promoted name is still in a map, since it was promoted later."""
    names = pa.array(promoted, pa.string())
    return any(
        pc.any(pc.is_in(chunk.keys, value_set=names)).as_py()
        for column in ("longs", "doubles", "strings")
        for chunk in log.column(column).chunks
    )
