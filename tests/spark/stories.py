"""Random histories with subscriptions, what a broker delivers of them, and frames of them."""

from __future__ import annotations

import random

from datastore.delta.schema import to_columns
from datastore.spark.source import History
from kbn.errors import RefusedError
from kbn.matching.index import PredicateIndex
from kbn.matching.world import World
from kbn.temporal import Admitted, TemporalEngine
from tests.temporal.rig import KNOWLEDGE
from tests.temporal.sweep import _publication, _subscription


def subscriptions(seed, count=20):
    """Of one to three levels; every fourth has no temporal operator."""
    draw = random.Random(f"subscriptions {seed}")
    return [
        _subscription(draw, number % 4, certain=bool(number % 4)) for number in range(count)
    ]  # fmt: skip


def published(seed, length=60):
    draw = random.Random(f"publications {seed}")
    return [_publication(draw, now) for now in range(length)]


def lived(told, asked):
    """What a broker does with publications: its log, and (seq, key) of what it delivers."""
    engine = TemporalEngine(knowledge=KNOWLEDGE)
    index = PredicateIndex()
    for key, one in enumerate(asked):
        engine.acquire(one)
        index.add(key, one)
    log, delivered = [], set()
    for number, (notification, at) in enumerate(told):
        try:
            admitted = engine.admit(notification, f"#{number}", at, 1000 + number * 10)
        except RefusedError:
            continue
        if isinstance(admitted, Admitted):
            world = World(KNOWLEDGE, engine.history(admitted))
            keys = index.match(notification, world)
            entry, _ = engine.apply(engine.seq + 1 + number % 3, admitted)
            delivered |= {(entry.seq, key) for key in keys}
            log.append(entry)
    return log, delivered


def framed(spark, entries, promoted=None):
    """A log as a frame, without a store; ``promoted`` numbers names with flat columns."""
    held = promoted or {}
    frame = spark.createDataFrame(to_columns(entries, held))
    newest = max((entry.arrived for entry in entries), default=None)
    last = entries[-1].seq if entries else 0
    return History(frame, last, newest, promoted=held, flat=frozenset(held))
