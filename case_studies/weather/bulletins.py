"""Watches and warnings: what the prediction centre and the spotters publish (figure 7.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from case_studies.weather.places import STATE, County
from kbn.client.events import Plain

TYPES = ("tstorm", "tornado", "flood")
WATCH, WARNING = "watch", "warning"
START, END = "START", "END"


@dataclass(frozen=True, slots=True)
class Alert:
    """A watch or a warning for some counties; ``id`` ties its START and END together."""

    id: str
    type: str
    severity: str
    counties: tuple[County, ...]
    #: Who says so; not one of the source's attributes, and nobody need ask for it.
    source: str

    def __str__(self) -> str:
        names = [county.name for county in self.counties]
        where = ", ".join(names) if len(names) <= 3 else f"{len(names)} counties"
        return f"{self.type} {self.severity}, {where}"


@dataclass(frozen=True, slots=True)
class Bulletin:
    """The START or the END of an alert, at a moment in milliseconds since 1970."""

    at: int
    part: str
    alert: Alert

    @property
    def event(self) -> dict[str, Plain]:
        """As it is published. An END repeats what its START said, so that it is matched alike."""
        alert = self.alert
        return {
            "noaa_msg_type": alert.type,
            "noaa_msg_severity": alert.severity,
            "noaa_state": [STATE],
            "noaa_county": [county.term for county in alert.counties],
            "noaa_source": alert.source,
            "PUB_ID": alert.id,
            "KBN_PUB_TYPE": [self.part],
            f"KBN_{self.part}_TIME": self.at,
        }


def in_order(bulletins: Iterable[Bulletin]) -> list[Bulletin]:
    """By time; what starts at a moment is said before what ends at it."""
    return sorted(bulletins, key=lambda b: (b.at, b.part == END))
