"""``kbn backtest``: how two versions of a subscription differ, as a table and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbn.cli.bars import watching
from kbn.cli.knowing import OntologyFiles, knowledge_for
from kbn.cli.places import DEFAULT_DATA_DIR, DataDir, StoreUrl
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
)

if TYPE_CHECKING:
    from datastore.spark.backtest import Difference
    from datastore.spark.source import History

_BARS = " ▁▂▃▄▅▆▇█"


def backtest(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The filter as it is.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The filter as it might be.")],
    since: Since = None,
    until: Until = None,
    last: Last = None,
    samples: Annotated[
        int, typer.Option("--samples", min=0, metavar="N", help="Shown of either side alone.")
    ] = 5,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw the counts over time.")
    ] = None,
    ontology: OntologyFiles = None,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    master: Master = LOCAL,
    memory: Memory = "2g",
) -> None:
    """Print how two versions of a subscription differ: exit 0 if they do not, 1 if they do."""
    from kbn.language import parse_subscription

    was, will_be = parse_subscription(old), parse_subscription(new)
    arrivals = times(since, until, last)
    known = knowledge_for([was, will_be], ontology, data_dir)
    with all_history(store, data_dir, master, memory, [was, will_be]) as (spark, history):
        from datastore.spark.backtest import compare, told

        rows = told(history, was, will_be, window(history, arrivals), **known)
        if dry_run:
            show_plan(history.read_from, rows)
            return
        with watching(spark, "replaying both"):
            found = compare(rows, samples=samples)
            shown = _samples(history, {*found.old_samples, *found.new_samples})
        note(f"of {read_counts(spark, history)}")
    if svg is not None:
        _draw(svg, found)
    if as_json:
        typer.echo(json.dumps(_difference(found, shown), ensure_ascii=False))
    else:
        _table(found, shown)
    raise typer.Exit(1 if found.only_old or found.only_new else 0)


def _samples(history: History, seqs: set[int]) -> dict[int, str]:
    from pyspark.sql import functions as f

    from datastore.spark.rows import entry_of
    from kbn.language import print_event

    if not seqs:
        return {}
    rows = history.frame.where(f.col("seq").isin(sorted(seqs))).collect()
    entries = [entry_of(row, history.promoted) for row in rows]
    return {entry.seq: print_event(entry.notification) for entry in entries}


def _difference(found: Difference, shown: dict[int, str]) -> dict[str, Any]:
    return {
        "old": found.old,
        "new": found.new,
        "both": found.both,
        "only_old": found.only_old,
        "only_new": found.only_new,
        "samples_only_old": [{"seq": seq, "event": shown[seq]} for seq in found.old_samples],
        "samples_only_new": [{"seq": seq, "event": shown[seq]} for seq in found.new_samples],
        "bucket_ms": found.step,
        "buckets": [bucket._asdict() for bucket in found.buckets],
    }


def _table(found: Difference, shown: dict[int, str]) -> None:
    from kbn.language.durations import print_duration

    typer.echo(f"{'':10} {'publications':>14}")
    counts = (("old", found.old), ("new", found.new), ("both", found.both))
    for name, count in (*counts, ("only old", found.only_old), ("only new", found.only_new)):
        typer.echo(f"{name:10} {count:>14,}")
    if found.buckets:
        most = max(max(bucket.old, bucket.new) for bucket in found.buckets) or 1
        for name in ("old", "new"):
            values = [getattr(bucket, name) for bucket in found.buckets]
            bars = "".join(_BARS[-(-8 * value // most)] for value in values)
            typer.echo(f"{name:10} |{bars}|")
        first, last = found.buckets[0].begins, found.buckets[-1].begins
        typer.echo(f"{'':10} {iso(first)} … {iso(last)}, {print_duration(found.step)} each")
    for name, seqs in (("only old", found.old_samples), ("only new", found.new_samples)):
        for seq in seqs:
            typer.echo(f"{name:10} {seq}  {shown[seq]}")


def _draw(path: Path, found: Difference) -> None:
    from datastore.spark.picture import bars

    series = [(name, [getattr(b, name) for b in found.buckets]) for name in ("old", "new")]
    ends = [iso(b.begins) for b in (found.buckets[:1] + found.buckets[-1:])]
    title = "publications delivered over time"
    try:
        path.write_text(bars(title, ends, series), "utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot write {path}: {error.strerror}") from None
    note(f"drawn: {path}")
