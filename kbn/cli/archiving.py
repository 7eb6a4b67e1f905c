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
    number_of,
    opened,
    progress_bar,
    store_url,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datastore.delta.table import Table

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
        else f"{number_of(count, 'entry', 'entries')} archived, up to number {told['upto']},"
        f" in {number_of(told['files'], 'file')}: {place}"
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
    """Join the archive's small files; works while a broker runs.

    The merged events are always sorted by start, day by day.
    """
    with _archive(store, data_dir) as tables, progress_bar("joining files"):
        before = [table.files() for table in tables]
        if not dry_run:
            tables[0].optimize(by_start=by_start)
            for events in tables[1:]:
                events.optimize(by_start=True)
        after = [table.files() for table in tables]
    said = [
        {"files_before": one, "files_after": other, "archive": str(table.path)}
        for one, other, table in zip(before, after, tables, strict=True)
    ]
    if as_json:
        events_said = {"events": said[1]} if said[1:] else {}
        typer.echo(json.dumps({**said[0], **events_said, "dry_run": dry_run}))
        return
    for one in said:
        if dry_run:
            typer.echo(
                f"{number_of(one['files_before'], 'file')}, joined day by day: {one['archive']}"
            )
        else:
            count, place = one["files_before"], one["archive"]
            typer.echo(f"{number_of(count, 'file')} became {one['files_after']}: {place}")


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
    with _archive(store, data_dir) as tables, progress_bar("looking for files"):
        gone = [table.vacuum(hours, dry_run=dry_run) for table in tables]
    if as_json:
        events = {"events": gone[1]} if gone[1:] else {}
        place = str(tables[0].path)
        said = {"files": gone[0], **events, "dry_run": dry_run, "archive": place}
        typer.echo(json.dumps(said))
        return
    verb = "would be deleted" if dry_run else "deleted"
    for table, files in zip(tables, gone, strict=True):
        typer.echo(f"{number_of(len(files), 'file')} {verb}: {table.path}")


@contextmanager
def _archive(store: str | None, data_dir: Path) -> Iterator[tuple[Table, ...]]:
    """The log, and the merged events if there are any."""
    from datastore.delta.store import DeltaStore
    from kbn.errors import StoreError

    with opened(store, data_dir, read_only=True) as held:
        if not isinstance(held, DeltaStore):
            raise StoreError(
                "it has no archive: run `kbn archive` first", store=store_url(store, data_dir)
            )
        merged = held.merged()
        yield (held.archive,) if merged is None else (held.archive, merged)
