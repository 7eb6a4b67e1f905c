"""Files are looked at before a parser touches them: what expands or points elsewhere.

XML may define entities (the W3C's own ontologies do), but only short ones of its
own; JSON-LD may have a context, but only its own. Nothing is ever fetched.
"""

from __future__ import annotations

import json
import re
from xml.parsers import expat

from kbn.errors import LimitError, MalformedError, UnsupportedError

#: The longest text one entity may stand for, and all of them together.
MOST_ENTITY = 4096
MOST_EXPANDED = 64 * 2**20
#: Statements of sameAs in one file; a reasoner may write down every pair of them.
MOST_SAME = 100_000
_REFERENCE = re.compile(r"&([^;#\s]+);")


class _RootReached(Exception):  # noqa: N818
    """The prologue is over."""


def screen(data: bytes, format: str) -> None:
    """Raises ``UnsupportedError``, ``LimitError`` or ``MalformedError`` for what is refused."""
    if data.count(b"sameAs") > MOST_SAME:
        raise LimitError(
            f"more than {MOST_SAME:,} statements of owl:sameAs",
            limit="max_same",
            allowed=MOST_SAME,
        )
    if format == "xml":
        _screen_xml(data)
    elif format == "json-ld":
        _screen_json(data)


def _screen_xml(data: bytes) -> None:
    entities: dict[str, str] = {}

    def declared(name: str, is_parameter: bool, value: str | None, *elsewhere: object) -> None:
        if is_parameter or value is None:
            raise UnsupportedError(
                f"the XML entity '{name}' is a parameter or lies elsewhere; nothing is fetched"
            )
        entities.setdefault(name, value)

    def root(name: str, attributes: dict[str, str]) -> None:
        raise _RootReached

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = declared
    parser.StartElementHandler = root
    try:
        parser.Parse(data, True)
    except _RootReached:
        pass
    except (expat.ExpatError, RecursionError) as error:
        raise MalformedError(f"no XML: {error}") from None
    lengths: dict[str, int] = {}
    longest = max((_expanded(name, entities, lengths) for name in entities), default=0)
    if longest * data.count(b"&") > MOST_EXPANDED:
        raise LimitError(
            f"XML entities expand to more than {MOST_EXPANDED:,} characters",
            limit="max_entities",
            allowed=MOST_EXPANDED,
        )


def _expanded(name: str, entities: dict[str, str], lengths: dict[str, int]) -> int:
    """How long an entity becomes. Each is measured once; one within itself is endless."""
    if name not in lengths:
        lengths[name] = MOST_ENTITY + 1
        value = entities.get(name, "")
        length = len(value)
        for inner in _REFERENCE.findall(value):
            if length <= MOST_ENTITY:
                length += _expanded(inner, entities, lengths)
        lengths[name] = length
    if lengths[name] > MOST_ENTITY:
        raise LimitError(
            f"the XML entity '{name}' expands to more than {MOST_ENTITY} characters",
            limit="max_entity",
            allowed=MOST_ENTITY,
        )
    return lengths[name]


def _screen_json(data: bytes) -> None:
    try:
        waiting: list[object] = [json.loads(data)]
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"no JSON: {error}") from None
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            held = node.get("@context")
            for context in held if isinstance(held, list) else [held]:
                if isinstance(context, str):
                    raise UnsupportedError(
                        f"the JSON-LD context <{context}> lies elsewhere; nothing is fetched:"
                        " write it into the file"
                    )
            if "@import" in node:
                raise UnsupportedError(
                    f"JSON-LD imports <{node['@import']}>, and nothing is fetched"
                )
            waiting.extend(node.values())
