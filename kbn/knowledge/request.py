"""What to build a hierarchy from, and how much it may cost. Knows no rdflib.

A request is the whole input of a build: its ``key`` names the result, so that a
cache can answer instead. The key covers the bytes, formats and names of the files,
the catalogue with the bytes it leads to, prefixes, options, the reasoner with its
version, and the byte form of the result.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path

from kbn.errors import LimitError, OntologyError, UnsupportedError
from kbn.knowledge.hierarchy.form import FORMAT

#: Changes when the rules, the loader or the builder answer differently.
RULES = "1"
FORMATS = ("turtle", "xml", "nt", "json-ld")
_BY_SUFFIX = {
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".rdf": "xml",
    ".xml": "xml",
    ".nt": "nt",
    ".jsonld": "json-ld",
    ".json": "json-ld",
}
REASONERS = ("reasonable", "owlrl")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one build may use; beyond it the files are refused with ``LimitError``."""

    max_bytes: int = 64 * 2**20
    max_triples: int = 500_000
    max_list: int = 10_000
    max_closure: int = 5_000_000
    memory_bytes: int = 2 * 2**30
    seconds: int = 120


@dataclass(frozen=True, slots=True)
class Source:
    """One file: where it came from, its bytes, its format."""

    name: str
    data: bytes
    format: str
    #: Whether SKOS is read as an order and an equivalence of classes.
    skos: bool = False

    @classmethod
    def read(
        cls,
        path: Path,
        *,
        format: str | None = None,
        skos: bool = False,
        limits: Limits | None = None,
    ) -> Source:
        """Raises ``OntologyError`` if it cannot be read, ``LimitError`` if it is too big."""
        most = (limits or Limits()).max_bytes
        try:
            size = path.stat().st_size
            if size > most:
                raise LimitError(
                    f"{path.name} has {size:,} bytes, at most {most:,} are read",
                    limit="max_bytes",
                    allowed=most,
                )
            data = path.read_bytes()
        except OSError as error:
            raise OntologyError(f"cannot be read: {error.strerror}", source=str(path)) from None
        return cls(path.name, data, format or guess_format(path.name, data), skos)


def guess_format(name: str, data: bytes) -> str:
    """By the name, else by how it begins."""
    known = _BY_SUFFIX.get(Path(name).suffix.lower())
    if known is not None:
        return known
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"<?xml", b"<rdf:RDF", b"<!DOCTYPE")):
        return "xml"
    return "json-ld" if start.startswith((b"{", b"[")) else "turtle"


@dataclass(frozen=True, slots=True)
class Request:
    """Files in the order of loading, with all that decides what comes out."""

    sources: tuple[Source, ...]
    prefixes: tuple[tuple[str, str], ...] = ()
    #: Import IRI to a local path; nothing is ever fetched.
    catalogue: tuple[tuple[str, str], ...] = ()
    reasoner: str | None = None
    limits: Limits = field(default_factory=Limits)

    def chosen_reasoner(self) -> str:
        """The one asked for, else the fastest that is installed."""
        if self.reasoner is not None and self.reasoner not in REASONERS:
            raise UnsupportedError(f"no reasoner '{self.reasoner}': use {' or '.join(REASONERS)}")
        name = self.reasoner or ("reasonable" if _version("reasonable") else "owlrl")
        if not _version(name):
            raise UnsupportedError(f"the reasoner '{name}' is not installed")
        return name

    def key(self) -> str:
        reasoner = self.chosen_reasoner()
        named = [
            *(FORMAT, RULES, reasoner, _version(reasoner)),
            *(self.prefixes, asdict(self.limits)),
            [(s.name, s.format, s.skos, digest(s.data)) for s in self.sources],
            [(iri, _digest_of(Path(path))) for iri, path in self.catalogue],
        ]
        return digest(json.dumps(named).encode())


def digest(data: bytes) -> str:
    """The SHA-256, as text."""
    return hashlib.sha256(data).hexdigest()


def _digest_of(path: Path) -> str:
    try:
        return digest(path.read_bytes())
    except OSError:
        return "missing"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
