"""The predicate index: every subscription that matches, without asking each.

Law: ``PredicateIndex.match`` returns exactly the keys whose subscription
``kbn.matching.naive`` accepts, each once.

The way of a publication, one file per stop: ``table`` is the door; it walks a
tree of ``node`` objects whose branches are one small class per operator family
(``equality`` is a dict, then ``strings``, ``bags``, ``semantic``); in a node,
filters lie sorted by their bounds (``sorted_bounds`` in one dimension,
``tiles`` in two, both behind ``stores``), so the answer is made of slices. What
no structure decides is a ``checks`` entry, asked last and once per publication.
``plan`` says which constraint of a filter goes where.
"""

from kbn.matching.index.table import PredicateIndex

__all__ = ["PredicateIndex"]
