"""Words of the text form: what is reserved, what may stand bare, how operators are spelled."""

from __future__ import annotations

import re

from kbn.errors import UnsupportedError
from kbn.model.operators import (
    Allen,
    BagKind,
    BagOp,
    Content,
    Operator,
    Related,
    Semantic,
    Simple,
)

#: Operators that take one operand and nothing else, by their text.
SIMPLE: dict[str, Content | Semantic] = {
    **{op.text: op for op in Content},
    **{op.text: op for op in Semantic},
    "substring": Content.CONTAINS,
}
BAG_KINDS: dict[str, BagKind] = {kind.text: kind for kind in BagKind}
RELATIONS: dict[str, Allen] = {kind.value: kind for kind in Allen}

#: Words that no attribute, written bare, can have as its name.
RESERVED = frozenset(
    word
    for word in (
        *SIMPLE,
        *BAG_KINDS,
        *("and", "or", "in", "related", "during", "after", "filter", "relation", "last"),
        *("start", "end", "true", "false", "null"),
    )
    if word[0].isalpha()
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$./]*")
_TERM = re.compile(r"[A-Za-z_][\w.-]*:\w(?:[\w.:-]*[\w-])?")


def is_bare_name(name: str) -> bool:
    """Whether an attribute of this name is written without quotes."""
    return _NAME.fullmatch(name) is not None and name not in RESERVED


def is_term(text: str) -> bool:
    """Whether a string may be written bare, as ``prefix:local``."""
    return _TERM.fullmatch(text) is not None


def read_operator(text: str) -> Simple | BagOp:
    """The operator spelled ``<``, ``is_a``, ``related p:x``, ``subbag`` or ``subbag[<]``.

    Raises ``UnsupportedError`` when nothing is spelled so.
    """
    outer, bracket, rest = text.strip().partition("[")
    kind = BAG_KINDS.get(outer.strip())
    if kind is not None:
        if not bracket:
            return BagOp(kind)
        if rest.endswith("]"):
            return BagOp(kind, _read_simple(rest[:-1].strip(), text))
    return _read_simple(text.strip(), text)


def _read_simple(word: str, whole: str) -> Simple:
    if word in SIMPLE:
        return SIMPLE[word]
    head, _, iri = word.partition(" ")
    iri = iri.strip()
    if head == "related" and iri:
        return Related(iri[1:-1] if len(iri) > 1 and iri[0] == iri[-1] == '"' else iri)
    raise UnsupportedError(
        f"no operator is spelled {whole!r}: use {', '.join(SIMPLE)}, related P,"
        f" or {', '.join(BAG_KINDS)} with one of them in brackets"
    )


def takes_terms(op: Operator) -> bool:
    """Whether operands of ``op`` are terms of an ontology, which print bare."""
    if isinstance(op, BagOp):
        return isinstance(op.sub, Semantic | Related)
    return isinstance(op, Semantic | Related)
