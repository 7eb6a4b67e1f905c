"""The nouns: values, notifications, operators, filters. Frozen, hashable, picklable.

This package knows nobody: it imports only ``kbn.errors``. Everything that is
matched, covered, encoded, stored or printed is made of what lives here.
"""

from kbn.model.events import MergedEvent
from kbn.model.filters import Constraint, Filter, Subscription
from kbn.model.notifications import Notification
from kbn.model.publications import Decision, LogEntry, Part
from kbn.model.values import Bag, Scalar, Value

__all__ = [
    "Bag",
    "Constraint",
    "Decision",
    "Filter",
    "LogEntry",
    "MergedEvent",
    "Notification",
    "Part",
    "Scalar",
    "Subscription",
    "Value",
]
