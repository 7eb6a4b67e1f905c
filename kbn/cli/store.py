"""``kbn store``: figures, checks, migrations, back-up and restore of the history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

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
from kbn.cli.statistics import statistics_of

app = typer.Typer(
    help="Look after the stored history.", no_args_is_help=True, rich_markup_mode=None
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def info(
    store: StoreUrl = None, data_dir: DataDir = DEFAULT_DATA_DIR, as_json: AsJson = False
) -> None:
    """Print what the store holds; works while a broker runs."""
    with opened(store, data_dir, read_only=True) as history:
        said = history.info()
    said["statistics"] = statistics_of(store_url(store, data_dir), data_dir, said)
    if as_json:
        typer.echo(json.dumps(said, ensure_ascii=False))
        return
    for name, value in said.items():
        shown = f"{value:,}" if isinstance(value, int) and "seq" not in name else value
        if isinstance(value, list | dict):
            shown = json.dumps(value, ensure_ascii=False)
        typer.echo(f"{name.replace('_', ' '):16} {shown if shown is not None else '-'}")


@app.command()
def check(
    store: StoreUrl = None, data_dir: DataDir = DEFAULT_DATA_DIR, as_json: AsJson = False
) -> None:
    """Compare everything derived with the log: exit 0 if all agrees, 1 if something is wrong."""
    with (
        opened(store, data_dir, read_only=True) as history,
        progress_bar("checking") as progress,
    ):
        found = history.check(progress)
        entries = history.info()["entries"]
    wrong = [finding for finding in found if finding.wrong]
    if as_json:
        said = [{"what": f.what, "detail": f.detail, "wrong": f.wrong} for f in found]
        typer.echo(json.dumps({"ok": not wrong, "entries": entries, "findings": said}))
    else:
        for finding in found:
            mark = "wrong" if finding.wrong else "note"
            typer.echo(f"{mark}: {finding.what}: {finding.detail}")
        typer.echo(f"{number_of(entries, 'entry', 'entries')}: {len(wrong) or 'nothing'} wrong")
    raise typer.Exit(1 if wrong else 0)


@app.command()
def migrate(
    store: StoreUrl = None, data_dir: DataDir = DEFAULT_DATA_DIR, as_json: AsJson = False
) -> None:
    """Bring the schema up to this version; the broker must not be running."""
    from datastore.sql.migrate import HEAD

    # Opening for writing takes the missing steps.
    with opened(store, data_dir, read_only=False) as history:
        durable = history.capabilities.durable
    version = HEAD if durable else None
    where = store_url(store, data_dir)
    if as_json:
        typer.echo(json.dumps({"store": where, "version": version}))
    else:
        typer.echo(f"{where}: schema version {version or 'none needed'}")


@app.command("export")
def export_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Gzip if it ends in .gz.")],
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Write the whole store to a file, as of one moment, also while a broker runs."""
    with (
        opened(store, data_dir, read_only=True) as history,
        progress_bar("exporting") as progress,
    ):
        try:
            count = history.export(path, progress)
        except OSError as error:
            raise typer.BadParameter(f"cannot write {path}: {error.strerror}") from None
    _said(count, path, "exported", as_json)


@app.command("import")
def import_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What export wrote.")],
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Read an export into an empty store of any kind."""
    with (
        opened(store, data_dir, read_only=False) as history,
        progress_bar("importing") as progress,
    ):
        count = history.import_(path, progress)
    from datastore.factory import location

    _said(count, path, "imported", as_json, location(store_url(store, data_dir)))


def _said(count: int, path: Path, verb: str, as_json: bool, into: Path | None = None) -> None:
    if as_json:
        told = {} if into is None else {"into": str(into)}
        typer.echo(json.dumps({verb: count, "file": str(path), **told}))
    else:
        place = f" into {into}" if into else ""
        typer.echo(f"{number_of(count, 'entry', 'entries')} {verb}: {path}{place}")
