"""The reasoners: what else is true, each in its own words.

``owlrl`` is the reference and always there; ``reasonable`` is compiled and about two
hundred times faster. They leave out different things, so whatever they say goes
through ``closure``, after which both have said the same (``tests/knowledge`` holds
them to it).

What is stated to be the same is joined before they see it: they would write down
every pair of a clique. Keys are kept from them: owlrl 7.6 forgets the last property
of each, and so makes everything of a class with a key of one property the same.
"""

from __future__ import annotations

from collections.abc import Iterable

import rdflib

from kbn.knowledge.hierarchy.names import OWL, is_vocabulary
from kbn.knowledge.loader import Node, RdfTriple

_SAME = rdflib.URIRef(OWL + "sameAs")
_KEY = rdflib.URIRef(OWL + "hasKey")


def infer(triples: Iterable[RdfTriple], reasoner: str) -> tuple[list[RdfTriple], list[str]]:
    """What follows, the given included; and warnings."""
    joined = join_same([triple for triple in triples if triple[1] != _KEY])
    if reasoner == "reasonable":
        try:
            return _by_reasonable(joined), []
        except MemoryError:
            raise
        except BaseException as error:  # a panic of compiled code is no Exception
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            said = [f"reasonable gave up ({error}); owlrl was asked instead"]
            return _by_owlrl(joined), said
    return _by_owlrl(joined), []


def _by_reasonable(triples: list[RdfTriple]) -> list[RdfTriple]:
    import reasonable  # type: ignore[import-untyped]  # noqa: PLC0415  (not everywhere)

    asked = reasonable.PyReasoner()
    asked.from_graph(triples)
    found: list[RdfTriple] = asked.reason()
    return found


def _by_owlrl(triples: list[RdfTriple]) -> list[RdfTriple]:
    import owlrl  # type: ignore[import-untyped]  # noqa: PLC0415  (slow, seldom needed)

    graph = rdflib.Graph(bind_namespaces="none")
    for triple in triples:
        graph.add(triple)
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)
    return list(graph)


def join_same(triples: list[RdfTriple]) -> list[RdfTriple]:
    """The same statements about one representative of each stated clique."""
    parent: dict[Node, Node] = {}

    def find(node: Node) -> Node:
        while parent.get(node, node) != node:
            parent[node] = parent.get(parent[node], parent[node])
            node = parent[node]
        return node

    for s, p, o in triples:
        if p == _SAME and not isinstance(o, rdflib.Literal):
            a, b = find(s), find(o)
            if a != b:
                # Words of the vocabularies stay themselves.
                first, second = (b, a) if is_vocabulary(str(b)) else (a, b)
                parent[second] = first
    if not parent:
        return triples
    return [(find(s), find(p), find(o)) for s, p, o in triples]
