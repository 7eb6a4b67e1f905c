"""Sockets that listen before a loop has them, and what to do when a port is taken.

Law: a socket made here listens, or there is none. uvloop keeps silent about a
``listen`` that fails, which is where the second of two brokers that start together
learns that the port is taken (both may bind it until one listens).
"""

from __future__ import annotations

import errno
import socket

#: Connections the kernel keeps for us while the loop is busy.
BACKLOG = 4096
#: Ports to go to when one is taken; 1969 and 1970 are where a broker is without being told.
_OTHERS = (1971, 1972)


def listening(host: str, port: int) -> socket.socket:
    """A socket on the first address of this host; raises ``OSError``."""
    family, kind, protocol, _, place = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.listen(BACKLOG)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


def hint(error: OSError, port: int) -> str:
    """The way out when a broker's port is taken; empty for other errors."""
    if error.errno != errno.EADDRINUSE:
        return ""
    other = f"ka://127.0.0.1:{next(each for each in _OTHERS if each != port)}"
    return (
        f": another program, perhaps another broker, has this port; say --listen {other}"
        f" (with make: KBN_LISTEN={other} make run) and export KBN_BROKER={other}"
    )


def http_hint(error: OSError) -> str:
    """The same for the port of health and metrics."""
    if error.errno != errno.EADDRINUSE:
        return ""
    return ": another broker on this machine? Say --http 127.0.0.1:PORT, or --http none"
