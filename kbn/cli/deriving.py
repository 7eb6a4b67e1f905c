"""``kbn store derive``: the merged events of an archive, by this process or by Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from kbn.cli.bars import watching
from kbn.cli.places import (
    DEFAULT_DATA_DIR,
    DataDir,
    StoreUrl,
    number_of,
    opened,
    progress_bar,
    store_url,
)
from kbn.cli.sparks import AsJson, DryRun, Memory, session, show_plan

if TYPE_CHECKING:
    from datastore.delta.store import DeltaStore
    from datastore.store import Store

Master = Annotated[
    str | None,
    typer.Option("--spark", metavar="URL", help="Let Spark do it: local[*], spark://HOST:7077."),
]


def derive(
    master: Master = None,
    memory: Memory = "2g",
    as_json: AsJson = False,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Bring the table of merged events up to the archive; run it again after an interruption.

    Works while a broker runs, which does the same as it drains; with --spark it must not.
    """
    url = store_url(store, data_dir)
    alone = master is not None and not dry_run
    with opened(store, data_dir, read_only=not alone) as held:
        archived = _archived(held, url)
        after = archived.info()["derived"]
        if dry_run:
            _plan(archived, url, master, memory, as_json)
            return
        if master is None:
            count = 0
            total = archived.underived()
            with progress_bar("merging") as progress:
                for taken in archived.derive():
                    count += taken
                    progress(count, total)
        else:
            with session(master, memory) as spark:
                from datastore.spark.derive import derive as job

                with watching(spark, "merging"):
                    count = job(spark, archived)
        said = archived.info()
    told = {
        "derived": count,
        "after": after,
        "upto": said["derived"],
        "events": said.get("events_table"),
        "files": said.get("events_files", 0),
    }
    typer.echo(
        json.dumps(told)
        if as_json
        else f"{number_of(count, 'number')} merged, up to number {told['upto']},"
        f" in {number_of(told['files'], 'file')}: {told['events']}"
    )


def _archived(held: Store, url: str) -> DeltaStore:
    from datastore.delta.store import DeltaStore
    from kbn.errors import StoreError

    if not isinstance(held, DeltaStore):
        raise StoreError("it has no archive: run `kbn archive` first", store=url)
    return held


def _plan(archived: DeltaStore, url: str, master: str | None, memory: str, as_json: bool) -> None:
    from datastore.delta.merged import merged_path

    said = archived.info()
    after, upto = said["derived"], said["drained"]
    where = str(merged_path(archived.archive.path))
    if as_json:
        typer.echo(json.dumps({"store": url, "events": where, "after": after, "upto": upto}))
    else:
        typer.echo(f"{url}: numbers after {after} up to {upto} would be merged into {where}")
    merged = archived.merged()
    if master is None or merged is None or as_json:
        return
    with session(master, memory) as spark:
        from datastore.spark.derive import plan

        rows = plan(spark, archived, merged)
        if rows is not None:
            show_plan((), rows)
