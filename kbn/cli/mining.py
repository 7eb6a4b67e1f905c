"""``kbn mine`` and ``kbn store index``: what history says for filters, and what is made of it."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbn.cli.bars import watching
from kbn.cli.places import (
    DEFAULT_DATA_DIR,
    DataDir,
    StoreUrl,
    number_of,
    opened,
    progress_bar,
    store_url,
)
from kbn.cli.sparks import (
    LOCAL,
    AsJson,
    DryRun,
    Master,
    Memory,
    all_history,
    note,
    read_counts,
    show_plan,
)
from kbn.cli.statistics import keep, kept, statistics_file, worth_promoting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbn.model.values import Scalar

#: From this many of a unit on, a limit is told in whole ones.
_WHOLE = 10


def mine(
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Events are told apart by this.")
    ] = None,
    per: Annotated[
        str | None, typer.Option("--per", metavar="NAME", help="Follow only what shares this.")
    ] = None,
    length: Annotated[
        int, typer.Option("--length", min=2, max=8, metavar="N", help="Of sequences, at most.")
    ] = 3,
    cover: Annotated[
        float,
        typer.Option("--cover", min=0, max=1, metavar="0.95", help="What AFTER should catch."),
    ] = 0.95,
    top: Annotated[
        int, typer.Option("--top", min=1, metavar="N", help="Rows of each table.")
    ] = 20,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="The statistics here as well.")
    ] = None,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    master: Master = LOCAL,
    memory: Memory = "2g",
) -> None:
    """Print which attributes there are, and with --by what follows what, after what time.

    The statistics are kept beside the store: `kbn store info` shows that they are there,
    `kbn store index --mined` makes use of them.
    """
    with all_history(store, data_dir, master, memory) as (spark, history):
        from pyspark.sql import functions as f

        from datastore.spark.mine import attributes, sequences

        named = attributes(history).orderBy(f.desc("count"), "name", "type")
        followed = None
        if by is not None:
            followed = sequences(history, by, per=per, length=length, cover=cover)
            followed = followed.orderBy(f.desc("count"), f.size("kinds"), "kinds").limit(top)
        if dry_run:
            show_plan(
                history.read_from, *(frame for frame in (named, followed) if frame is not None)
            )
            return
        with watching(spark, "mining"):
            entries = history.frame.count()
            found = [row.asDict() for row in named.collect()]
            rows = [] if followed is None else followed.collect()
        note(f"{number_of(entries, 'publication')}, of {read_counts(spark, history)}")
    for row in found:
        # Of how many publications a value picks one, on the average.
        row["selectivity"] = row["count"] / row["values"] / entries if row["values"] else 0.0
    said = {
        "entries": entries,
        "attributes": found,
        "promote": worth_promoting(entries, found),
        "by": by,
        "per": per,
        "cover": cover,
        "sequences": [_sequence(by or "", row) for row in rows],
    }
    _keep(said, store, data_dir, write)
    if as_json:
        typer.echo(json.dumps(said, ensure_ascii=False))
    else:
        _show(said, top)


def _sequence(by: str, row: Any) -> dict[str, Any]:
    kinds = [_value(kind.type, kind.value) for kind in row["kinds"]]
    limits = [None if ms is None else _rounded(ms) for ms in row["after_ms"]]
    known = [ms for ms in limits if ms is not None]
    return {
        "kinds": kinds,
        "count": row["count"],
        "p50_ms": row["p50_ms"],
        "p95_ms": row["p95_ms"],
        "after_ms": limits,
        "filter": _filter(by, kinds, known) if len(known) == len(limits) else None,
    }


def _value(kind: str, said: str) -> Scalar:
    if kind == "bool":
        return said == "true"
    return int(said) if kind == "long" else float(said) if kind == "double" else said


def _rounded(ms: int) -> int:
    """A little longer, and easier to read: whole units where there are many."""
    from kbn.model.time import MILLISECONDS

    for size in sorted(MILLISECONDS.values(), reverse=True):
        if ms >= _WHOLE * size:
            return -(-ms // size) * size
    return ms


def _filter(by: str, kinds: Sequence[Scalar], limits: Sequence[int]) -> str | None:
    """The subscription that tells of the last of these kinds, after the ones before it; None if
    one of them cannot be written."""
    from kbn.language.builder import Attribute, start

    if any(isinstance(kind, float) and not isfinite(kind) for kind in kinds):
        return None
    asked = Attribute(by) == kinds[0]
    for kind, limit in zip(kinds[1:], limits, strict=True):
        asked = (Attribute(by) == kind) & start.after(limit, asked)
    return str(asked)


def _keep(said: dict[str, Any], store: str | None, data_dir: Path, write: Path | None) -> None:
    """Beside the store, with whose they are and from when; and where somebody wants them."""
    import time

    url = store_url(store, data_dir)
    with opened(store, data_dir, read_only=True) as held:
        whose = {"store_id": held.info().get("store_id"), "made": int(time.time() * 1000)}
    place = statistics_file(url, data_dir)
    try:
        keep(place, {**whose, **said})
        note(f"statistics kept: {place}")
    except OSError as error:
        note(f"the statistics are not kept: cannot write {place}: {error.strerror}")
    if write is not None:
        try:
            keep(write, said)
        except OSError as error:
            raise typer.BadParameter(f"cannot write {write}: {error.strerror}") from None
        note(f"statistics written: {write}")


def _show(said: dict[str, Any], top: int) -> None:
    typer.echo(f"{'attribute':24} {'type':8} {'count':>12} {'values':>10} {'selectivity':>12}")
    for row in said["attributes"][:top]:
        typer.echo(
            f"{row['name']:24} {row['type']:8} {row['count']:>12,} {row['values']:>10,}"
            f" {row['selectivity']:>12.4f}"
        )
    if said["promote"]:
        typer.echo(f"\nworth an index and flat columns: {', '.join(said['promote'])}")
        typer.echo("kbn store index --mined gives them, kbn store index NAME … others")
    if said["sequences"]:
        typer.echo(f"\n{'sequence':40} {'count':>10}  {'half within':14} 95 % within")
    for row in said["sequences"]:
        name = " then ".join(map(str, row["kinds"]))
        half, most = (_durations(row[share]) for share in ("p50_ms", "p95_ms"))
        typer.echo(f"{name:40} {row['count']:>10,}  {half:14} {most}")
        typer.echo(f"    {_advice(row['after_ms'], said['cover'])}")
        if row["filter"] is not None:
            typer.echo(f"    {row['filter']}")


def _advice(limits: Sequence[int | None], cover: float) -> str:
    from kbn.language.durations import print_duration

    share = f"{cover * 100:g} %"
    known = [f"after({print_duration(ms)})" for ms in limits if ms is not None]
    if len(known) < len(limits):
        return f"no AFTER would have caught {share}: too many overlap, are open or carry no time"
    return f"{' and '.join(known)} would have caught {share}"


def _durations(gaps: Sequence[int]) -> str:
    from kbn.language.durations import print_duration

    return ", ".join(f"{'-' if ms < 0 else ''}{print_duration(abs(ms))}" for ms in gaps)


def index(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME…]", help="Attributes to add.")
    ] = None,
    mined: Annotated[
        bool, typer.Option("--mined", help="Those that `kbn mine` found worth it.")
    ] = False,
    only: Annotated[
        bool, typer.Option("--only", help="These and no others; without it they are added.")
    ] = False,
    as_json: AsJson = False,
    store: StoreUrl = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Index attributes and give them flat columns in the archive; without names, list them.

    The broker must not be running. If its store's URL says ?index=, that counts at its start.
    """
    from datastore.sql.store import SqlStore
    from kbn.errors import StoreError

    changes = mined or only or bool(names)
    with opened(store, data_dir, read_only=not changes) as held:
        if not isinstance(held, SqlStore):
            raise StoreError("it has no index", store=store_url(store, data_dir))
        had = held.projection.names()
        wanted = list(names or ())
        if mined:
            place = statistics_file(store_url(store, data_dir), data_dir)
            found = kept(place, held.info().get("store_id"))
            if found is None:
                raise StoreError(
                    f"there are no statistics of it in {place}: run `kbn mine` first",
                    store=store_url(store, data_dir),
                )
            wanted += found["promote"]
        now = sorted({*wanted} if only else {*had, *wanted})
        if changes:
            with progress_bar("indexing") as progress:
                held.index(now, progress)
    if as_json:
        typer.echo(json.dumps({"indexed": now}, ensure_ascii=False))
    else:
        typer.echo(f"indexed: {', '.join(now) or 'nothing'}")
