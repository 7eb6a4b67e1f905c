"""Temporal constraints: a question to the history against another.

Law, for one reference attribute and inner subscriptions F and G:

- ``during {F}`` covers ``during {G}`` if F covers G;
- ``after(L) {F}`` covers ``after(M) {G}`` if F covers G and L >= M;
- ``relation(r ±t) {F}`` covers ``relation(r ±u) {G}`` if F covers G and t >= u:
  a tolerance relaxes each comparison alone, so a larger one only admits more;
- ``filter(op, last L) {F}`` covers ``filter(op, last M) {G}`` if F and G are
  *equivalent* and L >= M. A wider F would fill the window with other events and
  push out the one that G finds.

Sound because all four ask for *some* stored event, and every event that G finds
is found by F under the same history.
"""

from __future__ import annotations

from collections.abc import Callable

from kbn.model.filters import Constraint, Subscription
from kbn.model.operators import After, During, Relation, Window

Covers = Callable[[Subscription, Subscription], bool]


def temporal_covers(f: Constraint, g: Constraint, covers: Covers) -> bool:
    """Whether ``f`` follows from ``g``, two temporal constraints on one name."""
    inner_f, inner_g = f.inner, g.inner
    if inner_f is None or inner_g is None:
        return False
    wider, narrower = f.op, g.op
    if isinstance(wider, During):
        return isinstance(narrower, During) and covers(inner_f, inner_g)
    if isinstance(wider, After):
        return (
            isinstance(narrower, After)
            and wider.limit >= narrower.limit
            and covers(inner_f, inner_g)
        )
    if isinstance(wider, Relation):
        return (
            isinstance(narrower, Relation)
            and wider.kind is narrower.kind
            and wider.tolerance >= narrower.tolerance
            and covers(inner_f, inner_g)
        )
    return (
        isinstance(wider, Window)
        and isinstance(narrower, Window)
        and wider.op == narrower.op
        and wider.limit >= narrower.limit
        and (inner_f == inner_g or (covers(inner_f, inner_g) and covers(inner_g, inner_f)))
    )
