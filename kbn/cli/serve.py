"""``kbn serve``: run a broker."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kbn.server.run import Place

Flag = typer.Option


#: Flags beyond those spelled out below are keys of the configuration.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}
EPILOG = (
    "Every other key of the configuration is a flag too, such as --limits-queue 1000000 or"
    " --tls-cert FILE; docs/operating.md lists them. Each is also a variable: KBN_LIMITS_QUEUE."
)


def serve(
    context: typer.Context,
    listen: Annotated[
        list[str] | None,
        Flag("--listen", metavar="URL", help="Where to listen: ka://, ka+senps:// or senp://."),
    ] = None,
    http: Annotated[
        str | None, Flag("--http", metavar="HOST:PORT", help="Health and metrics; or none.")
    ] = None,
    store: Annotated[
        str | None, Flag("--store", metavar="URL", help="Where history lives; none keeps nothing.")
    ] = None,
    data_dir: Annotated[
        Path | None, Flag("--data-dir", help="Where a broker keeps its own files.")
    ] = None,
    master: Annotated[
        str | None, Flag("--master", metavar="URL", help="The broker above this one.")
    ] = None,
    master_protocol: Annotated[
        str | None, Flag("--master-protocol", help="auto, session or siena.")
    ] = None,
    identity: Annotated[
        str | None, Flag("--id", help="The broker's name; kept in the data directory.")
    ] = None,
    archive_older: Annotated[
        str | None,
        Flag("--archive-older", metavar="30d", help="Move what arrived longer ago to Delta."),
    ] = None,
    archive_to: Annotated[
        Path | None,
        Flag("--archive-to", metavar="DIR", help="The Delta table; beside the store if not said."),
    ] = None,
    log: Annotated[str | None, Flag("--log", help="pretty or json.")] = None,
    insecure: Annotated[
        bool, Flag("--insecure", help="Listen beyond this machine without credentials.")
    ] = False,
    config: Annotated[
        Path | None, Flag("--config", metavar="FILE", help="A TOML file; see docs/operating.md.")
    ] = None,
) -> None:
    """Run a broker until it is told to stop; needs no arguments."""
    from kbn.server.config import load
    from kbn.server.run import run

    others = _others(context.args)

    flags = {
        "listen": listen,
        "http": http,
        "store": store,
        "data_dir": None if data_dir is None else str(data_dir),
        "master": master,
        "master_protocol": master_protocol,
        "identity": identity,
        "archive.older": archive_older,
        "archive.to": None if archive_to is None else str(archive_to),
        "log": log,
        "insecure": insecure or None,
        **others,
    }
    told = config or (Path(os.environ["KBN_CONFIG"]) if os.environ.get("KBN_CONFIG") else None)
    raise typer.Exit(run(load(told, os.environ, flags), _standing))


#: What other servers call it.
_ELSEWHERE = dict.fromkeys(
    ("--port", "--host", "--bind", "-p"), ": say --listen ka://127.0.0.1:1969"
)


def _others(words: list[str]) -> dict[str, str | list[str]]:
    """``--section-key value`` for the keys that have no parameter of their own."""
    import difflib

    from kbn.server.config import flag, known_keys

    keys = {flag(key): key for key in known_keys() if key != "principals"}
    spelled = [*keys, "--id", "--config", "--help"]
    said: dict[str, str | list[str]] = {}
    rest = list(words)
    while rest:
        name, given, value = rest.pop(0).partition("=")
        key = keys.get(name)
        if key is None:
            near = difflib.get_close_matches(name, spelled, 1)
            hint = f": did you mean {near[0]}?" if near else ""
            raise typer.BadParameter(f"unknown option {name}{_ELSEWHERE.get(name, hint)}")
        if not given:
            if rest and not rest[0].startswith("--"):
                value = rest.pop(0)
            elif key == "tls.client_required":
                value = "true"
            else:
                raise typer.BadParameter(f"{name} needs a value")
        said[key] = value.split(",") if key == "handlers.allow" else value
    return said


def _standing(place: Place) -> None:
    """Five lines: who, where, the history, and what to type next."""
    from datastore.factory import location

    where = ", ".join(map(str, place.listening))
    broker = next((a for a in place.listening if a.scheme == "ka"), None)
    # As it was typed: a newcomer's environment is not on the PATH.
    kbn = sys.argv[0] if sys.argv[0].endswith("/kbn") else "kbn"
    at = "" if broker is None or broker.port == 1969 else f"--broker {broker} "
    if place.credentials:
        at += "--token TOKEN " if place.credentials == "token" else "--user NAME "
    path = location(place.store)
    within = f" in {path}" if path is not None else ""
    lines = [
        f"KBN broker {place.identity} listens on {where}",
        f"history: {place.store}{within}" + (f"; master: {place.master}" if place.master else ""),
        f"health and metrics: {place.http}/metrics" if place.http else "health and metrics: off",
        f"subscribe:  {kbn} sub {at}'price < 80'",
        f"publish:    {kbn} pub {at}'price=79.5 symbol=\"IBM\"'",
    ]
    print("\n".join(lines), flush=True)  # noqa: T201  what a person started this for
    sys.stdout.flush()


def hash_secret(
    secret: Annotated[
        str | None,
        typer.Argument(help="The secret; else asked for, or read as one line."),
    ] = None,
    token: Annotated[bool, Flag("--token", help="Hash a token, not a password.")] = False,
) -> None:
    """Print the hash of a password or token, to be put into the configuration."""
    from kbn.server.auth import hash_password, hash_token

    if secret is None and sys.stdin.isatty():
        secret = typer.prompt("secret", hide_input=True, err=True)
    given = secret if secret is not None else sys.stdin.readline().rstrip("\r\n")
    if not given:
        raise typer.BadParameter("there is no secret: say one, or write it to standard input")
    typer.echo(hash_token(given) if token else hash_password(given))
