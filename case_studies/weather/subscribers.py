"""Who asks what: figure 7.5, for three towns around Hamilton County.

A storm that comes to Hamilton from the west goes on to York (path A), one that comes
from the north goes on to Geneva (path B). Aurora lies in Hamilton and wants to know of
both. The directions are asked of the ontology, not listed.
"""

from __future__ import annotations

HERE = "geo:HamiltonCountyNE"


def arriving_from(direction: str, here: str = HERE) -> str:
    """Warnings here that start during one in a county that lies in that direction."""
    warning = 'noaa_msg_severity = "warning"'
    return (
        f"{warning} and noaa_county superbag[equivalent] [{here}] and start during "
        f"{{ {warning} and noaa_county superbag[related geo:{direction}] [{here}] }}"
    )


def in_lines(subscription: str) -> str:
    """The same for people to read: indented, what holds of the other warning below it."""
    return "  " + (
        subscription.replace(" or ", "\n  or ")
        .replace(" and start during", "\n    and start during")
        .replace(" and noaa_county superbag[related", "\n      and noaa_county superbag[related")
    )


YORK = arriving_from("isWestOf")
GENEVA = arriving_from("isNorthOf")
AURORA = f"{YORK} or {GENEVA}"

#: By town.
ASKED = {"York": YORK, "Geneva": GENEVA, "Aurora": AURORA}

#: What York might ask instead: the storm may come from any side.
LOOSER = arriving_from("isNeighbourOf")

#: The same in a few words, for people.
WISHES = {
    "York": "a warning in Hamilton, during one west of it",
    "Geneva": "a warning in Hamilton, during one north of it",
    "Aurora": "either of the two",
}
