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


def serve(
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

    flags = {
        "listen": listen,
        "http": http,
        "store": store,
        "data_dir": None if data_dir is None else str(data_dir),
        "master": master,
        "master_protocol": master_protocol,
        "identity": identity,
        "log": log,
        "insecure": insecure or None,
    }
    told = config or (Path(os.environ["KBN_CONFIG"]) if os.environ.get("KBN_CONFIG") else None)
    raise typer.Exit(run(load(told, os.environ, flags), _standing))


def _standing(place: Place) -> None:
    """Five lines: who, where, the history, and what to type next."""
    where = ", ".join(map(str, place.listening))
    broker = next((a for a in place.listening if a.scheme == "ka"), None)
    # As it was typed: a newcomer's environment is not on the PATH.
    kbn = sys.argv[0] if sys.argv[0].endswith("/kbn") else "kbn"
    at = "" if broker is None or broker.port == 1969 else f"--broker {broker} "
    lines = [
        f"KBN broker {place.identity} listens on {where}",
        f"history: {place.store}" + (f"; master: {place.master}" if place.master else ""),
        f"health and metrics: {place.http}/metrics" if place.http else "health and metrics: off",
        f"subscribe:  {kbn} sub {at}'price < 80'",
        f"publish:    {kbn} pub {at}'price=79.5 symbol=\"IBM\"'",
    ]
    print("\n".join(lines), flush=True)  # noqa: T201  what a person started this for
    sys.stdout.flush()


def hash_secret(
    secret: Annotated[
        str | None, typer.Argument(help="The secret; asked for when left out.")
    ] = None,
    token: Annotated[bool, Flag("--token", help="Hash a token, not a password.")] = False,
) -> None:
    """Print the hash of a password or token, to be put into the configuration."""
    from kbn.server.auth import hash_password, hash_token

    given = secret if secret is not None else typer.prompt("secret", hide_input=True)
    typer.echo(hash_token(given) if token else hash_password(given))
