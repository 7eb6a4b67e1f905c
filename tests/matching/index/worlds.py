"""Stub oracles: arbitrary, the same for the same question, and counting."""

from __future__ import annotations

from collections import Counter
from zlib import crc32

from kbn.matching.world import World
from kbn.model import Constraint, Notification
from kbn.model.operators import Related, Semantic
from kbn.model.values import Scalar


def _one_in_three(question: object) -> bool:
    # Python's own hash of a string changes from run to run.
    return crc32(repr(question).encode()) % 3 == 0


class StubKnowledge:
    """Answers every semantic question without any sense, but always alike."""

    def __init__(self, salt: int = 0) -> None:
        self.salt = salt
        self.asked: Counter[object] = Counter()

    def holds(self, op: Semantic | Related, value: Scalar, operand: Scalar) -> bool:
        self.asked[repr((op, value, operand))] += 1
        return _one_in_three((self.salt, op, value, operand))


class StubHistory:
    """Answers every temporal question without any sense, but always alike."""

    def __init__(self) -> None:
        self.asked: Counter[Constraint] = Counter()

    def holds(self, constraint: Constraint, notification: Notification) -> bool:
        self.asked[constraint] += 1
        return _one_in_three((constraint, notification))


def stub_world(salt: int = 0) -> World:
    return World(StubKnowledge(salt), StubHistory())
