"""How a term is written: an absolute IRI, or ``prefix:local`` under a table of prefixes.

Laws: a registered prefix wins over a URI scheme (``geo:`` is both); the empty prefix
is never registered; ``expand(s) == iri`` exactly for ``s in spellings(iri)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
#: Terms of these are grammar, not knowledge; only owl:Thing can be asked about.
VOCABULARIES = (RDF, RDFS, OWL, XSD)
THING = OWL + "Thing"
#: Registered always, unless the configuration says otherwise.
STANDARD = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD, "skos": SKOS}


class Prefixes:
    """An immutable table from prefix to namespace."""

    __slots__ = ("table",)

    table: Mapping[str, str]

    def __init__(self, table: Mapping[str, str]) -> None:
        self.table = {prefix: space for prefix, space in table.items() if prefix}

    def expand(self, text: str) -> str:
        """The IRI that ``text`` stands for; itself if its prefix is not registered."""
        prefix, colon, local = text.partition(":")
        space = self.table.get(prefix) if colon else None
        return text if space is None else space + local

    def shadows(self, iri: str) -> bool:
        """Whether the IRI, written out, would be read as a prefix name."""
        prefix, colon, _ = iri.partition(":")
        return bool(colon) and prefix in self.table

    def spellings(self, iri: str) -> list[str]:
        """Every text that expands to the IRI, the shortest first."""
        found = [
            f"{prefix}:{iri[len(space) :]}"
            for prefix, space in self.table.items()
            if iri.startswith(space)
        ]
        if not self.shadows(iri):
            found.append(iri)
        return sorted(found, key=lambda text: (len(text), text))

    def shorten(self, iri: str) -> str:
        """The shortest prefix name, or the IRI where there is none."""
        return next(iter(self.spellings(iri)), iri)


def is_vocabulary(iri: str) -> bool:
    """Whether the IRI belongs to RDF, RDFS, OWL or XML Schema; owl:Thing does not count."""
    return iri.startswith(VOCABULARIES) and iri != THING


def local_name(iri: str) -> str:
    """What people call it: the part behind the last ``#``, ``/`` or ``:``."""
    for mark in "#/:":
        head, found, tail = iri.rpartition(mark)
        if found and head and tail:
            return tail
    return iri


def settle(
    configured: Mapping[str, str], declared: Iterable[tuple[str, str, str]]
) -> tuple[dict[str, str], list[str]]:
    """The table, and a warning for each file that would have rebound a prefix.

    ``declared`` are (source, prefix, namespace) in the order of loading; the
    configuration comes before all of them, and the first to bind a prefix keeps it.
    """
    table = {**STANDARD, **configured}
    warnings = []
    for source, prefix, space in declared:
        if not prefix or ":" in prefix:
            continue
        if table.setdefault(prefix, space) != space:
            warnings.append(
                f"{source} binds the prefix {prefix}: to <{space}>; it stays <{table[prefix]}>"
            )
    return table, list(dict.fromkeys(warnings))
