"""Dynamic logging: a log that shows more while something is wrong.

``handler`` publishes the records of any program, ``controller`` asks a broker for them and
changes its mind by a pattern in time; ``watch`` is that as an operator's screen, ``following``
turns up the level of a program itself. ``script``, ``service``, ``story``, ``verdict`` and
``picture`` are the demonstration: ``python -m case_studies.dynamic_logging``.
"""

from case_studies.dynamic_logging.following import follow
from case_studies.dynamic_logging.handler import KbnHandler

__all__ = ["KbnHandler", "follow"]
