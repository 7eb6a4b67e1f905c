"""The story as a picture: every record on the lane of its level, and the level that lets it by."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence

from case_studies import svg
from case_studies.dynamic_logging import verdict
from case_studies.dynamic_logging.controller import Changed
from case_studies.dynamic_logging.handler import DEBUG, ERROR, INFO, NAMES, WARNING
from kbn.model import LogEntry

#: Where a moment lies across.
Scale = Callable[[int], float]
WIDTH, HEIGHT = 1120, 455
LEFT, RIGHT, TOP, LANE = 110, 30, 150, 70
#: How far up the words of a change may stand, and how wide a letter of them is at most. The
#: upper first: a later line then begins below the words before it.
HEIGHTS, LETTER = (17.0, 0.0), 7.5
LANES = (ERROR, WARNING, INFO, DEBUG)
COLOURS = {ERROR: "#b3261e", WARNING: "#d97706", INFO: "#2563a8", DEBUG: "#7a8794"}
STYLE = """
.paper{fill:#fbfaf6} .lane{stroke:#ded9cc;stroke-width:1} .name{font-size:13px;font-weight:600}
.h1{font-size:22px;font-weight:700;fill:#22303c} .h2{font-size:13.5px;fill:#5a6773}
.row{font-size:11.5px;font-weight:700;fill:#d97706} .axis{font-size:11px;fill:#7a8794} .open{fill:#dcebd9;opacity:.75} .edge{stroke:#3f7d3a;stroke-width:2.5;fill:none}
.note{font-size:12.5px;font-weight:600;fill:#2f5f2b} .lead{stroke:#3f7d3a;stroke-width:1;stroke-dasharray:3 3}
"""  # noqa: E501


def draw(
    log: Sequence[LogEntry], shown: Collection[str], changes: Sequence[Changed], begun: int
) -> str:
    """``shown`` are the ids of records that the operator saw; times from ``begun``."""
    records = [entry for entry in log if "log_level" in entry.notification]
    end = max([begun, *map(_moment, records), *(change.at for change in changes)]) + 1500
    scale = (WIDTH - LEFT - RIGHT) / max(end - begun, 1)

    def x(moment: int) -> float:
        return LEFT + (moment - begun) * scale

    parts = [
        svg.element("rect", class_="paper", width=WIDTH, height=HEIGHT),
        svg.text("The log that turns itself up", LEFT, 42, class_="h1"),
        svg.text(
            "Every dot is a record; the filled ones reached the operator, who asks for the green "
            "area. Of failed logins in a row the first three are numbered.",
            LEFT, 66, class_="h2",
        ),
    ]  # fmt: skip
    parts += _window(changes, x, begun, end)
    for lane, level in enumerate(LANES):
        y = TOP + lane * LANE
        parts.append(svg.element("line", class_="lane", x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y))
        parts.append(
            svg.text(NAMES[level], LEFT - 14, y + 4, class_="name", text_anchor="end",
                     fill=COLOURS[level])
        )  # fmt: skip
    parts += [_dot(entry, x, shown) for entry in records]
    parts += [
        # Left of the line that the third one draws.
        svg.text(str(row), x(now) - 4, TOP + LANE - 12, class_="row", text_anchor="end")
        for now, row in verdict.chains(records)
        if row <= 3
    ]
    parts += _axis(x, begun, end)
    return svg.document(WIDTH, HEIGHT, STYLE, *parts, name="Records by level over time")


def _moment(entry: LogEntry) -> int:
    return entry.at if entry.end is None else entry.end


def _lane_of(level: int) -> int:
    return LANES.index(min(max(level, DEBUG), ERROR))


def _dot(entry: LogEntry, x: Scale, shown: Collection[str]) -> str:
    said = entry.notification
    level = said["log_level"]
    assert isinstance(level, int)
    colour = COLOURS[LANES[_lane_of(level)]]
    seen = entry.uid in shown
    failed = said.get("log_category") == "login_failed"
    return svg.element(
        "circle", svg.title(f"{NAMES[level]} {said['log_message']}"),
        cx=x(_moment(entry)), cy=TOP + _lane_of(level) * LANE, r=6 if failed else 4.5,
        fill=colour if seen else "#fbfaf6", stroke=colour, stroke_width=1.6,
        opacity=1 if seen or failed else 0.45,
    )  # fmt: skip


def _window(changes: Sequence[Changed], x: Scale, begun: int, end: int) -> list[str]:
    """What the level lets through, as an area whose lower edge is the level."""

    def edge(level: int) -> float:
        return TOP + _lane_of(level) * LANE + LANE / 2

    roof = TOP - LANE / 2
    points: list[tuple[float, float]] = [(x(begun), edge(ERROR))]
    level = ERROR
    parts = []
    for change, (words, left, up) in zip(changes, labels(changes, x), strict=True):
        points += [(x(change.at), edge(level)), (x(change.at), edge(change.level))]
        parts += [
            svg.element("line", class_="lead", x1=x(change.at), y1=roof - 16 - up, x2=x(change.at),
                        y2=edge(INFO)),
            svg.text(words, left, roof - 8 - up, class_="note"),
        ]  # fmt: skip
        level = change.level
    points.append((x(end), edge(level)))
    area = [(x(begun), roof), *points, (x(end), roof)]
    line = "M" + " L".join(f"{px:.1f} {py:.1f}" for px, py in points)
    return [
        svg.element("path", class_="open", d=svg.polygon([area])),
        svg.element("path", class_="edge", d=line),
        *parts,
    ]


def labels(changes: Sequence[Changed], x: Scale) -> list[tuple[str, float, float]]:
    """Words for each change, their left edge and how far up, so that none are over others.

    On the first of two heights where there is room; else the level's name alone; else none,
    and the green edge says it.
    """
    taken = [0.0] * len(HEIGHTS)
    found = []
    for change in changes:
        name = NAMES[change.level]
        word = "three failures in a row" if change.level < ERROR else "calm again"
        for said, row in itertools.product((f"{word}: {name}", name, ""), range(len(HEIGHTS))):
            left = min(x(change.at) + 6, WIDTH - len(said) * LETTER)
            if taken[row] < left or not said:
                break
        if said:
            taken[row] = left + len(said) * LETTER
        found.append((said, left, HEIGHTS[row]))
    return found


def _axis(x: Scale, begun: int, end: int) -> list[str]:
    foot = TOP + (len(LANES) - 1) * LANE + LANE * 0.75
    parts = [svg.element("line", class_="lane", x1=LEFT, y1=foot, x2=WIDTH - RIGHT, y2=foot)]
    for second in range(0, (end - begun) // 1000 + 1, 5):
        at = x(begun + second * 1000)
        parts.append(svg.text(f"{second} s", at, foot + 18, class_="axis", text_anchor="middle"))
        parts.append(svg.element("line", class_="lane", x1=at, y1=foot, x2=at, y2=foot + 5))
    return parts
