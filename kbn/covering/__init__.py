"""Which subscriptions make others superfluous?

One relation, one law: ``covers(F, G)`` promises that every notification (and
history) that matches G matches F. ``filters`` puts the families together, one
file per operator family mirrors ``matching``, ``region`` holds what the
constraints on one name leave possible, and ``canonical`` is the form in which
the subscription table keeps what it was given. Pure; asks nobody but the model,
``matching`` and, for semantic constraints, an injected ``TermOrder``.
"""

from kbn.covering.canonical import canonical
from kbn.covering.filters import contradictory, covers, filter_covers
from kbn.covering.semantic import TermOrder

__all__ = ["TermOrder", "canonical", "contradictory", "covers", "filter_covers"]
