"""History in Delta Lake, without a JVM: a SQLite journal that drains into a Delta table.

``schema`` is the log's columns, ``archive`` the table, ``log`` reads from both sides,
``store`` drains from the one to the other exactly once. ``merged`` is the table of merged
events, ``derive`` brings it up to the log, ``halves`` puts STARTs and ENDs together.
"""

from kbn.errors import UnsupportedError

try:
    import deltalake as _deltalake
    import pyarrow as _pyarrow
except ImportError as missing:  # pragma: no cover - depends on the installation
    raise UnsupportedError(
        "a Delta store needs an extra that is not installed: pip install 'kbn[delta]'"
    ) from missing

__all__: list[str] = []
del _deltalake, _pyarrow
