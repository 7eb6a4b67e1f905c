"""Where a verb finds its store: ``--store URL``, or the data directory's own."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datastore.store import Progress, Store

DEFAULT_DATA_DIR = Path("kbn-data")

StoreUrl = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="sqlite:///FILE, postgresql://… or delta:///DIR."),
]
DataDir = Annotated[
    Path,
    typer.Option(
        "--data-dir", envvar="KBN_DATA_DIR", metavar="DIR", help="The broker's data directory."
    ),
]


def store_url(store: str | None, data_dir: Path) -> str:
    """What ``--store`` says, else the embedded store of the data directory."""
    from datastore.factory import default_url

    return default_url(data_dir) if store is None else store


def existing_url(store: str | None, data_dir: Path) -> str:
    """The same, for reading: a data directory without a store is most often another folder."""
    from kbn.errors import StoreError

    url = store_url(store, data_dir)
    if store is None and not Path(url.removeprefix("sqlite:///")).exists():
        raise StoreError(
            "there is no such file: run it in the broker's folder, or say --data-dir DIR",
            store=url,
        )
    return url


@contextmanager
def opened(store: str | None, data_dir: Path, *, read_only: bool) -> Iterator[Store]:
    """The store, open. Reading works while a broker has it."""
    from datastore.factory import open_store

    url = existing_url(store, data_dir) if read_only else store_url(store, data_dir)
    with open_store(url, read_only=read_only) as made:
        yield made


def number_of(count: object, one: str, many: str = "") -> str:
    """``1 file``, ``2 files``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """A bar on standard error, for people only: silent where it is no terminal."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(title, total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=max(done, total))

        yield show
