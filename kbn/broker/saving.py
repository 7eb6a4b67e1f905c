"""Durable sessions are written down before their subscriptions are acknowledged.

Until then the store keeps what comes for the whole session. What could not be written
is taken out again and refused; what a session lost or confirmed meanwhile is written
when time has passed.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from datastore.store import StoredSession, StoredSubscription
from kbn.broker.core import Core
from kbn.broker.instructions import SaveSession
from kbn.broker.links import Link, Target
from kbn.broker.recalling import Recalling
from kbn.broker.stimuli import Saved
from kbn.model.filters import Subscription
from kbn.routing.table import Subscriber


class Remove(Protocol):
    """Takes units of a subscriber out of the table."""

    def __call__(self, subscriber_id: str, asked: Subscription | None = None) -> None: ...


class _Saving(NamedTuple):
    """A SUB of a durable session that is being written down."""

    target: Target
    subscriber: str
    asked: Subscription
    #: Whether taking it out again leaves the table as it was before.
    fresh: bool


def stored_session(target: Target) -> StoredSession:
    """What a store keeps of a durable session."""
    past = {key: owed.since for key, owed in target.past.items()}
    return StoredSession(
        target.name,
        tuple(
            StoredSubscription(
                subscriber.id, unit.asked, since=past.get((subscriber.id, unit.asked))
            )
            for subscriber in target.subscribers.values()
            for unit in subscriber.units
        ),
        confirmed=target.confirmed,
    )


class Saving:
    """The subscriptions that are being written down, by number."""

    def __init__(self, core: Core, recalling: Recalling | None, remove: Remove) -> None:
        self._core = core
        self._recalling = recalling
        self._remove = remove
        self._saving: dict[int, _Saving] = {}
        self._next = 0

    def save(
        self,
        subscriber: Subscriber[Target],
        asked: Subscription,
        link: Link,
        seq: int | None,
        *,
        fresh: bool,
    ) -> None:
        """Write a session down because of a SUB, which is answered when that is done."""
        target = subscriber.target
        self._next += 1
        self._saving[self._next] = _Saving(target, subscriber.id, asked, fresh)
        target.saving += 1
        target.spilling = True
        self._core.instruct(SaveSession(stored_session(target), link.number, seq, self._next))

    def saved(self, stimulus: Saved) -> None:
        """A durable session was written down: answer, and tell what waited for that."""
        core = self._core
        link = core.links.get(stimulus.link)
        target = core.durables.get(stimulus.name)
        if target is not None:
            target.unsaved = stimulus.failure is not None
        saving = self._saving.pop(stimulus.number, None)
        if saving is not None:
            saving.target.saving -= 1
            if stimulus.failure is not None and saving.fresh:
                self._take_out(saving)
        if link is not None and stimulus.failure is None:
            core.acknowledge(link, stimulus.seq)
        elif link is not None and stimulus.seq is not None:
            core.refuse(link, stimulus.seq, "store_unavailable", stimulus.failure or "")
        if saving is not None and self._recalling is not None:
            self._recalling.go_on(saving.target)

    def _take_out(self, saving: _Saving) -> None:
        """It could not be written down: take it out, unless the same was asked once more."""
        for number, other in self._saving.items():
            if (other.subscriber, other.asked) == (saving.subscriber, saving.asked):
                self._saving[number] = other._replace(fresh=True)
                return
        self._remove(saving.subscriber, saving.asked)

    def save_again(self) -> None:
        """Time has passed: write down what could not be written."""
        for target in self._core.durables.values():
            if target.unsaved:
                self._core.instruct(SaveSession(stored_session(target), 0, None))
