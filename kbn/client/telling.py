"""Publications about events that last: START, END and INSTANT, with their four attributes.

A publication is matched as it was published, so an END repeats what its START
said; what is given beside it wins.
"""

from __future__ import annotations

from collections.abc import Mapping

from kbn.client.events import Plain, Publishable, as_notification
from kbn.errors import RefusedError
from kbn.model import Bag, Notification, Value
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME

#: The attributes that these functions set themselves.
OWN = (PUB_ID, PUB_TYPE, START_TIME, END_TIME)
START, END = Bag(["START"]), Bag(["END"])
INSTANT = Bag(["START", "END", "INSTANT"])


def said(event: Publishable | None, attributes: Mapping[str, Plain]) -> Notification:
    """What is told of an event beside its times; ``RefusedError`` if it states those itself."""
    notification = as_notification(event, attributes)
    for name in OWN:
        if name in notification:
            raise RefusedError(
                "temporal_conflict", f"{name} is set here: give the id and the time apart from it"
            )
    return notification


def without_times(notification: Notification) -> Notification:
    """What a publication says beside its id, its part and its times."""
    return Notification.trusted(
        {name: value for name, value in notification.items() if name not in OWN}
    )


def started(told: Notification, event_id: str, at: int) -> Notification:
    """The START of an event."""
    return _with(told, {PUB_ID: event_id, PUB_TYPE: START, START_TIME: at})


def ended(told: Notification, event_id: str, at: int) -> Notification:
    """Its END."""
    return _with(told, {PUB_ID: event_id, PUB_TYPE: END, END_TIME: at})


def instant(told: Notification, event_id: str, at: int) -> Notification:
    """An event that starts and ends in one moment."""
    return _with(told, {PUB_ID: event_id, PUB_TYPE: INSTANT, START_TIME: at, END_TIME: at})


def _with(told: Notification, times: dict[str, Value]) -> Notification:
    return Notification({**told.attributes, **times})
