"""``start`` and ``end``: what they stand for, and when the printer may say them.

``start OP …`` stands for ``KBN_PUB_TYPE superbag ["START"]`` and
``KBN_START_TIME OP …``; the type constraint, the *marker*, stands directly before
the first use, once per filter and kind, and is not added when it already stands
earlier in that filter. The syntax tree holds the expanded form only.

Law: ``expand(fold(constraints)) == constraints``. ``fold`` checks it on what it
is about to return, so a filter that only resembles the shorthand prints in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kbn.model import Bag, Constraint
from kbn.model.operators import BagKind, BagOp
from kbn.model.time import END_TIME, PUB_TYPE, START_TIME

#: The shorthand's word, by the time attribute it stands for.
WORD_OF = {START_TIME: "start", END_TIME: "end"}
TIME_OF = {word: time for time, word in WORD_OF.items()}

MARKERS = {
    word: Constraint(PUB_TYPE, BagOp(BagKind.SUPERBAG), Bag([word.upper()])) for word in TIME_OF
}


class Item(NamedTuple):
    """A constraint as it is written: ``word`` is ``start`` or ``end`` when that is how."""

    constraint: Constraint
    word: str | None = None


def expand(items: Iterable[Item]) -> tuple[Constraint, ...]:
    """The constraints that the items stand for, markers put in where they belong."""
    held: list[Constraint] = []
    marked: set[str] = set()
    for constraint, word in items:
        if word is not None and word not in marked:
            marker = MARKERS[word]
            if marker not in held:
                held.append(marker)
            marked.add(word)
        held.append(constraint)
    return tuple(held)


def fold(constraints: Sequence[Constraint]) -> tuple[Item, ...]:
    """The shortest way to write the constraints; plain items where nothing folds."""
    items: list[Item] = []
    marked: set[str] = set()
    for place, constraint in enumerate(constraints):
        word = _marker_word(constraint)
        if word is not None and word not in marked:
            marked.add(word)
            after = constraints[place + 1 : place + 2]
            if after and WORD_OF.get(after[0].name) == word:
                continue
        time_word = WORD_OF.get(constraint.name)
        items.append(Item(constraint, time_word if time_word in marked else None))
    if expand(items) == tuple(constraints):
        return tuple(items)
    return tuple(Item(constraint) for constraint in constraints)


def _marker_word(constraint: Constraint) -> str | None:
    if constraint.name != PUB_TYPE:
        return None
    return next((word for word, marker in MARKERS.items() if marker == constraint), None)


def asks_start_and_end(constraints: Sequence[Constraint]) -> bool:
    """Whether one filter asks for a start and an end at once: only an instant is both."""
    return all(marker in constraints for marker in MARKERS.values())
