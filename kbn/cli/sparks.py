"""What the verbs over all of history share: options, session, log, window, plan, figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from kbn.cli.bars import announced, watching
from kbn.cli.places import existing_url, number_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from datastore.spark.replay import Arrivals
    from datastore.spark.source import History
    from kbn.model import Subscription

LOCAL = "local[*]"
Master = Annotated[
    str,
    typer.Option("--spark", metavar="URL", help="local[*], spark://HOST:7077 or sc://HOST:15002."),
]
Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="The driver's memory.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and do nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Since = Annotated[
    str | None, typer.Option("--from", metavar="TIME", help="Arrived then or later (ISO, ms).")
]
Until = Annotated[str | None, typer.Option("--to", metavar="TIME", help="Arrived before then.")]
Last = Annotated[
    str | None,
    typer.Option("--last", metavar="7d", help="Back from the newest stored arrival."),
]


@contextmanager
def session(master: str, memory: str) -> Iterator[SparkSession]:
    """A session that ends with the verb, if it was made for it."""
    try:
        from pyspark.sql import SparkSession

        from datastore.spark.session import make_session
    except ModuleNotFoundError as error:
        from kbn.errors import UnsupportedError

        raise UnsupportedError(
            f"this verb runs on Spark, and {error.name} is not installed:"
            " pip install 'kbn[spark]', or in a clone: make install"
        ) from None

    had = SparkSession.getActiveSession()
    with announced("starting Spark"):
        made = make_session(master, memory=memory)
    try:
        yield made
    finally:
        if had is None:
            made.stop()


@contextmanager
def all_history(
    store: str | None, data_dir: Path, master: str, memory: str, asked: Sequence[Subscription] = ()
) -> Iterator[tuple[SparkSession, History]]:
    """A session and the log of a store; a hot one is read once and kept, in memory or on disk.

    ``asked`` are all filters of the job, if they are: a hot store then sends only what can
    matter to them. A store that cannot be read is refused before a session is made for it.
    """
    url = _existing(existing_url(store, data_dir))
    with session(master, memory) as spark:
        from dataclasses import replace

        from datastore.spark.source import read_history

        held = read_history(spark, url, asked=asked)
        if held.files:
            yield spark, held
            return
        kept = replace(held, frame=held.frame.persist())
        try:
            yield spark, kept
        finally:
            kept.frame.unpersist()


def _existing(url: str) -> str:
    from datastore.factory import open_store
    from kbn.errors import StoreError

    with open_store(url, read_only=True) as store:
        if not store.capabilities.durable:
            raise StoreError("only a store on disk has a history for other programs", store=url)
    return url


@contextmanager
def worked_out(
    spark: SparkSession, title: str, found: DataFrame
) -> Iterator[tuple[DataFrame, int]]:
    """The rows, worked out once under a bar and kept meanwhile, and how many they are."""
    kept = found.persist()
    try:
        with watching(spark, title):
            count = kept.count()
        yield kept, count
    finally:
        kept.unpersist()


class Times(NamedTuple):
    """The arrivals that are asked for, in milliseconds: a window, or so long a time back."""

    since: int | None = None
    until: int | None = None
    back: int | None = None


def times(since: str | None, until: str | None, last: str | None) -> Times:
    """What the options say; a wrong one is refused before a session is made."""
    from kbn.language.durations import read_duration

    if last is not None:
        if since is not None or until is not None:
            raise typer.BadParameter("give --last, or --from and --to")
        return Times(back=read_duration(last))
    first, end = _moment("--from", since), _moment("--to", until)
    if first is not None and end is not None and first >= end:
        raise typer.BadParameter("--from must be before --to")
    return Times(first, end)


def window(history: History, asked: Times) -> Arrivals:
    """The arrivals that are asked for, said on standard error if they are counted back."""
    from datastore.spark.replay import Arrivals, last
    from datastore.swaps import crossed

    if asked.back is None:
        chosen = Arrivals(asked.since, asked.until)
    else:
        chosen = last(history, asked.back)
        newest = "nothing is stored" if history.newest is None else iso(history.newest)
        note(f"arrivals from {iso(chosen.since)} to the newest stored one, {newest}")
    if history.horizon is not None:
        note(f"events last heard of by {iso(history.horizon)} may be gone: retention took them")
    for seq, at in crossed(history.swaps, history.last_seq, *chosen):
        note(f"ontologies changed after number {seq}, {iso(at)}: here one decides all of it")
    return chosen


def _moment(option: str, text: str | None) -> int | None:
    """Milliseconds since the epoch: as they are, or of an ISO time (UTC if it says none)."""
    from datetime import UTC, datetime

    if text is None:
        return None
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{option} {text!r} is neither a time such as 2026-11-18T10:00:00 nor milliseconds"
        ) from None
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def iso(ms: int | None) -> str:
    """A moment as people read it."""
    from datetime import UTC, datetime, timedelta

    if ms is None:
        return "?"
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def note(text: str) -> None:
    """A remark beside the output."""
    typer.echo(text, err=True)


def show_plan(read_from: Iterable[str], *frames: DataFrame) -> None:
    """What is read, and how Spark will go about it."""
    for place in read_from:
        typer.echo(f"reads {place}")
    for frame in frames:
        said = StringIO()
        with redirect_stdout(said):
            frame.explain("formatted")
        typer.echo(said.getvalue().rstrip())


def read_counts(spark: SparkSession, history: History) -> str:
    """How much there was, and how much was read for it, in words."""
    from datastore.spark.reading import rows_read

    files = f" in {number_of(history.files, 'file')}" if history.files else ""
    read = rows_read(spark)
    rows = f"; {number_of(read, 'row')} read" if read else ""
    return f"{number_of(history.last_seq, 'number')}{files}{rows}"
