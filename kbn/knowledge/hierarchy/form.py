"""The byte form of a hierarchy: what a worker sends and a cache keeps.

``KBNH1`` newline, the SHA-256 of the rest, a line of JSON that lists the sections
with their lengths, then the sections. Arrays are little-endian and used as they
are; nothing in it can run. Law: ``from_bytes(to_bytes(h))`` answers as h does.
"""

from __future__ import annotations

import hashlib
import json

from kbn.errors import MalformedError
from kbn.knowledge.hierarchy.names import Prefixes
from kbn.knowledge.hierarchy.pairs import Pairs
from kbn.knowledge.hierarchy.parts import Literal, Reasons, write_reasons
from kbn.knowledge.hierarchy.terms import Hierarchy

#: Changes whenever the bytes, or what they mean, do; part of every cache key.
FORMAT = "KBNH1"
_MAGIC = FORMAT.encode() + b"\n"


def to_bytes(known: Hierarchy) -> bytes:
    reasons = known.raw_reasons
    texts = {
        "iris": "\n".join(known.iris),
        "literals": json.dumps(known.literals, ensure_ascii=False),
        "prefixes": json.dumps(known.prefixes.table, ensure_ascii=False),
    }
    sections = {name: text.encode() for name, text in texts.items()}
    sections["things"] = json.dumps(known.thing_of, separators=(",", ":")).encode()
    sections["kinds"] = known.kinds
    sections["classes"] = known.class_up.to_bytes()
    sections["properties"] = known.property_up.to_bytes()
    sections["types"] = known.types.to_bytes()
    for prop, relation in sorted(known.relations.items()):
        sections[f"r{prop}"] = relation.to_bytes()
    sections["reasons"] = write_reasons(reasons) if isinstance(reasons, Reasons) else reasons
    head = json.dumps([[name, len(data)] for name, data in sections.items()]).encode()
    body = head + b"\n" + b"".join(sections.values())
    return _MAGIC + hashlib.sha256(body).digest() + body


def from_bytes(data: bytes) -> Hierarchy:
    """Raises ``MalformedError`` for anything that ``to_bytes`` did not write."""
    start = len(_MAGIC) + 32
    body = memoryview(data)[start:]
    if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != data[start - 32 : start]:
        raise MalformedError("this is no hierarchy of this version, or it is damaged")
    end = data.index(b"\n", start)
    sections: dict[str, memoryview] = {}
    at = end + 1 - start
    for name, length in json.loads(data[start:end]):
        sections[name] = body[at : at + length]
        at += length
    iris = str(sections["iris"], "utf-8")
    return Hierarchy(
        iris=iris.split("\n") if iris else (),
        thing_of=json.loads(bytes(sections["things"])),
        kinds=bytes(sections["kinds"]),
        class_up=Pairs.from_bytes(sections["classes"]),
        property_up=Pairs.from_bytes(sections["properties"]),
        types=Pairs.from_bytes(sections["types"]),
        relations={
            int(name[1:]): Pairs.from_bytes(held)
            for name, held in sections.items()
            if name[1:].isdigit()
        },
        literals=[Literal(*held) for held in json.loads(bytes(sections["literals"]))],
        prefixes=Prefixes(json.loads(bytes(sections["prefixes"]))),
        reasons=bytes(sections["reasons"]),
    )
