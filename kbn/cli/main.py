"""The ``kbn`` command: verbs, exit codes, and how errors are shown.

Exit codes: 0 yes or done, 1 no, 2 the question itself was wrong.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

import typer

import kbn
from kbn.cli import (
    archiving,
    bench,
    history,
    mining,
    offline,
    ontology,
    serve,
    spark,
    store,
    talk,
    wire,
)
from kbn.errors import KbnError

app = typer.Typer(
    name="kbn",
    help="A knowledge-based publish/subscribe broker with a temporal memory.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"kbn {kbn.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """A knowledge-based publish/subscribe broker with a temporal memory."""


app.command("match")(offline.match)
app.command("explain")(offline.explain)
app.command("covers")(offline.covers)
app.command("parse")(offline.parse)
app.command("serve", context_settings=serve.CONTEXT, epilog=serve.EPILOG)(serve.serve)
app.command("pub")(talk.pub)
app.command("sub")(talk.sub)
app.command("subs")(talk.subs)
app.command("who")(talk.who)
app.command("drops")(talk.drops)
app.command("bench")(bench.bench)
app.command("hash")(serve.hash_secret)
app.command("history")(history.history)
app.command("scan")(spark.scan)
app.command("replay")(spark.replay)
app.command("rematch")(spark.rematch)
app.command("backtest")(mining.backtest)
app.command("mine")(mining.mine)
app.command("archive")(archiving.archive)
store.app.command("optimize")(archiving.optimize)
store.app.command("vacuum")(archiving.vacuum)
app.add_typer(store.app, name="store")
app.add_typer(wire.app, name="senp")
app.add_typer(ontology.app, name="ontology")


def run() -> None:
    """The console script: a documented error is a message and exit code 2."""
    with suppress(ImportError):
        from kbn.cli.quick import hasten

        hasten()
    try:
        app()
    except KbnError as error:
        typer.echo(f"kbn: {error.code}: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output went away (`kbn ... | head`): not our failure.
        sys.stderr.close()
        sys.exit(1)
