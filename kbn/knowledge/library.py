"""The ontologies of a data directory: kept as files, reasoned over together.

    <data-dir>/ontologies/library.json    names, in the order of loading
    <data-dir>/ontologies/files/          the files as they were given
    <data-dir>/ontologies/cache/          the hierarchies made of them

A change is prepared first: the new hierarchy is built beside the old one, and only
``commit`` makes it what the next start finds. Who serves events swaps its own
reference in between. Nothing here is locked: one process changes a library at a time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kbn.errors import KbnError, MalformedError, OntologyError
from kbn.knowledge.build import Built, obtain
from kbn.knowledge.cache import Cache
from kbn.knowledge.request import Limits, Request, Source, digest


@dataclass(frozen=True, slots=True)
class Entry:
    """One loaded file: its name here, and the file under ``files/``."""

    name: str
    file: str
    source: str
    format: str
    skos: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """What ``library.json`` says."""

    entries: tuple[Entry, ...] = ()
    #: Import IRI to a file under ``files/``.
    imports: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A library as it would be. ``built`` is None when nothing would be loaded."""

    library: Library
    index: Index
    files: Mapping[str, bytes]
    built: Built | None

    def commit(self) -> None:
        """Write it down; the files first, the index last."""
        self.library.write(self.index, self.files)


class Library:
    """The ontologies under one data directory.

    ``prefixes`` is the configuration, which comes before anything a file declares.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        prefixes: Mapping[str, str] | None = None,
        reasoner: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.directory = data_dir / "ontologies"
        self.cache = Cache(self.directory / "cache")
        self._prefixes = tuple((prefixes or {}).items())
        self._reasoner = reasoner
        self._limits = limits or Limits()

    @property
    def index(self) -> Index:
        """Raises ``MalformedError`` if somebody edited it badly."""
        try:
            held = json.loads((self.directory / "library.json").read_text(encoding="utf-8"))
            entries = tuple(Entry(**entry) for entry in held["entries"])
            return Index(entries, tuple((iri, file) for iri, file in held["imports"]))
        except FileNotFoundError:
            return Index()
        except (ValueError, KeyError, TypeError) as error:
            path = self.directory / "library.json"
            raise MalformedError(f"{path} cannot be read: {error}") from None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What is loaded, in order."""
        return self.index.entries

    def current(self) -> Built | None:
        """The hierarchy of all that is loaded, or None; from the cache if it can be."""
        return self._built(self.index, {})

    def prepare_load(
        self,
        source: Source,
        *,
        name: str | None = None,
        catalogue: Mapping[str, Path] | None = None,
    ) -> Change:
        """Load a file, or replace the one of that name in its place.

        Raises what ``obtain`` raises; then nothing has changed.
        """
        index = self.index
        name = name or Path(source.name).stem
        files = {_file_of(source): source.data}
        entry = Entry(name, _file_of(source), source.name, source.format, source.skos)
        imports = dict(index.imports)
        for iri, path in (catalogue or {}).items():
            held = Source.read(path, limits=self._limits)
            imports[iri] = _file_of(held)
            files[_file_of(held)] = held.data
        if any(old.name == name for old in index.entries):
            entries = tuple(entry if old.name == name else old for old in index.entries)
        else:
            entries = (*index.entries, entry)
        changed = Index(entries, tuple(imports.items()))
        for file, data in files.items():
            self._keep(file, data)
        try:
            return Change(self, changed, files, self._built(changed, files))
        except KbnError:
            self._sweep(index)
            raise

    def prepare_remove(self, name: str) -> Change:
        """Take a file out. Raises ``OntologyError`` if there is none of that name."""
        index = self.index
        entries = tuple(entry for entry in index.entries if entry.name != name)
        if len(entries) == len(index.entries):
            held = ", ".join(entry.name for entry in entries) or "nothing"
            raise OntologyError(f"is not loaded; loaded is {held}", source=name)
        changed = Index(entries, index.imports if entries else ())
        return Change(self, changed, {}, self._built(changed, {}))

    def write(self, index: Index, files: Mapping[str, bytes]) -> None:
        for file, data in files.items():
            self._keep(file, data)
        said = {
            "entries": [asdict(entry) for entry in index.entries],
            "imports": list(index.imports),
        }
        self.directory.mkdir(parents=True, exist_ok=True)
        text = json.dumps(said, indent=2, ensure_ascii=False) + "\n"
        _replace(self.directory / "library.json", text.encode())
        self._sweep(index)

    def _built(self, index: Index, files: Mapping[str, bytes]) -> Built | None:
        if not index.entries:
            return None
        sources = []
        for entry in index.entries:
            data = files.get(entry.file)
            path = self.directory / "files" / entry.file
            if data is None:
                data = Source.read(path, limits=self._limits).data
            sources.append(Source(entry.source, data, entry.format, entry.skos))
        catalogue = tuple(
            (iri, str(self.directory / "files" / file)) for iri, file in index.imports
        )
        request = Request(tuple(sources), self._prefixes, catalogue, self._reasoner, self._limits)
        return obtain(request, self.cache)

    def _keep(self, file: str, data: bytes) -> None:
        path = self.directory / "files" / file
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, data)

    def _sweep(self, index: Index) -> None:
        """Files that nothing names any more."""
        named = {entry.file for entry in index.entries} | {file for _, file in index.imports}
        for path in (self.directory / "files").glob("*"):
            if path.name not in named:
                path.unlink(missing_ok=True)


def _file_of(source: Source) -> str:
    return f"{digest(source.data)[:16]}-{Path(source.name).name}"


def _replace(path: Path, data: bytes) -> None:
    """All or nothing, and on disk before it counts."""
    new = path.with_name(f".{path.name}.new")
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
