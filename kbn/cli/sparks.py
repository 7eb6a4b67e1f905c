"""What the verbs over all of history share: the session, the window, the plan, the bar."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from datastore.spark.replay import Arrivals
    from datastore.spark.source import History

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
    made = make_session(master, memory=memory)
    try:
        yield made
    finally:
        if had is None:
            made.stop()


def history_of(spark: SparkSession, url: str) -> History:
    """The log of a store; from a hot one it is read once and kept, in memory or on disk."""
    from dataclasses import replace

    from datastore.spark.source import read_history

    held = read_history(spark, url)
    return held if held.files else replace(held, frame=held.frame.cache())


def window(history: History, since: str | None, until: str | None, last: str | None) -> Arrivals:
    """The arrivals that are asked for, said on standard error if they are counted back."""
    from datastore.spark.replay import Arrivals
    from datastore.spark.replay import last as back
    from datastore.swaps import crossed
    from kbn.language.durations import read_duration

    if last is None:
        chosen = Arrivals(_moment("--from", since), _moment("--to", until))
        if None not in chosen and chosen.since >= chosen.until:  # type: ignore[operator]
            raise typer.BadParameter("--from must be before --to")
    elif since is not None or until is not None:
        raise typer.BadParameter("give --last, or --from and --to")
    else:
        chosen = back(history, read_duration(last))
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


def show_plan(history: History | None, *frames: DataFrame) -> None:
    """What is read, and how Spark will go about it."""
    for place in () if history is None else history.read_from:
        typer.echo(f"reads {place}")
    for frame in frames:
        said = StringIO()
        with redirect_stdout(said):
            frame.explain("formatted")
        typer.echo(said.getvalue().rstrip())


def read_counts(history: History) -> str:
    """How much there was to read, in words."""
    files = f", {history.files} files" if history.files else ""
    return f"{history.last_seq} numbers{files}"


@contextmanager
def watching(spark: SparkSession, title: str) -> Iterator[None]:
    """A bar of the tasks that are done, for people only: silent where there is no terminal."""
    tracker = None
    if sys.stderr.isatty():
        try:
            tracker = spark.sparkContext.statusTracker()
        except Exception:  # Spark Connect has no context to ask
            note(f"{title} …")
    if tracker is None:
        yield
        return
    from rich.console import Console
    from rich.progress import Progress

    over = threading.Event()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def watch() -> None:
            while not over.wait(0.2):
                held = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
                stages = [stage for stage in held if stage is not None]
                if stages:
                    done = sum(stage.numCompletedTasks for stage in stages)
                    bar.update(task, completed=done, total=sum(s.numTasks for s in stages))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
