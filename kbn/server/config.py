"""One configuration: a TOML file, then the environment, then flags; the last one wins.

Every key ``section.key`` of the file is also the variable ``KBN_SECTION_KEY`` and
the flag ``--section-key``. An unknown key is an error that suggests the nearest
known one. Times are in seconds here and in milliseconds in the core; sizes are
in bytes.
"""

from __future__ import annotations

import difflib
import ipaddress
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from kbn.broker.addresses import Network
from kbn.broker.settings import MasterProtocol, Policy
from kbn.errors import RefusedError, ValueRangeError
from kbn.language.durations import read_duration

PREFIX = "KBN_"
#: How near a variable's name must be to one of ours to be taken for a slip of it.
_SLIP = 0.85
DEFAULT_LISTEN = "ka://127.0.0.1:1969"
DEFAULT_HTTP = "127.0.0.1:1970"


#: Ranges, so that a number that makes no sense is refused when it is read.
Count = Annotated[int, Meta(ge=1)]
#: A queue has room for two packets at least: one that waits, one that comes.
Size = Annotated[int, Meta(ge=131_072)]
Seconds = Annotated[float, Meta(ge=0)]


class LogForm(StrEnum):
    """How log lines look."""

    PRETTY = "pretty"
    JSON = "json"


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Certificates, as paths of PEM files."""

    cert: str | None = None
    key: str | None = None
    #: Sign client certificates with this authority to have them accepted (mutual TLS).
    client_ca: str | None = None
    #: Refuse TLS clients without a certificate.
    client_required: bool = False
    #: Trust masters and handlers whose certificate this authority signed.
    ca: str | None = None


class Handlers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom the broker may call for remote clients, beside public addresses."""

    allow: tuple[str, ...] = ()


class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds; what passes one is refused with the code ``limit`` or ``too_large``."""

    packet: Annotated[int, Meta(ge=256, le=65_535)] = 65_535
    depth: Annotated[int, Meta(ge=1, le=16)] = 16
    constraints: Count = 1024
    publication: Annotated[int, Meta(ge=64, le=64_000)] = 64_000
    connections: Count = 20_000
    #: Units one principal may hold.
    subscriptions: Count = 200_000
    #: Bytes that may wait for one subscriber, for one child broker, and for the master.
    queue: Size = 8 * 1024 * 1024
    backlog: Size = 64 * 1024 * 1024
    spool: Size = 64 * 1024 * 1024


class Times(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Patience, in seconds."""

    handshake: Seconds = 10.0
    idle: Seconds = 60.0
    unreachable: Seconds = 60.0
    retry_first: Seconds = 0.2
    retry_most: Seconds = 10.0
    probe: Seconds = 1.0
    drain: Seconds = 5.0
    #: How long deliveries are kept for a durable session that stays away.
    backlog: Seconds = 7 * 24 * 3600.0
    #: For the history of a new inner filter to be read; then its SUB is ``overloaded``.
    fill: Seconds = 60.0
    #: Between two rounds of trimming backlogs, forgetting old events and archiving.
    care: Annotated[float, Meta(gt=0)] = 30.0


class RetentionConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the history may forget, whole events only; 0 keeps everything."""

    #: Seconds since the last publication about an event.
    age: Seconds = 0.0
    count: Annotated[int, Meta(ge=0)] = 0
    #: Bytes of log.
    size: Annotated[int, Meta(ge=0)] = 0


class ArchiveConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Old history that moves to Delta while the broker runs; no answer changes by it."""

    #: Seconds, or a duration such as ``30d``, since a publication arrived; None: it stays.
    older: str | Seconds | None = None
    #: The folder of the Delta table; None: ``archive`` beside the store.
    to: str | None = None

    @property
    def age(self) -> int | None:
        """``older`` in milliseconds."""
        older = self.older
        if isinstance(older, str):
            if not older.replace(".", "", 1).isdecimal():
                return read_duration(older)
            older = float(older)
        return None if older is None else int(older * 1000)


class PrincipalConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody with rights; filters allow everything when left out."""

    name: str
    token: str | None = None
    password: str | None = None
    publish: str | None = None
    subscribe: str | None = None
    may_publish: bool = True
    may_subscribe: bool = True
    admin: bool = False


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a broker can be told."""

    listen: tuple[str, ...] = (DEFAULT_LISTEN,)
    #: Where /metrics and the like are served; "none" for nowhere.
    http: str | None = None
    store: str | None = None
    data_dir: str = "kbn-data"
    master: str | None = None
    master_protocol: MasterProtocol = MasterProtocol.AUTO
    master_token: str | None = None
    identity: str | None = None
    #: The address others reach this broker at, if it is not the first one of ``listen``.
    advertise: str | None = None
    insecure: bool = False
    log: LogForm = LogForm.PRETTY
    policy: Policy = Policy.DROP_OLDEST
    tls: Tls = Tls()
    handlers: Handlers = Handlers()
    limits: LimitsConfig = LimitsConfig()
    times: Times = Times()
    retention: RetentionConfig = RetentionConfig()
    archive: ArchiveConfig = ArchiveConfig()
    principals: tuple[PrincipalConfig, ...] = ()

    @property
    def networks(self) -> tuple[Network, ...]:
        """The ranges handlers may be in."""
        try:
            return tuple(ipaddress.ip_network(text) for text in self.handlers.allow)
        except ValueError as error:
            raise RefusedError("syntax", f"handlers.allow: {error}") from None


def load(path: Path | None, environment: Mapping[str, str], flags: Mapping[str, object]) -> Config:
    """Put the three sources together; raises ``RefusedError`` that names the key."""
    said: dict[str, Any] = {}
    if path is not None:
        try:
            said = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise RefusedError("syntax", f"cannot read {path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise RefusedError("syntax", f"{path}: {error}") from None
        _check_keys(said, Config, str(path), "")
    _check_variables(environment)
    for key, text in _from_environment(environment):
        _put(said, key, text)
    for key, value in flags.items():
        if value not in (None, (), []):
            _put(said, key, value)
    try:
        made = msgspec.convert(said, Config, strict=False)
    except msgspec.ValidationError as error:
        raise RefusedError("syntax", f"configuration: {_placed(error)}") from None
    _ = made.networks  # read now, so that a bad range is refused before anything listens
    _check_archive(made.archive)
    return made


def _check_archive(asked: ArchiveConfig) -> None:
    try:
        age = asked.age
    except ValueRangeError as error:
        raise RefusedError("syntax", f"archive.older: {error}") from None
    if age is None and asked.to is not None:
        raise RefusedError("syntax", "archive.to: say archive.older too, such as 30d")


def _placed(error: msgspec.ValidationError) -> str:
    """The complaint with the key in front: ``limits.queue: Expected `int` >= 1024``."""
    text, _, place = str(error).partition(" - at `$.")
    return f"{place.rstrip('`')}: {text}" if place else text


def known_keys(kind: type = Config, within: str = "") -> Iterator[str]:
    """Every key, dotted."""
    for field in msgspec.structs.fields(kind):
        nested = field.type
        if isinstance(nested, type) and issubclass(nested, msgspec.Struct):
            yield from known_keys(nested, f"{within}{field.name}.")
        else:
            yield within + field.name


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    for key in known_keys():
        text = environment.get(variable(key))
        if text is None or key == "principals":
            continue
        yield key, text.split(",") if key in ("listen", "handlers.allow") else text


def variable(key: str) -> str:
    """The environment variable of a key."""
    return PREFIX + key.replace(".", "_").upper()


def flag(key: str) -> str:
    """The command-line flag of a key."""
    return "--" + key.replace(".", "-").replace("_", "-")


def _check_variables(environment: Mapping[str, str]) -> None:
    """A variable that is nearly one of ours is a slip; others belong to somebody else."""
    known = [variable(key) for key in known_keys()]
    for name in environment:
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, 1, _SLIP)
            if near:
                raise RefusedError("syntax", f"unknown variable {name}: did you mean {near[0]}?")


def _put(said: dict[str, Any], key: str, value: object) -> None:
    *sections, last = key.split(".")
    for section in sections:
        said = said.setdefault(section, {})
    said[last] = value


def _check_keys(said: Mapping[str, Any], kind: type, path: str, within: str) -> None:
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in said.items():
        if key not in fields:
            near = difflib.get_close_matches(key, fields, 1)
            hint = f": did you mean '{within}{near[0]}'?" if near else ""
            raise RefusedError("syntax", f"{path}: unknown key '{within}{key}'{hint}")
        nested = fields[key]
        if isinstance(nested, type) and issubclass(nested, msgspec.Struct):
            if not isinstance(value, dict):
                raise RefusedError("syntax", f"{path}: '{within}{key}' is a table")
            _check_keys(value, nested, path, f"{within}{key}.")
        elif key == "principals" and isinstance(value, list):
            for one in value:
                if isinstance(one, dict):
                    _check_keys(one, PrincipalConfig, path, "principals.")
