"""Turtle files shipped with KBN, and the generators that write them.

``path("wine")`` is a file that ``kbn ontology load`` takes; the verbs that want a
file also take the bare names.
"""

from pathlib import Path

#: Name, and the prefix its terms are written with.
NAMES = {"wine": "wine", "nebraska": "geo", "units": "unit", "events": "ev"}


def path(name: str) -> Path:
    """The Turtle file of that name; raises ``KeyError`` for any other name."""
    if name not in NAMES:
        raise KeyError(name)
    return Path(__file__).parent / name / f"{name}.ttl"
