"""What is enough to know of an event to which nothing can be added any more.

An event is *settled* when no further publication about it can be accepted: it has
its START and its END, or came in one piece. Whatever is said of it again is then
either a duplicate or a conflict, and the parts seen with a fingerprint of each tell
which; nobody has to read the publications again, wherever they have gone.

Law: ``fingerprint`` is equal for the same content (the same names with values of one
type and one spelling, bags in any order), and differs otherwise, but for a chance of
one in 2^64.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from operator import itemgetter
from typing import NamedTuple

from kbn.model.notifications import Notification
from kbn.model.publications import Part
from kbn.model.values import Bag


class Settled(NamedTuple):
    """A settled event: the fingerprint of each publication about it."""

    id: str
    prints: Mapping[Part, int]


def fingerprint(notification: Notification) -> int:
    """A number of 64 bits, with sign, for the content of a publication.

    Stores keep it: another way to make it would take old publications for contradictions.
    """
    # What Python writes for a scalar tells its type and its spelling, -0.0 and NaN included.
    held = [
        (name, sorted(map(repr, value.members)) if isinstance(value, Bag) else value)
        for name, value in sorted(notification.attributes.items(), key=itemgetter(0))
    ]
    return int.from_bytes(sha256(repr(held).encode()).digest()[:8], "big", signed=True)
