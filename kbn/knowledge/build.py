"""A hierarchy for a request: from the cache, else from a worker process.

Importing this imports no rdflib, and neither does an answer from the cache. The
caller waits (a broker calls it in a thread: the thread only waits for a pipe).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import kbn
from kbn.errors import KbnError, LimitError, MalformedError, OntologyError, UnsupportedError
from kbn.knowledge.cache import Cache
from kbn.knowledge.hierarchy import Hierarchy, from_bytes
from kbn.knowledge.hierarchy.form import FORMAT
from kbn.knowledge.request import Request
from kbn.knowledge.sending import encode

#: Beside the time a build may take: starting the process, sending the result.
_GRACE = 10
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from kbn.knowledge.worker import main; main()"
)


class Built(NamedTuple):
    """A hierarchy with what a person should hear about it."""

    hierarchy: Hierarchy
    warnings: tuple[str, ...]
    triples: int
    cached: bool


def obtain(request: Request, cache: Cache | None = None) -> Built:
    """Raises ``OntologyError``, ``LimitError`` or ``UnsupportedError``.

    A file that cannot be read is not remembered as such; a result is.
    """
    key = request.key() if cache is not None else ""
    if cache is not None:
        held = cache.get(key)
        if held is not None:
            try:
                return _read(held, cached=True)
            except (MalformedError, ValueError, KeyError):
                cache.forget(key)
    data = run_worker(request)
    built = _read(data, cached=False)
    if cache is not None:
        cache.put(key, data)
    return built


def run_worker(request: Request) -> bytes:
    """One worker, one request, one answer."""
    limits = request.limits
    root = str(Path(kbn.__file__).parent.parent)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _START, root],
            input=encode(request),
            capture_output=True,
            check=False,
            timeout=limits.seconds + _GRACE,
        )
    except subprocess.TimeoutExpired:
        raise _too_long(request) from None
    if done.returncode == 0 and done.stdout:
        return done.stdout
    said = done.stderr.decode(errors="replace")
    if "SIGXCPU" in said or done.returncode == -24:
        raise _too_long(request)
    if done.returncode < 0 or "memory" in said.lower():
        raise LimitError(
            f"reasoning over {_names(request)} needs more than"
            f" {limits.memory_bytes // 2**20:,} MiB, or crashed",
            limit="memory",
            allowed=limits.memory_bytes,
        )
    last = said.strip().splitlines()[-1:] or ["no reason given"]
    raise OntologyError(f"the worker failed: {last[0]}", source=_names(request))


def _too_long(request: Request) -> LimitError:
    most = request.limits.seconds
    return LimitError(
        f"reasoning over {_names(request)} takes longer than {most} s",
        limit="seconds",
        allowed=most,
    )


def _names(request: Request) -> str:
    return ", ".join(source.name for source in request.sources)


def _read(data: bytes, *, cached: bool) -> Built:
    line, _, rest = data.partition(b"\n")
    head = json.loads(line)
    if "error" in head:
        raise _raised(head)
    if not rest.startswith(FORMAT.encode()):
        raise MalformedError("this is no answer of a worker")
    return Built(from_bytes(rest), tuple(head["warnings"]), head["triples"], cached)


def _raised(head: dict[str, object]) -> KbnError:
    message = str(head["message"])
    if head["error"] == "limit":
        allowed = head["allowed"]
        assert isinstance(allowed, int)
        return LimitError(message, limit=str(head["limit"]), allowed=allowed)
    if head["error"] == "unsupported":
        return UnsupportedError(message)
    source, _, problem = message.partition(": ")
    return OntologyError(problem, source=source) if problem else MalformedError(message)
