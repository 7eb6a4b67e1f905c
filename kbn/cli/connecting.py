"""How a verb reaches a running broker: the same four options, said once.

    @talks
    def who(there: There, as_json: AsJson = False) -> None: ...

gives ``kbn who`` the options ``--broker``, ``--token``, ``--user`` and ``--ca`` in the place
of ``there``. Nothing is imported of the client until a verb connects.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import ssl

    from kbn.client.options import Told
    from kbn.model import Notification

DEFAULT = "ka://127.0.0.1:1969"
Broker = Annotated[
    str,
    typer.Option("--broker", envvar="KBN_BROKER", metavar="URL", help="The broker to talk to."),
]
#: For verbs that also do without one.
AtBroker = Annotated[
    str | None,
    typer.Option("--broker", metavar="URL", help="Ask this running broker instead."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Token = Annotated[
    str | None, typer.Option("--token", envvar="KBN_TOKEN", help="Who you are, by token.")
]
User = Annotated[
    str | None,
    typer.Option("--user", envvar="KBN_USER", help="Who you are; the password is KBN_PASSWORD."),
]
Ca = Annotated[
    Path | None, typer.Option("--ca", envvar="KBN_CA", help="The authority behind ka+senps://.")
]


@dataclass(frozen=True, slots=True)
class There:
    """What the four options say."""

    url: str | None
    token: str | None
    user: str | None
    ca: Path | None

    @property
    def broker(self) -> str:
        """The broker to talk to; only for who has one."""
        assert self.url is not None
        return self.url

    def options(self) -> Told:
        """The client's options; asks for a password if there is none."""
        options: Told = {"reconnect": False}
        if self.token is not None:
            options["token"] = self.token
        if self.user is not None:
            options["user"] = self.user
            options["password"] = os.environ.get("KBN_PASSWORD") or typer.prompt(
                "password", hide_input=True, err=True
            )
        if self.ca is not None:
            options["tls"] = _trust(self.ca)
        return options

    def ask(self, question: Any) -> list[dict[str, Any]]:
        """The rows a question to the broker is answered with, in the JSON form."""
        import asyncio

        from kbn.client.aio import connect
        from kbn.language import event_to_json

        options = self.options()

        async def ask() -> list[Notification]:
            async with connect(self.broker, **options) as client:
                rows: list[Notification] = await question(client)
                return rows

        return [dict(event_to_json(row)) for row in asyncio.run(ask())]


def talks(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb whose parameter ``there`` is given by the four options."""
    return _with_options(verb, Broker, DEFAULT)


def may_talk(verb: Callable[..., None]) -> Callable[..., None]:
    """The same, where ``there.url`` is None unless a broker is named."""
    return _with_options(verb, AtBroker, None)


def _with_options(
    verb: Callable[..., None], broker: Any, default: str | None
) -> Callable[..., None]:
    options = {"broker": (broker, default), "token": (Token, None), "user": (User, None)}
    options["ca"] = (Ca, None)

    def parameters() -> Iterator[inspect.Parameter]:
        for one in inspect.signature(verb, eval_str=True).parameters.values():
            if one.name != "there":
                yield one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
                continue
            for name, (kind, given) in options.items():
                yield inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=given, annotation=kind
                )

    @wraps(verb)
    def run(**said: Any) -> None:
        verb(there=There(*(said.pop(name) for name in options)), **said)

    signature = inspect.Signature(list(parameters()), return_annotation=None)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    return run


def _trust(ca: Path) -> ssl.SSLContext:
    import ssl

    try:
        context = ssl.create_default_context(cafile=str(ca))
        cert = os.environ.get("KBN_CERT")
        if cert:
            context.load_cert_chain(cert, os.environ.get("KBN_KEY"))
    except (OSError, ssl.SSLError) as error:
        raise typer.BadParameter(f"cannot use {ca}: {error}") from None
    return context
