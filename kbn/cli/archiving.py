"""``kbn archive`` and ``kbn store optimize|vacuum``: old history in Delta, without a JVM."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbn.cli.places import (
    DEFAULT_DATA_DIR,
    DataDir,
    StoreUrl,
    opened,
    progress_bar,
    store_url,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datastore.delta.archive import Archive

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and do nothing.")]


def archive(
    older: Annotated[
        str, typer.Option("--older", metavar="30d", help="Move what arrived longer ago.")
    ] = "30d",
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="The Delta table; beside the store if not said."),
    ] = None,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Move old history to Delta, exactly once; run it again after an interruption.

    No answer changes: the store reads from both. A broker that runs archives its own
    store, if it was started with --archive-older; one with a delta:// store always does.
    """
    import time

    from datastore.delta.attached import attach, beside, move
    from datastore.delta.store import DeltaStore
    from datastore.sql.store import SqlStore
    from kbn.errors import StoreError
    from kbn.language.durations import read_duration

    url = store_url(store, data_dir)
    cutoff = int(time.time() * 1000) - read_duration(older)
    with _unless_busy(older), opened(store, data_dir, read_only=dry_run) as held:
        if not isinstance(held, SqlStore):
            raise StoreError("only a store in SQL can be archived", store=url)
        found = held.first_seq_since(cutoff)
        upto = held.last_seq() if found is None else found - 1
        begun = held.archived()[0] if isinstance(held, DeltaStore) else 0
        place = held.archive.path if isinstance(held, DeltaStore) else to or beside(url, data_dir)
        if dry_run:
            plan = {"store": url, "archive": str(place), "after": begun, "upto": max(begun, upto)}
            typer.echo(
                json.dumps(plan)
                if as_json
                else f"{url}: numbers {begun + 1} to {max(begun, upto)} would go to {place}"
            )
            return
        if isinstance(held, DeltaStore):
            if to is not None and to.resolve() != held.archive.path.resolve():
                raise StoreError(f"its archive is {held.archive.path}, not {to}", store=url)
            archived = held
        else:
            archived = attach(held, place)
        with progress_bar("archiving") as progress:
            count = move(archived, upto, progress=progress)
        said = archived.info()
    told = {"archived": count, "upto": said["drained"], "archive": str(place)}
    told["files"] = said["archive_files"]
    typer.echo(
        json.dumps(told)
        if as_json
        else f"{count} entries archived, up to number {told['upto']}, in {told['files']} files:"
        f" {place}"
    )


@contextmanager
def _unless_busy(older: str) -> Iterator[None]:
    """Says what to do where a broker has the store open."""
    from kbn.errors import StoreBusyError

    try:
        yield
    except StoreBusyError as busy:
        raise StoreBusyError(
            "a broker has this store open. It archives by itself: a delta:// store always,"
            f" another one if it is started with `kbn serve --archive-older {older}`;"
            " or end it first",
            store=busy.store,
        ) from None


def optimize(
    by_start: Annotated[
        bool, typer.Option("--by-start", help="Also sort each day by the events' start.")
    ] = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Join the archive's small files; works while a broker runs."""
    with _archive(store, data_dir) as table:
        before = table.files()
        if not dry_run:
            with progress_bar("joining files"):
                table.optimize(by_start=by_start)
        after = table.files()
    said = {"files_before": before, "files_after": after, "archive": str(table.path)}
    if as_json:
        typer.echo(json.dumps({**said, "dry_run": dry_run}))
    elif dry_run:
        typer.echo(f"{before} files, joined day by day: {table.path}")
    else:
        typer.echo(f"{before} files became {after}: {table.path}")


def vacuum(
    hours: Annotated[
        int, typer.Option("--hours", min=0, metavar="N", help="Keep what versions so old need.")
    ] = 168,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Delete the archive's files that only older versions need: time travel ends there."""
    with _archive(store, data_dir) as table, progress_bar("looking for files"):
        gone = table.vacuum(hours, dry_run=dry_run)
    if as_json:
        typer.echo(json.dumps({"files": gone, "dry_run": dry_run, "archive": str(table.path)}))
    else:
        verb = "would be deleted" if dry_run else "deleted"
        typer.echo(f"{len(gone)} files {verb}: {table.path}")


@contextmanager
def _archive(store: str | None, data_dir: Path) -> Iterator[Archive]:
    from datastore.delta.store import DeltaStore
    from kbn.errors import StoreError

    with opened(store, data_dir, read_only=True) as held:
        if not isinstance(held, DeltaStore):
            raise StoreError(
                "it has no archive: run `kbn archive` first", store=store_url(store, data_dir)
            )
        yield held.archive
