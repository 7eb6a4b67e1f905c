"""The log of any store as a frame of one schema, as of the moment the job is planned.

A Delta table is read natively, at one version; SQLite, PostgreSQL and the journal of a
Delta store through a Python data source over the store interface, cut into ranges of
seq, so that no driver for JDBC is needed. The newest seq is fixed when the frame is
made: what a broker appends meanwhile is not seen. The schema is ``datastore.delta``'s.

Filters are handed over to the source: of complete events it sends those that one of them,
inner ones included and temporal and semantic constraints widened, matches; of events told
in parts everything, since a half may become anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from datastore.delta.schema import log_schema, to_columns
from datastore.delta.store import DeltaStore
from datastore.factory import open_store
from datastore.swaps import Swap, swaps_in
from kbn.errors import KbnError
from kbn.language import dumps_subscription, loads_subscription
from kbn.matching.index import PredicateIndex
from kbn.matching.world import World
from kbn.model.filters import Filter, Subscription, constraints_within
from kbn.model.notifications import Notification
from kbn.model.publications import LogEntry, Part
from kbn.routing.upward import upward_filters

if TYPE_CHECKING:
    from datastore.delta.archive import Archive
    from datastore.delta.merged import MergedTable

FORMAT = "kbn_log"
#: Entries of one Arrow batch, and the least that are worth a task of their own.
BATCH = 5000
LEAST = 50_000
#: More alternatives than this are not handed over: together they hardly leave anything out.
_MOST = 64
_HALVES = (Part.START, Part.END)


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged events of a log up to ``derived``, pinned."""

    frame: DataFrame
    derived: int
    promoted: Mapping[str, int] = field(default_factory=dict)
    flat: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class History:
    """A log, pinned. ``flat`` are the promoted names that every file has flat columns for."""

    frame: DataFrame
    last_seq: int
    #: The newest arrival, from which ``--last`` counts back; None: nothing is stored.
    newest: int | None
    #: Events whose last publication arrived up to then may be gone by retention.
    horizon: int | None = None
    promoted: Mapping[str, int] = field(default_factory=dict)
    flat: frozenset[str] = frozenset()
    #: Whether there may be events told in two parts.
    halves: bool = True
    #: Files of Delta that are looked at.
    files: int = 0
    #: When the broker exchanged what it knows.
    swaps: tuple[Swap, ...] = ()
    #: Where it is read from, for people.
    read_from: tuple[str, ...] = ()
    #: The same history as events, as far as they are derived.
    merged: Merged | None = None


def read_history(
    spark: SparkSession,
    url: str,
    *,
    names: frozenset[str] | None = None,
    asked: Iterable[Subscription] = (),
) -> History:
    """The log of a store. ``names`` are all attributes that will be asked for, if known, and
    ``asked`` all filters: a hot store then sends nothing that cannot matter to them."""
    wanted = widest(asked)
    with open_store(url, read_only=True) as store:
        # First, so that no event is newer than the newest entry that is read.
        events = store.merged() if isinstance(store, DeltaStore) else None
        retained = None if events is None else events.retained()
        merged = None if events is None else read_merged(spark, events)
        last = store.last_seq()
        said = store.info()
        newest, horizon = _number(said, "newest_arrival"), _number(said, "horizon")
        if store.capabilities.archive:
            assert isinstance(store, DeltaStore), "who archives has an archive"
            held = _archived(spark, url, store, last, names=names, wanted=wanted)
            gone = store.archived()[1]
            if merged is not None and gone:
                left = merged.frame.where(~f.col("first_seq").isin(sorted(gone)))
                merged = replace(merged, frame=left)
            again = store.merged()
            if again is not None and again.retained() != retained:
                merged = None  # events went meanwhile; the log is right at any moment
            if merged is not None and events is not None:
                place = f"{events.path.resolve()}: merged events up to {merged.derived}"
                held = replace(held, merged=merged, read_from=(*held.read_from, place))
        else:
            frame = hot_log(spark, url, 0, last, names=names, wanted=wanted)
            held = History(frame, last, None, read_from=(f"{url}: 1 to {last}",))
    swaps = swaps_in(cast("Mapping[str, int]", said["marks"]))
    return replace(held, newest=newest, horizon=horizon, swaps=swaps)


def widest(asked: Iterable[Subscription]) -> Subscription | None:
    """What matches every complete event that can matter to these; None: it may be any."""
    held = list(asked)
    levels = [*held, *(c.inner for one in held for c in constraints_within(one) if c.inner)]
    filters = dict.fromkeys(each for one in levels for each in upward_filters(one))
    if not 0 < len(filters) <= _MOST or Filter() in filters:
        return None
    return Subscription(filters)


def hot_log(
    spark: SparkSession,
    url: str,
    low: int,
    high: int,
    *,
    names: frozenset[str] | None = None,
    wanted: Subscription | None = None,
    least: int = LEAST,
) -> DataFrame:
    """Entries low ≤ seq ≤ high through the store interface, in parallel ranges of seq of which
    none is shorter than ``least``."""
    spark.dataSource.register(LogSource)
    reader = spark.read.format(FORMAT).option("store", url)
    reader = reader.option("low", str(low)).option("high", str(high))
    reader = reader.option("least", str(least))
    if names is not None:
        reader = reader.option("names", json.dumps(sorted(names)))
    if wanted is not None:
        # An operand that no text can carry, such as NaN: all is sent.
        with suppress(KbnError):
            reader = reader.option("filter", dumps_subscription(wanted))
    return reader.load()


def delta_log(spark: SparkSession, path: str, version: int | None = None) -> DataFrame:
    """A Delta log as Spark reads it itself."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(path)


def read_merged(spark: SparkSession, events: MergedTable) -> Merged:
    """A table of events at its version."""
    frame = delta_log(spark, str(events.path.resolve()), events.version())
    return Merged(frame, events.derived(), events.promoted(), events.flat_names())


def _archived(
    spark: SparkSession,
    url: str,
    store: DeltaStore,
    last: int,
    *,
    names: frozenset[str] | None,
    wanted: Subscription | None,
) -> History:
    drained, gone, archive = store.archived()
    archive.refresh()
    version = archive.version()
    path = str(archive.path.resolve())
    old = delta_log(spark, path, version).where(f.col("seq") <= drained)
    if gone:
        old = old.where(~f.col("seq").isin(sorted(gone)))
    read_from = [f"{path} version {version}: 1 to {drained}"]
    frame = old
    if last > drained:
        # Rows that leave the journal meanwhile are found in the archive by the interface.
        hot = hot_log(spark, url, drained + 1, last, names=names, wanted=wanted)
        frame = old.unionByName(hot, allowMissingColumns=True)
        read_from.append(f"{url}: {drained + 1} to {last}")
    promoted = archive.promoted()
    flat = flat_names(archive) if frame is old else frozenset()
    return History(
        frame,
        last,
        None,
        promoted=promoted,
        flat=flat,
        halves=frame is not old or archive.has_halves(),
        files=archive.files(),
        read_from=tuple(read_from),
    )


def flat_names(archive: Archive) -> frozenset[str]:
    """Promoted names that no row holds in a map."""
    return archive.flat_names()


def _number(said: Mapping[str, object], name: str) -> int | None:
    held = said.get(name)
    return held if isinstance(held, int) else None


class Range(InputPartition):
    """Numbers that one task reads."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__((low, high))
        self.low = low
        self.high = high


class LogSource(DataSource):
    """Options: ``store`` (a URL), ``low``, ``high``, ``least``, ``tasks``.

    ``names`` is a list and ``filter`` a subscription, both as JSON.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(log_schema(()))

    def reader(self, schema: StructType) -> DataSourceReader:
        return LogReader(dict(self.options))


class LogReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._url = options["store"]
        self._low, self._high = int(options["low"]), int(options["high"])
        self._tasks, self._least = int(options.get("tasks", "16")), int(options["least"])
        names = options.get("names")
        self._names = None if names is None else frozenset(json.loads(names))
        self._filter = options.get("filter")

    def partitions(self) -> list[Range]:
        return ranges(self._low, self._high, self._tasks, self._least)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        with open_store(self._url, read_only=True) as store:
            entries = store.log(partition.low, partition.high, batch=BATCH)
            if self._filter is not None:
                entries = _mattering(entries, loads_subscription(self._filter))
            yield from _batches(entries, self._names)


def ranges(low: int, high: int, most: int, least: int) -> list[Range]:
    """Consecutive ranges that cover low…high, none shorter than ``least`` if there are two."""
    size = high - low + 1
    count = max(1, min(most, size // least))
    cuts = [low + size * number // count for number in range(count)]
    return [Range(a, b - 1) for a, b in zip(cuts, [*cuts[1:], high + 1], strict=True)]


def _mattering(entries: Iterator[LogEntry], wanted: Subscription) -> Iterator[LogEntry]:
    index, world = PredicateIndex(), World()
    index.add(0, wanted)
    for entry in entries:
        if entry.part in _HALVES or index.match(entry.notification, world):
            yield entry


def _batches(
    entries: Iterator[LogEntry], names: frozenset[str] | None
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    while some := list(islice(entries, BATCH)):
        if names is not None:
            some = [
                entry._replace(
                    notification=Notification.trusted(
                        {n: v for n, v in entry.notification.attributes.items() if n in names}
                    )
                )
                for entry in some
            ]
        yield from to_columns(some, {}).to_batches()
