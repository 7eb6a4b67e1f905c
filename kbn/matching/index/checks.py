"""Constraints that no structure decides: asked last, once per publication.

A distinct constraint is one ``Check`` in the whole index, however many filters
share it, so the answers of one publication can be remembered by identity. What
an answer means is ``naive``'s business alone.
"""

from __future__ import annotations

from kbn.matching.naive import constraint_holds
from kbn.matching.world import World
from kbn.model.filters import Constraint
from kbn.model.notifications import Notification


class Check:
    """A constraint with the number of filters that refer to it."""

    __slots__ = ("constraint", "users")

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self.users = 0


class Checks:
    """The distinct constraints of an index. Invariant: each has a user."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[Constraint, Check] = {}

    def acquire(self, constraint: Constraint) -> Check:
        """The one check of this constraint, used once more."""
        check = self._held.get(constraint)
        if check is None:
            check = self._held[constraint] = Check(constraint)
        check.users += 1
        return check

    def release(self, check: Check) -> None:
        """Used once less; the last user takes it away."""
        check.users -= 1
        if not check.users:
            del self._held[check.constraint]

    def __len__(self) -> int:
        return len(self._held)


class Probe:
    """One publication being matched, with the answers it already got."""

    __slots__ = ("_answers", "notification", "world")

    def __init__(self, notification: Notification, world: World) -> None:
        self.notification = notification
        self.world = world
        self._answers: dict[Check, bool] = {}

    def holds(self, check: Check) -> bool:
        """Whether the constraint holds, evaluated at most once."""
        answer = self._answers.get(check)
        if answer is None:
            answer = constraint_holds(check.constraint, self.notification, self.world)
            self._answers[check] = answer
        return answer
