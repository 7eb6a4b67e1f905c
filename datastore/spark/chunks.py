"""The ordered pass in chunks of seq, side by side: ``kbn.temporal.chunks`` as columns.

Law: of every entry the chunk that holds it says what one pass over everything says.

Planned eagerly, by one small job per level of nesting: the first counts the entries that
can matter in equal stretches of numbers, with the least moments they ask about; each other
asks for the least moments and numbers of the decisions of one level. The rest is one
shuffle by chunk: an entry goes to its own chunk and to those it warms up. STARTs and ENDs
are brought together by id first, once, since an event's entries travel together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add, or_
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from datastore.query import Spelling
from datastore.spark.compile import compile_filter
from datastore.spark.project import Cells
from kbn.model.filters import Constraint, Filter, Subscription
from kbn.model.operators import Relation
from kbn.temporal.chunks import (
    NEVER,
    Ask,
    Bucket,
    Chunk,
    Reach,
    asks_of,
    cut,
    is_asking,
    is_warm,
    reaches_of,
)

#: Fewer entries that can matter are not worth a task of their own.
LEAST = 100_000
#: Stretches of numbers that are told apart when chunks are planned.
BUCKETS = 512
#: A set of content constraints is one long; so many have room, with one of chunks' plans.
_BITS = 60
_MOST_ASKED = 200
_HALVES = ("START", "END")
CHUNK = "chunk"
#: The columns of ``Marks``, to be left out once chunks are made.
MARKS = ("w_own", "w_sure")


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at once, as far as the session says."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except (PySparkException, AttributeError):  # Spark Connect has no context
        said = spark.conf.get("spark.sql.shuffle.partitions") or "1"
        return max(1, int(said))


class Marks:
    """What a row of the log may satisfy, as bits: which constraints, by its own content, and
    which windows it surely fills."""

    def __init__(
        self, asks: Sequence[Ask], held: Mapping[str, Cells], spelling: Spelling | None
    ) -> None:
        self._bits: dict[Constraint, int] = {}
        self._held = held
        self._spelling = spelling
        for ask in asks:
            for one in (ask.asker, *ask.inner):
                for constraint in _content(one):
                    self._bits.setdefault(constraint, 1 << len(self._bits))
        self._windows = {
            ask.number: (1 << at, sure)
            for at, ask in enumerate(ask for ask in asks if ask.window is not None)
            for sure in (self._surely(ask.inner),)
        }

    @property
    def usable(self) -> bool:
        """Whether there is room, and columns decide what fills each window."""
        return (
            len(self._bits) <= _BITS
            and len(self._windows) <= _BITS
            and all(sure is not None for _, sure in self._windows.values())
        )

    def columns(self) -> list[Column]:
        own = [
            _bit(compile_filter(Filter((constraint,)), self._held, self._spelling).condition, bit)
            for constraint, bit in self._bits.items()
        ]
        whole = ~f.col("part").isin(*_HALVES)
        sure = [
            _bit(whole & condition, bit)
            for bit, condition in self._windows.values()
            if condition is not None
        ]
        return [
            reduce(add, made, _long(0)).alias(name)
            for name, made in zip(MARKS, (own, sure), strict=True)
        ]

    def may(self, column: str, asked: Iterable[Filter]) -> Column:
        """Whether these bits admit one of the alternatives."""
        masks = {reduce(or_, (self._bits[c] for c in _content(one)), 0) for one in asked}
        if 0 in masks:
            return f.lit(True)
        held = f.col(column)
        return reduce(or_, [held.bitwiseAND(_long(m)) == _long(m) for m in sorted(masks)])

    def is_sure(self, ask: Ask) -> Column:
        bit = _long(self._windows[ask.number][0])
        return f.col("w_sure").bitwiseAND(bit) != _long(0)

    def _surely(self, asked: Subscription) -> Column | None:
        """A condition that only matches fulfil; None: no alternative is so plain."""
        made = [compile_filter(one, self._held, self._spelling) for one in asked]
        exact = [
            f.lit(True) if one.condition is None else one.condition for one in made if one.exact
        ]
        return reduce(or_, exact) if exact else None


def _content(asked: Filter) -> list[Constraint]:
    return [constraint for constraint in asked if constraint.inner is None]


def _bit(condition: Column | None, bit: int) -> Column:
    if condition is None:
        return _long(bit)
    return f.when(f.coalesce(condition, f.lit(False)), _long(bit)).otherwise(_long(0))


def _long(value: int) -> Column:
    return f.lit(value).cast("long")


class _Row:
    """The columns that ``kbn.temporal.chunks`` asks a row for."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self.seq = f.col("seq")
        self.last = f.col("w_last")
        self.ended = f.col("w_ended")
        self.earliest = f.col("w_earliest")
        self.latest = f.col("w_latest")

    def may(self, asked: Subscription) -> Column:
        return self._marks.may("w_may", asked)


class Plan(NamedTuple):
    """Chunks, and by chunk how far back each ask looks."""

    chunks: tuple[Chunk, ...]
    reaches: tuple[Mapping[int, Reach], ...]
    asks: tuple[Ask, ...]
    marks: Marks
    halves: bool

    def spread(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Each of the rows, which have the marks, for every chunk that reads it, by number."""
        row = _Row(self.marks)
        numbers = []
        for number, (chunk, reaches) in enumerate(zip(self.chunks, self.reaches, strict=True)):
            own = (row.seq > chunk.after) & (row.seq <= chunk.upto)
            read = own | is_warm(row, chunk, reaches, self.asks)
            numbers.append(f.when(read, f.lit(number)))
        read_by = f.explode(f.array_compact(f.array(*numbers))).alias(CHUNK)
        spread = together(rows, halves=self.halves).select(*columns, read_by)
        return spread.repartitionById(len(self.chunks), f.col(CHUNK)).sortWithinPartitions("seq")


def planned(
    log: DataFrame,
    marks: Marks,
    asks: Sequence[Ask],
    *,
    span: Chunk,
    count: int,
    least: int,
    halves: bool,
    silent: frozenset[int] = frozenset(),
    max_open: int | None = None,
) -> Plan | None:
    """Chunks of the log's entries within the span; None: there are too few to be cut, and
    nothing before them. ``log`` has only entries that can matter, up to the span's end."""
    slim = log.select("seq", "uid", "part", "start_ms", "end_ms", *marks.columns())
    asked = max((sum(a.depth == d for a in asks) for d in {a.depth for a in asks}), default=1)
    buckets = _buckets(slim, marks, asks, span.upto, halves=halves)
    total = sum(bucket.entries for bucket in buckets if bucket.last > span.after)
    count = min(count, total // max(1, least), _MOST_ASKED // asked)
    if count < 2 and not span.after:
        return None
    chunks = cut(buckets, max(1, count), span.after) or [span]

    def minima(
        wanted: Sequence[tuple[Ask, Chunk, Reach | None]],
    ) -> list[tuple[int | None, int | None]]:
        row, made = _Row(marks), []
        for ask, chunk, around in wanted:
            asking = is_asking(row, ask, chunk, around, asks)
            moment = f.col("w_start" if ask.by_start else "w_end")
            made += [f.min(f.when(asking, moment)), f.min(f.when(asking, row.seq))]
        if not made:
            return []
        found = together(slim, halves=halves).agg(*made).collect()[0]
        return [(found[at], found[at + 1]) for at in range(0, len(found), 2)]

    reaches = reaches_of(asks, chunks, buckets, minima, silent=silent, max_open=max_open)
    return Plan(tuple(chunks), tuple(reaches), tuple(asks), marks, halves)


def together(rows: DataFrame, *, halves: bool) -> DataFrame:
    """The rows with what all entries of their events say, as ``w_…``."""
    plain = f.col("part") == "PLAIN"
    alone: dict[str, Column] = {
        "w_may": f.col("w_own"),
        "w_last": f.col("seq"),
        "w_ended": f.col("seq"),
        "w_start": f.when(~plain, f.col("start_ms")),
        "w_end": f.when(~plain, f.col("end_ms")),
        "w_earliest": f.coalesce("start_ms", "end_ms"),
        "w_latest": f.coalesce("end_ms", "start_ms"),
    }
    if not halves:
        return rows.withColumns(alone)
    half = f.col("part").isin(*_HALVES)
    event = Window.partitionBy("uid")
    ended = f.max(f.when(f.col("part") == "END", f.col("seq"))).over(event)
    start, end = f.max("start_ms").over(event), f.max("end_ms").over(event)
    both: dict[str, Column] = {
        "w_may": f.bit_or("w_own").over(event),
        "w_last": f.max("seq").over(event),
        "w_ended": f.coalesce(ended, _long(NEVER)),
        "w_start": start,
        "w_end": end,
        "w_earliest": f.coalesce(start, end),
        "w_latest": f.coalesce(end, start),
    }
    return rows.where(~half).withColumns(alone).unionAll(rows.where(half).withColumns(both))


def _buckets(
    slim: DataFrame, marks: Marks, asks: Sequence[Ask], last_seq: int, *, halves: bool
) -> list[Bucket]:
    width = max(1, -(-last_seq // BUCKETS))
    place = f.col("seq") - 1
    outer = [ask for ask in asks if ask.depth == 1 and ask.window is None]
    windows = [ask for ask in asks if ask.window is not None]
    made = [f.count("*").alias("entries")]
    for ask in outer:
        moment = _own_moment(ask)
        asking = marks.may("w_own", (ask.asker,))
        made.append(f.min(f.when(asking, moment)).alias(f"m{ask.number}"))
    for ask in windows:
        sure = marks.is_sure(ask)
        made.append(f.count_if(sure).alias(f"c{ask.number}"))
        made.append(f.min(f.when(sure, f.col("start_ms"))).alias(f"p{ask.number}"))
    if any(isinstance(ask.constraint.op, Relation) for ask in outer):
        slim = together(slim, halves=halves)
    rows = slim.groupBy((place - place % width).alias("low")).agg(*made).collect()
    held: list[dict[str, Any]] = sorted((row.asDict() for row in rows), key=lambda r: r["low"])
    return [
        Bucket(
            row["low"] + width,
            row["entries"],
            {ask.number: row[f"m{ask.number}"] for ask in outer},
            {ask.number: (row[f"c{ask.number}"], row[f"p{ask.number}"]) for ask in windows},
        )
        for row in held
    ]


def _own_moment(ask: Ask) -> Column:
    """The moment that an entry asks about as published; relations ask of the merged event."""
    if isinstance(ask.constraint.op, Relation):
        return f.col("w_start")
    told = f.col("start_ms" if ask.by_start else "end_ms")
    return f.when(f.col("part") != "PLAIN", told)


def cuttable(
    asked: Iterable[Subscription], held: Mapping[str, Cells], spelling: Spelling | None
) -> tuple[list[Ask], Marks] | None:
    """What a plan of chunks is made from; None: they must be read in one piece."""
    asks = asks_of(asked)
    if not asks or len(asks) > _BITS:
        return None
    marks = Marks(asks, held, spelling)
    return (asks, marks) if marks.usable else None
