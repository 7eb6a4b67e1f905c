"""Child brokers that remember an event: they are told every publication about it.

At the first match of the merged event its earlier publication goes first; from then on
each later one follows, also one that no longer matches. What is told for remembering
alone says ``history``, and a broker that is told anyway is not told twice.
"""

from __future__ import annotations

from typing import NamedTuple

from kbn.broker.core import Core
from kbn.broker.delivering import Delivering, Publication, Receivers
from kbn.broker.links import Target
from kbn.broker.remembering import part_uid
from kbn.model.notifications import Notification
from kbn.model.publications import Part
from kbn.model.time import PUB_ID
from kbn.routing.table import Subscriber
from kbn.temporal.engine import Admitted
from senp import encode_event


class Follower(NamedTuple):
    """A target that keeps the history of an event for its own subscribers."""

    target: Target
    receivers: list[Subscriber[Target]]
    #: The event's other publication, which did not concern it until now.
    earlier: Notification | None
    part: Part = Part.START


class Following:
    """Finds the followers of a publication and tells them."""

    def __init__(self, core: Core, delivering: Delivering) -> None:
        self._core = core
        self._delivering = delivering

    def followers(self, admitted: Admitted) -> tuple[Follower, ...]:
        """Who remembers the event: whoever its merged form matches, or matched before."""
        table, known = self._core.table, admitted.known
        if not table.histories:
            return ()
        now = table.match_history(admitted.event.notification, self._core.world)
        before = set(
            () if known is None else table.match_history(known.notification, self._core.world)
        )
        found: dict[Target, Follower] = {}
        for unit in {*now, *before}:
            subscriber = unit.subscriber
            target = subscriber.target
            follower = found.get(target)
            if follower is None:
                earlier = None
                if known is not None:
                    earlier = known.closed if known.opened is None else known.opened
                part = Part.START if known is None or known.opened is not None else Part.END
                follower = found[target] = Follower(target, [], earlier, part)
            if subscriber not in follower.receivers:
                follower.receivers.append(subscriber)
            if unit in before and follower.earlier is not None:
                found[target] = follower._replace(earlier=None)
        return tuple(found.values())

    def tell(self, publication: Publication, follower: Follower, receivers: Receivers) -> None:
        """Tell a child broker of an event it remembers; once, also if it is told anyway."""
        target, mine, earlier, part = follower
        mine = [receiver for receiver in mine if receiver.units]
        if not mine:
            return
        if earlier is not None:
            before = publication._replace(
                notification=earlier,
                body=encode_event(earlier),
                uid=part_uid(str(earlier[PUB_ID]), part),
                history=True,
            )
            self._delivering.deliver(before, target, mine)
        if target is publication.origin.target:
            return  # it told us; only the other part, from elsewhere, is news to it
        if target in receivers:
            receivers[target].extend(mine)
        else:
            self._delivering.deliver(publication._replace(history=True), target, mine)
