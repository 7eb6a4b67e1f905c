"""KBN: a knowledge-based publish/subscribe broker with a temporal memory.

Importing this package is cheap on purpose: a command-line verb and a Spark
worker pay only for what they use, so what is re-exported (``__init__.pyi`` lists
it with its types) is loaded when it is first asked for.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "kbn.client.aio": "connect Client",
    "kbn.client.events": "Delivery",
    "kbn.client.handle": "EventHandle",
    "kbn.client.stream": "Stream",
    "kbn.client.sync": "connect_sync SyncClient SyncStream",
    "kbn.errors": "KbnError RefusedError UnreachableError ClosedError",
    "kbn.language": "attr start end relation everything",
    "kbn.model": "Bag Notification Subscription",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
