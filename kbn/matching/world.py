"""What matching asks of the world outside the notification.

Semantic operators ask the knowledge, temporal ones the history. Both are
injected, so that matching itself stays a pure function of its arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kbn.errors import NoOntologyError, UnsupportedError
from kbn.model.filters import Constraint
from kbn.model.notifications import Notification
from kbn.model.operators import Related, Semantic
from kbn.model.values import Scalar


class Knowledge(Protocol):
    """Decides the semantic operators."""

    def holds(self, op: Semantic | Related, value: Scalar, operand: Scalar) -> bool:
        """Whether ``value op operand`` follows from what is known."""
        ...


@runtime_checkable
class Reasoned(Protocol):
    """Knowledge that can say how it came to its answers."""

    def why(self, op: Semantic | Related, value: Scalar, operand: Scalar) -> str:
        """The path that leads from the value to the operand, or why there is none."""
        ...


@runtime_checkable
class Reaching(Protocol):
    """Knowledge that can list what a value satisfies, instead of being asked one by one.

    Law: ``holds(op, v, c)`` iff ``operand_key(op, c)`` is one of ``operand_keys(op, v)``,
    where that is not None.
    """

    def operand_key(self, op: Semantic | Related, operand: Scalar) -> Hashable | None:
        """What an operand means, whatever its spelling; None: nothing satisfies it."""
        ...

    def operand_keys(self, op: Semantic | Related, value: Scalar) -> Collection[Hashable] | None:
        """The keys of all operands that the value satisfies; None: they are too many to say."""
        ...


class History(Protocol):
    """Decides the temporal operators."""

    def holds(self, constraint: Constraint, notification: Notification) -> bool:
        """Whether the temporal constraint holds for a publication arriving now."""
        ...


class _NoKnowledge:
    def holds(self, op: Semantic | Related, value: Scalar, operand: Scalar) -> bool:
        raise NoOntologyError("related" if isinstance(op, Related) else op.text)


class _NoHistory:
    def holds(self, constraint: Constraint, notification: Notification) -> bool:
        raise UnsupportedError(
            f"'{type(constraint.op).__name__.lower()}' needs a history, and there is none here"
        )


class EmptyHistory:
    """A history in which nothing happened: every temporal operator asks for an event."""

    def holds(self, constraint: Constraint, notification: Notification) -> bool:
        return False


EMPTY_HISTORY = EmptyHistory()
_NO_KNOWLEDGE = _NoKnowledge()
_NO_HISTORY = _NoHistory()


@dataclass(frozen=True, slots=True)
class World:
    """The two oracles. By default each refuses with an error that says so."""

    knowledge: Knowledge = _NO_KNOWLEDGE
    history: History = _NO_HISTORY


NOTHING_KNOWN = World()
