"""``kbn backtest`` and ``kbn mine``: what history says about filters, and for filters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbn.cli.places import DEFAULT_DATA_DIR, DataDir, StoreUrl, store_url
from kbn.cli.spark import existing, parsed
from kbn.cli.sparks import (
    LOCAL,
    AsJson,
    DryRun,
    Last,
    Master,
    Memory,
    Since,
    Until,
    history_of,
    iso,
    note,
    session,
    show_plan,
    watching,
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
    as_json: AsJson = False,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    master: Master = LOCAL,
    memory: Memory = "2g",
) -> None:
    """Print how two versions of a subscription differ: exit 0 if they do not, 1 if they do."""
    was, will_be = parsed(old), parsed(new)
    url = existing(store_url(store, data_dir))
    with session(master, memory) as spark:
        from datastore.spark.backtest import compare, told

        history = history_of(spark, url)
        rows = told(history, was, will_be, window(history, since, until, last))
        if dry_run:
            show_plan(history, rows)
            return
        with watching(spark, "replaying both"):
            found = compare(rows, samples=samples)
            shown = _samples(history, {*found.old_samples, *found.new_samples})
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
    from datastore.spark.picture import lines

    series = [(name, [getattr(b, name) for b in found.buckets]) for name in ("old", "new")]
    ends = [iso(b.begins) for b in (found.buckets[:1] + found.buckets[-1:])]
    title = "publications delivered over time"
    try:
        path.write_text(lines(title, ends, series), "utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot write {path}: {error.strerror}") from None
    note(f"drawn: {path}")


def mine(
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Events are told apart by this.")
    ] = None,
    per: Annotated[
        str | None, typer.Option("--per", metavar="NAME", help="Follow only what shares this.")
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=1, metavar="N", help="Rows of each table.")
    ] = 20,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Keep the statistics as JSON.")
    ] = None,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    master: Master = LOCAL,
    memory: Memory = "2g",
) -> None:
    """Print which attributes there are, and with --by what follows what, after what time."""
    url = existing(store_url(store, data_dir))
    with session(master, memory) as spark:
        from pyspark.sql import functions as f

        from datastore.spark.mine import attributes, sequences

        history = history_of(spark, url)
        named = attributes(history).orderBy(f.desc("count"), "name", "type")
        followed = None if by is None else sequences(history, by, per=per)
        if dry_run:
            show_plan(history, *(frame for frame in (named, followed) if frame is not None))
            return
        with watching(spark, "mining"):
            entries = history.frame.count()
            found = [row.asDict() for row in named.collect()]
            pairs = []
            if followed is not None:
                ranked = followed.orderBy(f.desc("count"), "follows", "kind").limit(top)
                pairs = [row.asDict() for row in ranked.collect()]
    for row in found:
        # Of how many publications a value picks one, on the average.
        row["selectivity"] = row["count"] / row["values"] / entries if row["values"] else 0.0
    said = {"entries": entries, "attributes": found, "by": by, "per": per, "sequences": pairs}
    if write is not None:
        try:
            write.write_text(json.dumps(said, ensure_ascii=False, indent=1) + "\n", "utf-8")
        except OSError as error:
            raise typer.BadParameter(f"cannot write {write}: {error.strerror}") from None
        note(f"statistics of {entries} publications: {write}")
    if as_json:
        typer.echo(json.dumps(said, ensure_ascii=False))
        return
    _statistics(found[:top], pairs)


def _statistics(found: list[dict[str, Any]], pairs: list[dict[str, Any]]) -> None:
    typer.echo(f"{'attribute':24} {'type':8} {'count':>12} {'values':>10} {'selectivity':>12}")
    for row in found:
        typer.echo(
            f"{row['name']:24} {row['type']:8} {row['count']:>12,} {row['values']:>10,}"
            f" {row['selectivity']:>12.4f}"
        )
    if pairs:
        typer.echo(f"\n{'first':20} {'then':20} {'count':>10} {'50 % ms':>12} {'95 % ms':>12}")
    for row in pairs:
        typer.echo(
            f"{row['follows']:20} {row['kind']:20} {row['count']:>10,} {row['p50_ms']:>12,}"
            f" {row['p95_ms']:>12,}"
        )
