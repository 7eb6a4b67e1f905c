"""The ``kbn`` command: verbs, exit codes, and how errors are shown.

Exit codes: 0 yes or done, 1 no, 2 the question itself was wrong. A verb that is
asked for by its name is the only one that is loaded; help loads them all.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any

import typer

import kbn
from kbn.errors import KbnError

#: Where each verb lives, in the order in which help lists them.
VERBS = {
    "match": "offline.match",
    "explain": "offline.explain",
    "covers": "offline.covers",
    "parse": "offline.parse",
    "serve": "serve.serve",
    "pub": "talk.pub",
    "sub": "talk.sub",
    "subs": "looking.subs",
    "who": "looking.who",
    "drops": "looking.drops",
    "bench": "bench.bench",
    "hash": "serve.hash_secret",
    "history": "history.history",
    "scan": "spark.scan",
    "replay": "spark.replay",
    "rematch": "spark.rematch",
    "backtest": "backtesting.backtest",
    "mine": "mining.mine",
    "archive": "archiving.archive",
}
GROUPS = {"store": "store.app", "senp": "wire.app", "ontology": "ontology.app"}
#: Verbs of a group that live elsewhere.
_GUESTS = {
    "store": {
        "derive": "deriving.derive",
        "optimize": "archiving.optimize",
        "vacuum": "archiving.vacuum",
        "index": "mining.index",
    }
}


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"kbn {kbn.__version__}")
        raise typer.Exit


def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """A knowledge-based publish/subscribe broker with a temporal memory."""


def build(asked: str | None = None) -> typer.Typer:
    """The command with the one verb asked for, or with all of them."""
    app = typer.Typer(
        name="kbn",
        help="A knowledge-based publish/subscribe broker with a temporal memory.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(main)
    everything = asked not in VERBS and asked not in GROUPS
    for name, home in VERBS.items():
        if everything or name == asked:
            app.command(name, **_settings(name))(_load(home))
    for name, home in GROUPS.items():
        if everything or name == asked:
            group = _load(home)
            known = {command.name for command in group.registered_commands}
            for guest, lives in _GUESTS.get(name, {}).items():
                if guest not in known:
                    group.command(guest)(_load(lives))
            app.add_typer(group, name=name)
    return app


def _load(home: str) -> Any:
    module, name = home.split(".")
    return getattr(import_module(f"kbn.cli.{module}"), name)


def _settings(verb: str) -> dict[str, Any]:
    if verb != "serve":
        return {}
    serve = import_module("kbn.cli.serve")
    return {"context_settings": serve.CONTEXT, "epilog": serve.EPILOG}


def __getattr__(name: str) -> object:
    if name == "app":
        return build()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run() -> None:
    """The console script: a documented error is a message and exit code 2."""
    with suppress(ImportError):
        from kbn.cli.quick import hasten

        hasten()
    try:
        build(sys.argv[1] if len(sys.argv) > 1 else None)()
    except KbnError as error:
        typer.echo(f"kbn: {error.code}: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output went away (`kbn ... | head`): not our failure.
        sys.stderr.close()
        sys.exit(1)
