"""The immutable answer to every semantic question; knows no rdflib and no files.

``pairs`` holds one relation, ``names`` reads and writes terms, ``terms`` is the
``Hierarchy`` itself, ``extents`` decides covering, ``why`` tells the path,
``form`` is the byte form. May be shared freely: nothing here changes once built.
"""

from kbn.knowledge.hierarchy.form import from_bytes, to_bytes
from kbn.knowledge.hierarchy.names import STANDARD, Prefixes
from kbn.knowledge.hierarchy.pairs import Pairs
from kbn.knowledge.hierarchy.terms import Hierarchy

#: Knows no term, so that every pair is false: what is left when the last ontology goes.
NO_TERMS = Hierarchy(
    iris=(),
    thing_of=(),
    kinds=b"",
    class_up=Pairs(),
    property_up=Pairs(),
    types=Pairs(),
    relations={},
    literals=(),
    prefixes=Prefixes(STANDARD),
)

__all__ = ["NO_TERMS", "Hierarchy", "from_bytes", "to_bytes"]
