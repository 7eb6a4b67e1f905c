"""What a broker knows: a hierarchy, the files it was made of, and the name of it all."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from kbn.errors import KbnError, NoOntologyError, RefusedError
from kbn.knowledge.hierarchy import Hierarchy
from kbn.knowledge.hierarchy.speaking import semantic_parts
from kbn.model.filters import Subscription
from kbn.model.operators import Related


class Loaded(NamedTuple):
    """One file of the library."""

    name: str
    source: str
    format: str


@dataclass(frozen=True)
class Ontology:
    """One version of what is known; ``hierarchy`` is None when nothing is loaded."""

    hierarchy: Hierarchy | None = None
    loaded: tuple[Loaded, ...] = ()
    triples: int = 0
    warnings: tuple[str, ...] = ()
    #: Why the library could not be read, if it could not.
    broken: str = ""

    @property
    def hash(self) -> str:
        """Names the knowledge; empty when nothing is loaded."""
        return "" if self.hierarchy is None else self.hierarchy.hash

    @cached_property
    def prefixes(self) -> str:
        """Names the table of prefixes: it decides what the strings in events mean."""
        if self.hierarchy is None:
            return ""
        table = sorted(self.hierarchy.prefixes.table.items())
        return hashlib.sha256(repr(table).encode()).hexdigest()[:16]

    @property
    def name(self) -> tuple[str, str]:
        """Equal names: two brokers decide every semantic constraint alike."""
        return (self.hash, self.prefixes)

    def refusal(self, asked: Subscription) -> KbnError:
        """The no to a semantic subscription where nothing is known; names the operator."""
        _, op, _ = next(semantic_parts(asked))
        operator = "related" if isinstance(op, Related) else op.text
        if self.broken:
            return RefusedError(
                "no_ontology",
                f"'{operator}' needs an ontology, and this broker's cannot be read: {self.broken}",
            )
        return NoOntologyError(operator)


NOTHING_LOADED = Ontology()
