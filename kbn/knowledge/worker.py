"""The process that parses and reasons, so that a bad file harms nobody else.

Reads one request from standard input, writes one answer to standard output: a line
of JSON, then the hierarchy's bytes. Before it looks at any file it gives up the
network and other processes for good (an audit hook cannot be removed), and takes
limits on memory and time. Whoever started it watches the clock as well.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from contextlib import suppress

from kbn.errors import KbnError, LimitError
from kbn.knowledge.assembly import assemble
from kbn.knowledge.hierarchy import to_bytes
from kbn.knowledge.request import Limits, Request
from kbn.knowledge.sending import decode

_FORBIDDEN = (
    *("socket.", "urllib.", "http.client.", "ftplib.", "subprocess.", "pty."),
    *("os.exec", "os.fork", "os.system", "os.posix_spawn", "os.spawn"),
)
#: Harmless, and needed by imports.
_ALLOWED = ("socket.gethostname",)


def forbid_network() -> None:
    """From here on this process opens no connection and starts no other."""

    def hook(event: str, arguments: object) -> None:
        if event.startswith(_FORBIDDEN) and event not in _ALLOWED:
            raise PermissionError(f"an ontology is read without {event}: nothing is fetched")

    sys.addaudithook(hook)


def limit(limits: Limits) -> None:
    """Memory and processor time, where the platform knows such limits."""
    try:
        import resource  # noqa: PLC0415  (not on every platform)
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def answer(request: Request) -> bytes:
    """The result, or the error that a person should read."""
    try:
        made = assemble(request)
        told = {"warnings": made.warnings, "triples": made.triples}
        return json.dumps(told).encode() + b"\n" + to_bytes(made.hierarchy)
    except MemoryError:
        most = request.limits.memory_bytes
        error: KbnError = LimitError(
            f"reasoning needs more than {most // 2**20:,} MiB", limit="memory", allowed=most
        )
    except RecursionError:
        error = LimitError("nested too deeply", limit="max_nesting", allowed=1000)
    except KbnError as raised:
        error = raised
    told = {"error": error.code, "message": str(error)}
    if isinstance(error, LimitError):
        told |= {"limit": error.limit, "allowed": error.allowed}
    return json.dumps(told).encode() + b"\n"


def main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints goes to standard error
    logging.disable()
    warnings.simplefilter("ignore")
    with suppress(OSError, AttributeError):
        os.nice(10)  # whoever serves events goes first
    request = decode(sys.stdin.buffer)
    limit(request.limits)
    forbid_network()
    with out:
        out.write(answer(request))
    out.close()
    # Freeing millions of small objects one by one takes as long as making them.
    os._exit(0)


if __name__ == "__main__":
    main()
