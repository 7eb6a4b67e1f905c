"""The whole way from files to a hierarchy, in this process: load, reason, close, build.

Runs inside a worker (see ``build``); tests may call it directly.
"""

from __future__ import annotations

from typing import NamedTuple

from kbn.knowledge.builder import build
from kbn.knowledge.closure import Closure
from kbn.knowledge.consistency import contradictions
from kbn.knowledge.hierarchy import Hierarchy
from kbn.knowledge.hierarchy.names import Prefixes, settle
from kbn.knowledge.loader import load, neutral
from kbn.knowledge.reason import infer
from kbn.knowledge.request import Request


class Assembled(NamedTuple):
    """The hierarchy, and what a person should hear about its making.

    ``unheard`` counts what the reasoner found beyond our own rules.
    """

    hierarchy: Hierarchy
    warnings: list[str]
    triples: int
    unheard: int


def assemble(request: Request, *, reasoner: str | None = None) -> Assembled:
    """Raises as ``load`` and ``Closure`` do. ``reasoner`` may be ``none``, for tests."""
    loaded = load(request)
    table, warnings = settle(dict(request.prefixes), loaded.declared)
    prefixes = Prefixes(table)
    limits = request.limits
    stated = [neutral(triple) for triple in loaded.triples]
    closed = Closure(stated, most=limits.max_closure, max_list=limits.max_list)
    closed.run()
    news = 0
    chosen = reasoner or request.chosen_reasoner()
    if chosen != "none":
        found, said = infer(loaded.triples, chosen)
        warnings += said
        news = closed.hear(map(neutral, found))
        if news:
            closed.run()
    warnings = [*loaded.warnings, *warnings, *contradictions(closed, prefixes)]
    return Assembled(build(closed, prefixes, loaded.labels), warnings, len(stated), news)
