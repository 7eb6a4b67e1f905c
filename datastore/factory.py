"""From a URL, or a name in the configuration, to an open store.

    sqlite:///history.db          a file, relative; four slashes for an absolute path
    postgresql://user@host/db     a database that exists
    delta:///folder               a journal that drains into Delta Lake; relative too
    memory:                       kept until the process ends
    none                          not kept at all

Options stand behind a ``?``: ``index=price,symbol`` names the attributes whose values
are indexed, ``low_water=BYTES`` the space on disk that must stay free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

from datastore.diskspace import DEFAULT_LOW_WATER
from datastore.store import Store
from kbn.errors import StoreError

if TYPE_CHECKING:
    from datastore.sql.store import SqlStore

DEFAULT = "default"
#: The name under which a store remembers where its archive is.
ARCHIVE = "archive"
#: What a store is configured by: its URL, or a table with the URL and options.
Configured: TypeAlias = str | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """A URL taken apart. ``index`` None leaves the names as they are in the store."""

    url: str
    index: tuple[str, ...] | None = None
    low_water: int = DEFAULT_LOW_WATER


def default_url(data_dir: Path) -> str:
    """The embedded store of a data directory."""
    return f"sqlite:///{data_dir / 'history.db'}"


def location(url: str) -> Path | None:
    """The absolute file or folder of a store; None where it is none of ours."""
    return _path(url).absolute() if urlsplit(url).scheme in ("sqlite", "delta") else None


def read_settings(configured: Configured) -> StoreSettings:
    """Settings from a URL or a table ``{"url": …, "index": […], "low_water": …}``."""
    if isinstance(configured, str):
        return _from_url(configured)
    unknown = set(configured) - {"url", "index", "low_water"}
    url = configured.get("url")
    if unknown or not isinstance(url, str):
        raise StoreError(
            f"a store is configured by url, index and low_water, not by {dict(configured)!r}"
        )
    made = _from_url(url)
    index, low_water = configured.get("index"), configured.get("low_water")
    if index is not None:
        if not isinstance(index, list | tuple) or not all(isinstance(n, str) for n in index):
            raise StoreError(f"index is a list of attribute names, not {index!r}", store=url)
        made = replace(made, index=tuple(index))
    if low_water is not None:
        made = replace(made, low_water=_bytes(low_water, url))
    return made


def open_store(configured: Configured | StoreSettings, *, read_only: bool = False) -> Store:
    """Open a store. Raises ``StoreError``, or ``UnsupportedError`` if an extra is missing."""
    settings = (
        configured if isinstance(configured, StoreSettings) else read_settings(configured)
    )  # fmt: skip
    url = settings.url
    scheme = urlsplit(url).scheme
    if url == "none":
        from datastore.none import NoStore  # noqa: PLC0415 - only what is asked for is loaded

        return NoStore()
    if url == "memory:":
        from datastore.memory import MemoryStore  # noqa: PLC0415

        return MemoryStore()
    if scheme == "sqlite":
        from datastore.sql.store import open_sqlite  # noqa: PLC0415

        return _with_archive(
            open_sqlite(
                _path(url),
                read_only=read_only,
                names=None if read_only else settings.index,
                low_water=settings.low_water,
            )
        )
    if scheme == "postgresql":
        from datastore.sql.store import open_postgres  # noqa: PLC0415

        return _with_archive(
            open_postgres(url, read_only=read_only, names=None if read_only else settings.index)
        )
    if scheme == "delta":
        from datastore.delta.store import open_delta  # noqa: PLC0415

        return open_delta(
            _path(url),
            read_only=read_only,
            names=None if read_only else settings.index,
            low_water=settings.low_water,
        )
    raise StoreError(
        "no such kind of store: use sqlite:///FILE, postgresql://…, delta:///FOLDER,"
        " memory: or none",
        store=url,
    )


def _with_archive(store: SqlStore) -> Store:
    """The store together with the archive that ``kbn archive`` moved its old entries to."""
    if store.meta.get(ARCHIVE) is None:
        return store
    from datastore.delta.attached import attached  # noqa: PLC0415

    try:
        return attached(store)
    except BaseException:
        store.close()
        raise


class Stores:
    """The stores that a configuration names, opened on demand.

    ``{"default": "sqlite:///history.db", "audit": {"url": "postgresql://…"}}``
    """

    def __init__(self, configured: Mapping[str, Configured]) -> None:
        self._settings = {name: read_settings(each) for name, each in configured.items()}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._settings)

    def open(self, name: str = DEFAULT, *, read_only: bool = False) -> Store:
        """The store of that name."""
        settings = self._settings.get(name)
        if settings is None:
            known = ", ".join(sorted(self._settings)) or "none"
            raise StoreError(f"no store is named {name!r} in the configuration; known: {known}")
        return open_store(settings, read_only=read_only)


def _from_url(url: str) -> StoreSettings:
    parts = urlsplit(url)
    given = parse_qs(parts.query, keep_blank_values=True)
    index, low_water = given.pop("index", None), given.pop("low_water", None)
    if parts.scheme in ("sqlite", "delta") and given:
        raise StoreError(f"unknown option {sorted(given)[0]!r}", store=url)
    rest = "&".join(
        pair for pair in parts.query.split("&") if pair.split("=")[0] not in ("index", "low_water")
    )
    bare = url.split("?", 1)[0]
    made = StoreSettings(f"{bare}?{rest}" if rest else bare)
    if index:
        made = replace(made, index=tuple(name for name in index[-1].split(",") if name))
    if low_water:
        made = replace(made, low_water=_bytes(low_water[-1], url))
    return made


def _bytes(given: object, url: str) -> int:
    try:
        held = int(given) if isinstance(given, int | str) else -1
    except ValueError:
        held = -1
    if held < 0:
        raise StoreError(f"low_water is a number of bytes, not {given!r}", store=url)
    return held


def _path(url: str) -> Path:
    parts = urlsplit(url)
    path = unquote(url.split("://", 1)[1].split("?", 1)[0]) if "://" in url else ""
    if parts.netloc or not path.startswith("/") or len(path) < 2:
        raise StoreError(
            f"write {parts.scheme}:///relative/path or {parts.scheme}:////absolute/path",
            store=url,
        )
    return Path(path[1:])
