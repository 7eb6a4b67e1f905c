"""``kbn replay|scan|rematch``: questions to all of history, in Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kbn.cli.bars import watching
from kbn.cli.knowing import OntologyFiles, knowledge_for
from kbn.cli.places import DEFAULT_DATA_DIR, DataDir, StoreUrl, number_of
from kbn.cli.sparks import (
    LOCAL,
    AsJson,
    DryRun,
    Last,
    Master,
    Memory,
    Since,
    Until,
    all_history,
    iso,
    note,
    read_counts,
    show_plan,
    times,
    window,
    worked_out,
)

if TYPE_CHECKING:
    from kbn.model import LogEntry, Subscription

Asked = Annotated[str, typer.Argument(metavar="FILTER", help="What is asked, as text.")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=0, metavar="N", help="Only the first N.")
]

How = Annotated[
    Literal["auto", "ordered", "joins"],
    typer.Option("--how", help="Temporal operators: by one pass in order, or by joins of rows."),
]


def replay(
    asked: Asked,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    limit: Limit = None,
    how: How = "auto",
    ontology: OntologyFiles = None,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    master: Master = LOCAL,
    memory: Memory = "2g",
) -> None:
    """Print what a subscription would have delivered, in order: exit 0 if anything, 1 if not.

    Temporal operators find the history as it was when each publication arrived.
    """
    from kbn.language import parse_subscription

    questions = [parse_subscription(asked)]
    arrivals = times(since, until, last)
    known = knowledge_for(questions, ontology, data_dir)
    with all_history(store, data_dir, master, memory, questions) as (spark, history):
        from datastore.spark.replay import replay as job
        from datastore.spark.rows import publications

        found = job(history, questions, window(history, arrivals), how=how, **known)
        if limit is not None:
            found = found.orderBy("seq").limit(limit)
        if dry_run:
            show_plan(history.read_from, found)
            return
        with worked_out(spark, "replaying", found) as (rows, count):
            for entry, _ in publications(history, rows, count):
                typer.echo(_entry_json(entry) if as_json else _entry_line(entry))
        read = read_counts(spark, history)
        note(f"{number_of(count, 'publication')} would have been delivered, of {read}")
    raise typer.Exit(0 if count else 1)


def scan(
    asked: Asked,
    limit: Limit = None,
    how: How = "auto",
    ontology: OntologyFiles = None,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    master: Master = LOCAL,
    memory: Memory = "2g",
) -> None:
    """Print the stored events of which a filter holds, by start: exit 0 if any, 1 if none.

    Every operator may be asked; the latest decision about an event counts.
    """
    from kbn.cli.history import event_json, event_line
    from kbn.language import parse_subscription

    question = parse_subscription(asked)
    known = knowledge_for([question], ontology, data_dir)
    with all_history(store, data_dir, master, memory, [question]) as (spark, history):
        from datastore.spark.rows import events
        from datastore.spark.scan import by_start
        from datastore.spark.scan import scan as job

        found = job(history, question, how=how, **known)
        if limit is not None:
            found = by_start(found).limit(limit)
        if dry_run:
            show_plan(history.read_from, found)
            return
        with worked_out(spark, "scanning", found) as (rows, count):
            for event in events(history, rows, count):
                typer.echo(event_json(event) if as_json else event_line(event))
        note(f"{number_of(count, 'event')}, of {read_counts(spark, history)}")
    raise typer.Exit(0 if count else 1)


def rematch(
    subscriptions: Annotated[
        Path, typer.Argument(metavar="FILE", help="Filters as text, one on a line; - for stdin.")
    ],
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", metavar="PATH", help="Write every (seq, key) as Parquet."),
    ] = None,
    ontology: OntologyFiles = None,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    master: Master = LOCAL,
    memory: Memory = "2g",
) -> None:
    """Match many subscriptions against all of history: how often each, first and last seq."""
    asked, texts = _read_filters(subscriptions)
    known = knowledge_for(asked, ontology, data_dir)
    with all_history(store, data_dir, master, memory, asked) as (spark, history):
        from datastore.spark.rematch import pairs as all_pairs
        from datastore.spark.rematch import rematch as job

        found = job(history, asked, **known)
        if dry_run:
            show_plan(history.read_from, found)
            return
        with watching(spark, "matching"):
            if pairs is not None:
                all_pairs(history, asked, **known).write.mode("error").parquet(str(pairs))
            # No more rows than there are subscriptions.
            counted = {row.key: row for row in found.collect()}
        note(f"{number_of(len(asked), 'subscription')}, {read_counts(spark, history)}")
    for key, text in enumerate(texts):
        row = counted.get(key)
        count, first, last = (0, None, None) if row is None else tuple(row)[1:]
        if as_json:
            said = {"key": key, "filter": text, "count": count, "first": first, "last": last}
            typer.echo(json.dumps(said, ensure_ascii=False))
        else:
            typer.echo(f"{count:>12,} {first or '-':>10} {last or '-':>10}  {text}")
    raise typer.Exit(0 if counted else 1)


def _read_filters(path: Path) -> tuple[list[Subscription], list[str]]:
    """The filters of a file and their texts; empty lines and those after # are left out."""
    import sys

    from kbn.errors import KbnError
    from kbn.language import parse_subscription

    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {path}: {error}") from None
    asked, texts = [], []
    for number, line in enumerate(text.splitlines(), 1):
        said = line.strip()
        if said and not said.startswith("#"):
            try:
                asked.append(parse_subscription(said))
            except KbnError as error:
                raise typer.BadParameter(f"{path}, line {number}: {error}") from None
            texts.append(said)
    if not asked:
        raise typer.BadParameter(f"there is no filter in {path}")
    return asked, texts


def _entry_json(entry: LogEntry) -> str:
    from kbn.language import event_to_json

    said = {
        "seq": entry.seq,
        "id": entry.uid,
        "part": entry.part.value,
        "at": entry.at,
        "arrived": entry.arrived,
        "event": event_to_json(entry.notification),
    }
    return json.dumps(said, ensure_ascii=False)


def _entry_line(entry: LogEntry) -> str:
    from kbn.language import print_event

    return f"{entry.seq}  {iso(entry.arrived)}  {entry.uid}  {print_event(entry.notification)}"
