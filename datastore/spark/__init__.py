"""All of history at any size: jobs over the log, in Spark.

The way of a job: ``session`` makes the one session; ``source`` gives the log of any
store as a frame of one schema; ``project`` keeps the attributes that are asked for;
``compile`` turns filters into columns; ``ordered`` reads the log in the order of its
numbers with the same pure ``replay`` that the broker uses; ``joins`` decides temporal
operators without an order, over ``versions`` of events met by ``buckets`` of time. One file per
job. A job is a function from frames to a frame; files, bars and tables are the command line's.
"""

from kbn.errors import UnsupportedError

try:
    import pyarrow as _pyarrow
    import pyspark as _pyspark
except ImportError as missing:  # pragma: no cover - depends on the installation
    raise UnsupportedError(
        "Spark is an extra that is not installed: pip install 'kbn[spark]'"
    ) from missing

__all__: list[str] = []
del _pyarrow, _pyspark
