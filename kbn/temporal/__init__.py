"""What happened, remembered so that it need not be searched.

The way of a publication: ``events`` says which part of which event it tells and
refuses what is half temporal; ``engine`` is the door the broker calls; ``memory``
has one ``node`` per distinct inner filter and asks all of them through one
predicate index; a node keeps the events of which its filter holds in ``ordered``
and ``spans`` (times) and ``windows`` (FILTER). ``allen`` turns every question
about times into a box. ``backfill`` and ``replay`` feed the same memory from the
log. Pure: no clock, no I/O; what left the memory is asked of an injected ``Past``.

Law: the answers are those of ``kbn.matching.temporal``, the definition.
"""

from kbn.temporal.backfill import Backfill
from kbn.temporal.engine import Admitted, Duplicate, EventSource, TemporalEngine
from kbn.temporal.events import Telling, classify
from kbn.temporal.memory import Limits, inner_hash
from kbn.temporal.replay import Delivery, Replay, replay

__all__ = [
    "Admitted",
    "Backfill",
    "Delivery",
    "Duplicate",
    "EventSource",
    "Limits",
    "Replay",
    "Telling",
    "TemporalEngine",
    "classify",
    "inner_hash",
    "replay",
]
