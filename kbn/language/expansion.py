"""``or`` and parentheses become alternatives: the disjunctive normal form.

An expression is held as its alternatives, each a row of items. ``or`` joins the
rows, ``and`` makes every combination, in the order written. More than
``MAX_ALTERNATIVES`` is an error, counted before equal alternatives fall together.
Sizes only grow from the inside out, so the bound is checked before each step and
forty times ``(a or b)`` costs no more than the first seven. The operand of a
temporal operator is counted on its own, since its braces are one item here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import TypeAlias

from kbn.errors import LimitError
from kbn.language.shorthand import Item, expand
from kbn.model import Filter, Subscription
from kbn.model.filters import MAX_ALTERNATIVES

Alternatives: TypeAlias = tuple[tuple[Item, ...], ...]

#: The empty conjunction, which matches everything; in text ``()`` or nothing at all.
EVERYTHING: Alternatives = ((),)


class TooManyError(LimitError):
    """Too many alternatives; ``part`` is the first part that was too much."""

    def __init__(self, part: int) -> None:
        self.part = part
        super().__init__(
            f"more than {MAX_ALTERNATIVES} alternatives once parentheses are expanded,"
            f" at most {MAX_ALTERNATIVES} are allowed",
            limit="max_alternatives",
            allowed=MAX_ALTERNATIVES,
        )


def disjunction(parts: Sequence[Alternatives]) -> Alternatives:
    """The alternatives of ``parts`` joined by ``or``; raises ``TooManyError``."""
    count = 0
    for place, part in enumerate(parts):
        count += len(part)
        if count > MAX_ALTERNATIVES:
            raise TooManyError(place)
    return tuple(row for part in parts for row in part)


def conjunction(parts: Sequence[Alternatives]) -> Alternatives:
    """Every combination of one alternative from each part; raises ``TooManyError``."""
    count = 1
    for place, part in enumerate(parts):
        count *= len(part)
        if count > MAX_ALTERNATIVES:
            raise TooManyError(place)
    return tuple(_joined(rows) for rows in product(*parts))


def _joined(rows: Iterable[tuple[Item, ...]]) -> tuple[Item, ...]:
    return tuple(item for row in rows for item in row)


def to_subscription(alternatives: Alternatives) -> Subscription:
    """The tree, with the shorthand expanded in every alternative by itself."""
    return Subscription(Filter(expand(row)) for row in alternatives)
