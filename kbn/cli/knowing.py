"""What verbs know: ontologies of files, of a data directory, or of this package by name."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbn.cli.portraying import warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypedDict

    from kbn.knowledge.hierarchy import Hierarchy
    from kbn.knowledge.request import Source
    from kbn.knowledge.spelling import Spellings
    from kbn.model import Subscription

    class Known(TypedDict):
        """How the answers about terms are handed to a store or a job."""

        knowledge: Hierarchy | None
        spelling: Spellings | None


DATA_DIR = Path("kbn-data")
OntologyFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--ontology", help="A file, or wine, nebraska, units, events; repeatable.", metavar="FILE"
    ),
]
DataDir = Annotated[
    Path,
    typer.Option("--data-dir", envvar="KBN_DATA_DIR", help="Whose ontologies, if none is given."),
]


class Format(StrEnum):
    """What a file is written in, where its name does not say."""

    TURTLE = "turtle"
    XML = "xml"
    NT = "nt"
    JSON_LD = "json-ld"


def knowledge_for(
    asked: Iterable[Subscription], files: Sequence[str] | None, data_dir: Path
) -> Known:
    """Nothing if no filter has a semantic operator. Raises ``NoOntologyError`` if one has,
    and neither a file was given nor the data directory has any."""
    from kbn.errors import NoOntologyError
    from kbn.knowledge.spelling import Spellings
    from kbn.model.filters import needs_ontology

    if not any(map(needs_ontology, asked)):
        return {"knowledge": None, "spelling": None}
    known = known_from(files, data_dir)
    if known is None:
        raise NoOntologyError("a semantic operator")
    return {"knowledge": known, "spelling": Spellings(known)}


def known_from(files: Sequence[str] | None, data_dir: Path) -> Hierarchy | None:
    """The hierarchy of the files given, else of the data directory; None if neither has any.

    From the cache where it can be; then rdflib is not imported.
    """
    if files:
        from kbn.knowledge.build import obtain
        from kbn.knowledge.cache import default_cache
        from kbn.knowledge.request import Request

        built = obtain(Request(tuple(source_of(file) for file in files)), default_cache())
        warn(built)
        return built.hierarchy
    if not (data_dir / "ontologies" / "library.json").exists():
        return None
    from kbn.knowledge.library import Library

    current = Library(data_dir).current()
    return None if current is None else current.hierarchy


def source_of(file: str, format: Format | None = None, *, skos: bool = False) -> Source:
    import ontologies
    from kbn.knowledge.request import Source

    path = Path(file)
    if file in ontologies.NAMES and not path.exists():
        path = ontologies.path(file)
    return Source.read(path, format=format.value if format else None, skos=skos)


def catalogue_of(path: Path | None) -> dict[str, Path]:
    from kbn.errors import OntologyError

    if path is None:
        return {}
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        return {str(iri): path.parent / str(file) for iri, file in held.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise OntologyError(f"is no catalogue: {error}", source=str(path)) from None
