"""The immutable answer to every semantic question; knows no rdflib and no files.

``pairs`` holds one relation, ``names`` reads and writes terms, ``terms`` is the
``Hierarchy`` itself, ``extents`` decides covering, ``why`` tells the path,
``form`` is the byte form. May be shared freely: nothing here changes once built.
"""

from kbn.knowledge.hierarchy.form import from_bytes, to_bytes
from kbn.knowledge.hierarchy.terms import Hierarchy

__all__ = ["Hierarchy", "from_bytes", "to_bytes"]
