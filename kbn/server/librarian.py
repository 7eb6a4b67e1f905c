"""A broker's library at the edge: builds, in a thread, what the core asks to know.

A change is built beside what is in use, kept here until it is to be written down,
and forgotten when another takes its place. What can be computed once is computed
here, so that nothing on the loop waits for it.
"""

from __future__ import annotations

import gc
from pathlib import Path

from kbn.broker.instructions import ChangeOntology, CommitOntology
from kbn.broker.knowing import NOTHING_LOADED, Loaded, Ontology
from kbn.broker.stimuli import OntologyBuilt, OntologyKept, OntologyRefused
from kbn.errors import KbnError, RefusedError
from kbn.knowledge.build import Built
from kbn.knowledge.library import Change, Entry, Library
from kbn.knowledge.request import FORMATS, Source, guess_format

Answer = OntologyBuilt | OntologyKept | OntologyRefused


class Librarian:
    """One broker's ontologies; without a data directory it has none and keeps none."""

    def __init__(self, data_dir: Path | None = None) -> None:
        self._library = None if data_dir is None else Library(data_dir)
        self._change: tuple[int, Change] | None = None

    def current(self) -> Ontology:
        """What is loaded; a library that cannot be read is told, not raised."""
        if self._library is None:
            return NOTHING_LOADED
        try:
            return _ontology(self._library.current(), self._library.entries)
        except KbnError as error:
            return Ontology(broken=f"{error.code}: {error.message}")
        except OSError as error:
            return Ontology(broken=f"{self._library.directory}: {error.strerror or error}")

    def perform(self, asked: ChangeOntology | CommitOntology) -> Answer:
        """Build a change, or write it down; never raises but for a bug."""
        # A collection over everything the broker holds would stop its loop; what is there
        # now has come to stay, and what a change leaves behind is freed without one.
        gc.freeze()
        try:
            if isinstance(asked, ChangeOntology):
                return OntologyBuilt(asked.number, self._prepare(asked))
            assert self._change is not None
            number, change = self._change
            assert number == asked.number
            change.commit()
        except KbnError as error:
            return OntologyRefused(asked.number, error.code, error.message)
        except OSError as error:
            reason = f"the library cannot be written: {error.strerror or error}"
            return OntologyRefused(asked.number, "store_unavailable", reason)
        self._change = None
        return OntologyKept(asked.number)

    def _prepare(self, asked: ChangeOntology) -> Ontology:
        library = self._library
        if library is None:
            raise RefusedError("unsupported", "this broker has no place for ontologies")
        if asked.what == "remove":
            change = library.prepare_remove(asked.name)
        else:
            name = Path(asked.source).name or asked.name
            form = asked.format or guess_format(name, asked.data)
            if form not in FORMATS:
                raise RefusedError("unsupported", f"no format '{form}': use {', '.join(FORMATS)}")
            change = library.prepare_load(
                Source(name, asked.data, form, asked.skos), name=asked.name
            )
        self._change = (asked.number, change)
        return _ontology(change.built, change.index.entries)


def _ontology(built: Built | None, entries: tuple[Entry, ...]) -> Ontology:
    loaded = tuple(Loaded(entry.name, entry.source, entry.format) for entry in entries)
    if built is None:
        return NOTHING_LOADED
    made = Ontology(built.hierarchy.make_ready(), loaded, built.triples, built.warnings)
    _ = made.prefixes
    return made
