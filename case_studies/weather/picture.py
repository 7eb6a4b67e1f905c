"""The study as a picture: the state, the way the storms came, and who was told of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from case_studies import svg
from case_studies.weather import lead
from case_studies.weather.bulletins import END, START, WARNING, WATCH, Bulletin
from case_studies.weather.places import TOWNS, County, Point, counties, near
from case_studies.weather.storms import Cell
from case_studies.weather.view import clock

WIDTH, HEIGHT = 1240, 1030
COLOURS = {"tstorm": "#e39b2d", "tornado": "#c23b2e", "flood": "#3b7fb8"}
WORDS = {"tstorm": "thunderstorm", "tornado": "tornado", "flood": "flood"}
TRACK = "track"
HOUR = 3_600_000
#: How far below its centre a county's name stands, where 38 would be in the way.
LABEL = {"Merrick": -28, "Polk": 10, "Nance": 30}
TOWN_COLOURS = {"York": "#0e7490", "Geneva": "#9d2b86", "Aurora": "#3d3a8c"}
STYLE = """
.paper{fill:#fbfaf6} .land{fill:#f0ece1;stroke:#cfc8b6;stroke-width:.7} .watch{fill:#f7edc8}
.h1{font-size:24px;font-weight:700;fill:#22303c} .h2{font-size:14px;fill:#5a6773}
.h3{font-size:15px;font-weight:700;fill:#22303c} .p{font-size:12.5px;fill:#37434e}
.small{font-size:11px;fill:#6b7782} .county{font-size:12px;fill:#5b5442} .frame{fill:none;stroke:#22303c;stroke-width:1.4}
.track{fill:none;stroke:#22303c;stroke-width:1.6;stroke-dasharray:5 4} .row{stroke:#e4dfd2} .card{fill:#ffffff;stroke:#ded9cc}
.way{fill:none;stroke-width:4;stroke-linecap:round;opacity:.85}
"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class Frame:
    """A part of the country on a part of the page; degrees are shortened by the latitude."""

    left: float
    top: float
    width: float
    west: float
    east: float
    south: float
    north: float

    @property
    def scale(self) -> float:
        return self.width / ((self.east - self.west) * self._shrink)

    @property
    def height(self) -> float:
        return (self.north - self.south) * self.scale

    @property
    def _shrink(self) -> float:
        return math.cos(math.radians((self.south + self.north) / 2))

    def at(self, place: Point) -> tuple[float, float]:
        east, north = place
        across = (east - self.west) * self._shrink * self.scale
        return self.left + across, self.top + (self.north - north) * self.scale

    def shape(self, county: County, **attributes: svg.Attribute) -> str:
        path = svg.polygon([self.at(place) for place in ring] for ring in county.outline)
        return svg.element("path", svg.title(f"{county.name} County"), d=path, **attributes)


STATE = Frame(40, 108, 800, -104.06, -95.29, 39.99, 43.01)
AROUND = Frame(40, 562, 420, -98.76, -97.33, 40.32, 41.43)


def draw(
    bulletins: Sequence[Bulletin],
    told: Mapping[str, Sequence[Bulletin]],
    cells: Sequence[Cell] = (),
    wishes: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """``told`` are the bulletins each town heard; ``cells`` are drawn as they moved.

    ``wishes`` are what each town asked, in a few words; ``notes`` are lines at the end.
    """
    title = "Who needs to know of this storm?"
    parts = [
        svg.element("defs", *map(_arrow, {**TOWN_COLOURS, TRACK: "#22303c"}.items())),
        svg.element("rect", class_="paper", width=WIDTH, height=HEIGHT),
        svg.text(title, 40, 50, class_="h1"),
        svg.text(
            "Watches and warnings over Nebraska, and the three towns that asked to be told of a "
            f"warning in Hamilton by where it comes from{_day(bulletins)}.",
            40, 76, class_="h2",
        ),
    ]  # fmt: skip
    ahead = lead.minutes(bulletins, told)
    parts += _state(bulletins, cells)
    parts += _cards(told, wishes or {}, len(bulletins), ahead)
    parts += _around(bulletins, told)
    parts += _times(bulletins, told)
    parts.append(svg.text(lead.in_words(ahead), 510, HEIGHT - 34 - 20 * len(notes), class_="h3"))
    parts += [
        svg.text(note, 510, HEIGHT - 26 - 20 * (len(notes) - 1 - n), class_="p")
        for n, note in enumerate(notes)
    ]
    return svg.document(WIDTH, HEIGHT, STYLE, *parts, name=title)


def _day(bulletins: Sequence[Bulletin]) -> str:
    """``; 3 June 2026``, the day of the first; empty if there is none."""
    if not bulletins:
        return ""
    day = datetime.fromtimestamp(min(b.at for b in bulletins) / 1000, UTC)
    return f"; {day.day} {day:%B %Y}"


def _arrow(named: tuple[str, str]) -> str:
    """The head of an arrow of a colour, its size in widths of the line."""
    name, colour = named
    size = 7 if name == TRACK else 3.4
    return svg.element(
        "marker",
        svg.element("path", d="M0 0 L10 5 L0 10 Z", fill=colour),
        id=f"to-{name}",
        viewBox="0 0 10 10",
        refX=8,
        refY=5,
        markerWidth=size,
        markerHeight=size,
        orient="auto-start-reverse",
    )


def _worst(bulletins: Iterable[Bulletin], severity: str) -> dict[str, str]:
    """The gravest kind each county was warned of, or watched for."""
    found: dict[str, str] = {}
    for bulletin in bulletins:
        if bulletin.part == START and bulletin.alert.severity == severity:
            for county in bulletin.alert.counties:
                if found.get(county.name) != "tornado":
                    found[county.name] = bulletin.alert.type
    return found


def _state(bulletins: Sequence[Bulletin], cells: Sequence[Cell]) -> list[str]:
    warned, watched = _worst(bulletins, WARNING), _worst(bulletins, WATCH)
    parts = []
    for county in counties().values():
        kind = warned.get(county.name)
        parts.append(STATE.shape(county, class_="land"))
        if kind is not None:
            parts.append(STATE.shape(county, fill=COLOURS[kind], fill_opacity=0.62))
        elif county.name in watched:
            parts.append(STATE.shape(county, class_="watch", fill_opacity=0.8))
    for cell in cells:
        (ax, ay), (bx, by) = STATE.at(cell.born), STATE.at(cell.died)
        parts.append(
            svg.element("path", class_="track", d=f"M{ax:.1f} {ay:.1f} L{bx:.1f} {by:.1f}",
                        marker_end="url(#to-track)")
        )  # fmt: skip
    left, top = AROUND.west, AROUND.north
    x, y = STATE.at((left, top))
    far = STATE.at((AROUND.east, AROUND.south))
    parts.append(
        svg.element("rect", class_="frame", x=x, y=y, width=far[0] - x, height=far[1] - y, rx=3)
    )
    legend = 40.0
    foot = STATE.top + STATE.height + 24
    shown = {*warned.values(), *({WATCH} if watched.keys() - warned.keys() else ())}
    for kind, colour in [*COLOURS.items(), (WATCH, "#f7edc8")]:
        if kind not in shown:
            continue
        parts.append(
            svg.element("rect", x=legend, y=foot - 11, width=18, height=13, rx=2, fill=colour,
                        fill_opacity=0.75, stroke="#cfc8b6")
        )  # fmt: skip
        words = f"{WORDS[kind]} warning" if kind in WORDS else "watch"
        parts.append(svg.text(words, legend + 25, foot, class_="small"))
        legend += 168
    if cells:
        parts.append(svg.text("dashed: a storm cell's way", legend, foot, class_="small"))
    return parts


def _cards(
    told: Mapping[str, Sequence[Bulletin]],
    wishes: Mapping[str, str],
    said: int,
    ahead: Mapping[str, int],
) -> list[str]:
    parts = []
    left, top, width, height = 880, 108, 320, 116
    for number, (town, heard) in enumerate(told.items()):
        y = top + number * (height + 12)
        colour = TOWN_COLOURS.get(town, "#37434e")
        parts.append(
            svg.element("rect", class_="card", x=left, y=y, width=width, height=height, rx=8)
        )
        parts.append(svg.element("rect", x=left, y=y, width=6, height=height, rx=3, fill=colour))
        parts.append(svg.text(town, left + 20, y + 26, class_="h3", style=f"fill:{colour}"))
        count = "was told nothing" if not heard else f"was told {len(heard)} of {said} bulletins"
        parts.append(svg.text(count, left + width - 14, y + 26, class_="small", text_anchor="end"))
        parts.append(svg.text(wishes.get(town, ""), left + 20, y + 45, class_="small"))
        for line, bulletin in enumerate(heard[:3]):
            words = f"{clock(bulletin.at)}  {bulletin.alert}"
            parts.append(svg.text(words, left + 20, y + 67 + 18 * line, class_="p"))
        if town in ahead and len(heard) < 3:
            words = f"{ahead[town]} minutes before its own warning"
            parts.append(svg.text(words, left + 20, y + 67 + 18 * len(heard), class_="small"))
        if len(heard) > 3:
            parts.append(
                svg.text(f"… and {len(heard) - 3} more", left + 20, y + height - 5, class_="small")
            )
    return parts


def _around(bulletins: Sequence[Bulletin], told: Mapping[str, Sequence[Bulletin]]) -> list[str]:
    """The counties around Hamilton, and for each town the step that made it be told."""
    frame, warned = AROUND, _worst(bulletins, WARNING)
    clip = svg.element(
        "clipPath",
        svg.element("rect", x=frame.left, y=frame.top, width=frame.width, height=frame.height),
        id="around",
    )
    shapes = []
    for county in counties().values():
        kind = warned.get(county.name)
        shapes.append(frame.shape(county, class_="land"))
        if kind is not None:
            shapes.append(frame.shape(county, fill=COLOURS[kind], fill_opacity=0.5))
        x, y = frame.at(county.centre)
        shapes.append(
            svg.text(
                county.name,
                x,
                y + LABEL.get(county.name, 38),
                class_="county",
                text_anchor="middle",
            )
        )
    parts = [clip, svg.element("g", *shapes, clip_path="url(#around)")]
    parts.append(
        svg.element("rect", class_="frame", x=frame.left, y=frame.top, width=frame.width,
                    height=frame.height, rx=3)
    )  # fmt: skip
    parts.append(
        svg.text("Around Hamilton: the step that told them", frame.left, frame.top - 14,
                 class_="h3")
    )  # fmt: skip
    steps: dict[tuple[str, str], list[str]] = {}
    for town, heard in told.items():
        for bulletin in heard:
            for origin in _origins(bulletins, bulletin):
                names = steps.setdefault((origin.name, bulletin.alert.counties[0].name), [])
                if town not in names:
                    names.append(town)
    for (origin_name, here_name), names in steps.items():
        here = frame.at(counties()[here_name].centre)
        there = frame.at(counties()[origin_name].centre)
        for number, town in enumerate(names):
            parts.append(_way(there, here, town, number))
    for asked in TOWNS:
        x, y = frame.at(asked.place)
        colour = TOWN_COLOURS[asked.name]
        parts.append(svg.element("circle", cx=x, cy=y, r=6, fill=colour, stroke="#fff"))
        # Bold letters of 15 take up to 10 across; what has no room goes to the other side.
        fits = x + 10 + 10 * len(asked.name) < frame.left + frame.width - 12
        aside, anchor = (10, "start") if fits else (-10, "end")
        parts.append(
            svg.text(asked.name, x + aside, y - 7, class_="h3", style=f"fill:{colour}",
                     text_anchor=anchor)
        )  # fmt: skip
    return parts


def _way(a: tuple[float, float], b: tuple[float, float], town: str, number: int) -> str:
    """An arrow from county to county; the second of two lies beside the first."""
    (ax, ay), (bx, by) = a, b
    length = math.hypot(bx - ax, by - ay) or 1.0
    aside = 9 * number - 4
    dx, dy = -(by - ay) / length * aside, (bx - ax) / length * aside
    near_b = (bx - (bx - ax) * 0.22, by - (by - ay) * 0.22)
    return svg.element(
        "path", class_="way", stroke=TOWN_COLOURS.get(town, "#37434e"),
        d=f"M{ax + dx:.1f} {ay + dy:.1f} L{near_b[0] + dx:.1f} {near_b[1] + dy:.1f}",
        marker_end=f"url(#to-{town})",
    )  # fmt: skip


def _origins(bulletins: Sequence[Bulletin], here: Bulletin) -> list[County]:
    """Neighbours that were being warned when this warning started."""
    touching = near(frozenset(c.name for c in here.alert.counties))
    found = []
    for alert, (begins, ends) in _spans(bulletins).items():
        if alert == here.alert.id or not begins.at <= here.at <= ends:
            continue
        if begins.alert.severity == WARNING:
            found += [
                county
                for county in begins.alert.counties
                if county.name in touching and county not in here.alert.counties
            ]
    return found


def _spans(bulletins: Sequence[Bulletin]) -> dict[str, tuple[Bulletin, int]]:
    """Each alert's START and the moment it ends."""
    last = max((bulletin.at for bulletin in bulletins), default=0)
    ends = {b.alert.id: b.at for b in bulletins if b.part == END}
    return {b.alert.id: (b, ends.get(b.alert.id, last)) for b in bulletins if b.part == START}


def _times(bulletins: Sequence[Bulletin], told: Mapping[str, Sequence[Bulletin]]) -> list[str]:
    """Warnings around Hamilton as bars over time, with a dot where a town was told."""
    names = near(frozenset({"Hamilton"}))
    rows = [
        (begins, ends)
        for begins, ends in _spans(bulletins).values()
        if begins.alert.severity == WARNING
        and any(county.name in names for county in begins.alert.counties)
    ][:12]
    left, right, top = 640, WIDTH - 40, AROUND.top + 18
    parts = [svg.text("Warnings there, over time", 510, AROUND.top - 14, class_="h3")]
    if not rows:
        return [*parts, svg.text("none", 510, top + 10, class_="p")]
    first, last = min(b.at for b, _ in rows), max(end for _, end in rows)
    scale = (right - left) / max(last - first, 1)
    step = min(34.0, 360 / len(rows))
    for number, (begins, ends) in enumerate(rows):
        y = top + number * step
        names_here = ", ".join(county.name for county in begins.alert.counties)
        parts += [
            svg.text(names_here, left - 12, y + 5, class_="p", text_anchor="end"),
            svg.element("line", class_="row", x1=left, y1=y, x2=right, y2=y),
            svg.element("rect", svg.title(str(begins.alert)), x=left + (begins.at - first) * scale,
                        y=y - 8, width=(ends - begins.at) * scale, height=16, rx=4,
                        fill=COLOURS[begins.alert.type], fill_opacity=0.8),
        ]  # fmt: skip
        heard = [town for town, got in told.items() if begins in got]
        for place, town in enumerate(heard):
            x = left + (begins.at - first) * scale + 12 * place
            colour = TOWN_COLOURS.get(town, "#37434e")
            parts.append(
                svg.element(
                    "circle", cx=x, cy=y, r=6, fill=colour, stroke="#fff", stroke_width=1.5
                )
            )
        if heard:
            # Beside its bar: after it, or before it where there is no room.
            after, before = ((at - first) * scale + left for at in (ends, begins.at))
            roomy = after < right - 130
            parts.append(
                svg.text("told: " + ", ".join(heard), after + 8 if roomy else before - 12, y + 4,
                         class_="small", text_anchor="start" if roomy else "end")
            )  # fmt: skip
    foot = top + len(rows) * step + 4
    for moment in _hours(first, last):
        x = left + (moment - first) * scale
        parts += [
            svg.element("line", class_="row", x1=x, y1=top - 14, x2=x, y2=foot - 8),
            svg.text(clock(moment), x, foot + 8, class_="small", text_anchor="middle"),
        ]
    parts.append(
        svg.text(
            "A dot is a town that was told, at the start of the warning. UTC.",
            left,
            foot + 34,
            class_="small",
        )
    )
    return parts


def _hours(first: int, last: int) -> range:
    """Full hours between two moments, about a dozen at most; if there is none, the first."""
    start = -(-first // HOUR) * HOUR
    step = HOUR * max(1, -(-(last - start) // HOUR // 12))
    return range(start, last + 1, step) if start <= last else range(first, first + 1)
