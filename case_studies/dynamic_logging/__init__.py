"""Dynamic logging: a log that shows more while something is wrong.

``handler`` publishes the records of any program, ``controller`` asks a broker for them and
changes its mind by a pattern in time. ``script``, ``service``, ``story``, ``verdict`` and
``picture`` are the demonstration: ``python -m case_studies.dynamic_logging``.
"""

from case_studies.dynamic_logging.handler import KbnHandler

__all__ = ["KbnHandler"]
