"""How a request travels to the worker: a line of JSON, then the bytes of the files."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import BinaryIO

from kbn.knowledge.request import Limits, Request, Source


def encode(request: Request) -> bytes:
    """What the worker reads: a line of JSON, then the bytes of the files."""
    head = {
        "sources": [(s.name, len(s.data), s.format, s.skos) for s in request.sources],
        "prefixes": request.prefixes,
        "catalogue": request.catalogue,
        "reasoner": request.chosen_reasoner(),
        "limits": asdict(request.limits),
    }
    return json.dumps(head).encode() + b"\n" + b"".join(s.data for s in request.sources)


def decode(stream: BinaryIO) -> Request:
    """The request that ``encode`` wrote."""
    head = json.loads(stream.readline())
    sources = [
        Source(name, stream.read(size), form, skos) for name, size, form, skos in head["sources"]
    ]
    return Request(
        tuple(sources),
        tuple((prefix, space) for prefix, space in head["prefixes"]),
        tuple((iri, path) for iri, path in head["catalogue"]),
        head["reasoner"],
        Limits(**head["limits"]),
    )
