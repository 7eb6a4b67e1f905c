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
    Path, typer.Option("--data-dir", metavar="DIR", help="The broker's data directory.")
]


def store_url(store: str | None, data_dir: Path) -> str:
    """What ``--store`` says, else the embedded store of the data directory."""
    from datastore.factory import default_url

    return default_url(data_dir) if store is None else store


@contextmanager
def opened(store: str | None, data_dir: Path, *, read_only: bool) -> Iterator[Store]:
    """The store, open. Reading works while a broker has it."""
    from datastore.factory import open_store

    with open_store(store_url(store, data_dir), read_only=read_only) as made:
        yield made


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
