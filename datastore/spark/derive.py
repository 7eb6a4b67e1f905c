"""The merged events, written by Spark: for archives that are large and were never merged.

Law: the same rows as ``datastore.delta.derive`` makes, since executors call the same
functions on columns; in one commit with the same transaction id, so that either goes
on where the other ended. The store must be open for writing, which nobody else can have
then: Spark merges into the newest version, whatever version the rows were made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from datastore.delta.derive import as_events, flattened, half_rows, rows_schema
from datastore.delta.merged import HALVES, MergedTable, merged_schema
from datastore.delta.store import DeltaStore
from datastore.spark.source import delta_log
from kbn.errors import StoreError

_TXN = "spark.databricks.delta.write.txn"
_VIEW = "kbn_derived"
#: Rows that a task puts together at once.
_AT_ONCE = 100_000
Batches = Iterator[pa.RecordBatch]


def rows_of(log: DataFrame, events: DataFrame, promoted: Mapping[str, int]) -> DataFrame:
    """The rows that these entries bring, beside the events that were known before: a frame of
    ``rows_schema``."""
    half = f.col("part").isin(*HALVES)
    halves = log.where(half)
    touched = halves.select("uid").distinct()
    known = events.where(half).join(touched, "uid", "left_semi")
    known = known.withColumns({"seq": f.col("first_seq"), "arrived": f.col("inserted")})
    parts = halves.withColumn("known", f.lit(False)).unionByName(
        known.select(
            *(name for name in log.columns if name in known.columns), f.lit(True).alias("known")
        ),
        allowMissingColumns=True,
    )
    schema = from_arrow_schema(rows_schema(promoted))
    together = parts.repartition("uid").sortWithinPartitions("uid")
    return (
        log.where(~half)
        .mapInArrow(_whole(promoted), schema)
        .unionAll(together.mapInArrow(_halves(promoted), schema))
    )


def derive(spark: SparkSession, store: DeltaStore) -> int:
    """Bring the merged events of a store up to its archive; how many numbers that were."""
    if store.read_only:
        raise StoreError("Spark derives from a store that is open for writing")
    with store.standing() as merged:
        upto = store.archived()[0]
        low = merged.derived()
        if upto > low:
            merged.follow(store.archive.promoted())
            rows = plan(spark, store, merged)
            assert rows is not None
            _commit(spark, merged, rows, upto)
            merged.refresh()
        return max(0, upto - low)


def plan(spark: SparkSession, store: DeltaStore, merged: MergedTable) -> DataFrame | None:
    """The rows that are missing; None: none are."""
    upto, gone, archive = store.archived()
    low = merged.derived()
    if upto <= low:
        return None
    log = delta_log(spark, str(archive.path.resolve()), archive.version())
    log = log.where((f.col("seq") > low) & (f.col("seq") <= upto))
    if gone:
        log = log.where(~f.col("seq").isin(sorted(gone)))
    events = delta_log(spark, str(merged.path.resolve()), merged.version())
    return rows_of(log, events, merged.promoted())


def _commit(spark: SparkSession, merged: MergedTable, rows: DataFrame, upto: int) -> None:
    path = str(merged.path.resolve())
    names = merged_schema(merged.promoted().values()).names
    if not merged.derived():
        writer = rows.select(*names).write.format("delta").mode("append")
        writer.option("txnAppId", merged.store_id).option("txnVersion", upto).save(path)
        return
    columns = [_quoted(name) for name in names]
    # By SQL, since Spark Connect has no other way.
    rows.createOrReplaceTempView(_VIEW)
    spark.conf.set(f"{_TXN}AppId", merged.store_id)
    spark.conf.set(f"{_TXN}Version", str(upto))
    try:
        spark.sql(
            f"MERGE INTO delta.{_quoted(path)} t USING {_VIEW} s"
            " ON t.uid = s.uid AND t.last_seq = s.old_seq AND t.day = s.old_day"
            " AND t.part IN ('START', 'END')"
            f" WHEN MATCHED THEN UPDATE SET {', '.join(f't.{c} = s.{c}' for c in columns)}"
            f" WHEN NOT MATCHED THEN INSERT ({', '.join(columns)})"
            f" VALUES ({', '.join(f's.{c}' for c in columns)})"
        )
    finally:
        spark.conf.unset(f"{_TXN}AppId")
        spark.conf.unset(f"{_TXN}Version")
        spark.catalog.dropTempView(_VIEW)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _whole(promoted: Mapping[str, int]) -> Callable[[Batches], Batches]:
    def made(batches: Batches) -> Batches:
        for batch in batches:
            rows = flattened(pa.Table.from_batches([batch]), promoted)
            yield from as_events(rows, promoted).to_batches()

    return made


def _halves(promoted: Mapping[str, int]) -> Callable[[Batches], Batches]:
    def made(batches: Batches) -> Batches:
        for rows in _by_event(batches):
            known = rows.filter(rows.column("known")).rename_columns(
                {"seq": "first_seq", "arrived": "inserted"}
            )
            new = flattened(rows.filter(pc.invert(rows.column("known"))), promoted)
            yield from half_rows(new, known, promoted).to_batches()

    return made


def _by_event(batches: Batches) -> Iterator[pa.Table]:
    """Rows that are sorted by id, in pieces that divide no event."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) < _AT_ONCE:
            continue
        rows = pa.Table.from_batches(held)
        is_last = pc.equal(rows.column("uid"), rows.column("uid")[-1])
        held = rows.filter(is_last).to_batches()
        yield rows.filter(pc.invert(is_last))
    if held:
        yield pa.Table.from_batches(held)
