"""What a verb needs to know for the filters it was given, from ``--ontology`` or the data dir."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbn.cli.ontology import known_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import TypedDict

    from kbn.knowledge.hierarchy import Hierarchy
    from kbn.knowledge.spelling import Spellings
    from kbn.model import Subscription

    class Known(TypedDict):
        """How the answers about terms are handed to a store or a job."""

        knowledge: Hierarchy | None
        spelling: Spellings | None


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
