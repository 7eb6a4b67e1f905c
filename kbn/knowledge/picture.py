"""A term's neighbourhood as SVG: above it, below it, and beside it what it is related to.

The middle row is the term. Rows above hold what it is below of (or its types), rows
below what lies under it (or its instances); on the right what it points to, on the
left what points to it. Long lists end in "and n more". No text is measured: a
letter is taken to be 7.2 pixels wide, which is right for the font asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from kbn.knowledge.portrait import Neighbour, Portrait, Relation

ROW, COLUMN = 6, 9
_LETTER, _HEIGHT, _GAP = 7.2, 34.0, 22.0
_RISE = 96.0
_FILL = {
    "class": ("#e6effb", "#2b5fa8"),
    "property": ("#f1e9fb", "#7440a8"),
    "individual": ("#e7f5ea", "#2c7a43"),
    "literal": ("#f4f1e8", "#8a7440"),
    "more": ("#ffffff", "#9aa3ad"),
}
_STYLE = (
    "text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12px}"
    ".t{font-size:15px;font-weight:600}.e{fill:none;stroke:#9aa3ad;stroke-width:1.4}"
    ".l{font-size:11px;fill:#5b6570}.h{font-size:11px;fill:#8a939c;letter-spacing:.06em}"
)


class Box(NamedTuple):
    """A rounded box with its middle at x, y."""

    text: str
    kind: str
    x: float
    y: float
    width: float


def picture(portrait: Portrait) -> str:
    """The SVG document."""
    return _Canvas(portrait).draw()


class _Canvas:
    def __init__(self, portrait: Portrait) -> None:
        self.portrait = portrait
        own = portrait.kind.split(", ", maxsplit=1)[0]
        self.kind = own if own in _FILL else "more"
        self.parts: list[str] = []
        self.boxes: list[Box] = []

    def draw(self) -> str:
        p = self.portrait
        up = [n for n in p.above if n.direct] + [n for n in p.types if n.direct]
        seen = {n.term for n in up}
        far = [n for n in (*p.above, *p.types) if n.term not in seen]
        down = [n for n in p.below if n.direct] or [n for n in p.instances if n.direct]
        centre = Box(p.term, self.kind, 0, 0, _wide(p.term, 9.0))
        top = self._row(up, -_RISE)
        self._row(far, -2 * _RISE)
        bottom = self._row(down, _RISE)
        for box in top:
            self._arrow(centre, box)
        if top and any(box.y < -_RISE for box in self.boxes):
            for box in [b for b in self.boxes if b.y < -_RISE]:
                nearest = min(top, key=lambda b, box=box: abs(b.x - box.x))  # type: ignore[misc]
                self._arrow(nearest, box, faint=True)
        for box in bottom:
            self._arrow(box, centre)
        half = max([centre.width, *(abs(b.x) * 2 + b.width for b in self.boxes)]) / 2
        side = max(half, centre.width / 2) + 150
        self._column(p.relations, side, outward=True, centre=centre)
        self._column(p.inbound, -side, outward=False, centre=centre)
        self.boxes.append(centre)
        return self._document()

    def _row(self, neighbours: Sequence[Neighbour], y: float) -> list[Box]:
        shown = [(n.term, n.kind.split(", ", maxsplit=1)[0]) for n in neighbours[:ROW]]
        if len(neighbours) > ROW:
            shown.append((f"and {len(neighbours) - ROW} more", "more"))
        widths = [_wide(text) for text, _ in shown]
        x = -(sum(widths) + _GAP * (len(shown) - 1)) / 2
        made = []
        for (text, kind), width in zip(shown, widths, strict=True):
            made.append(Box(text, kind if kind in _FILL else "more", x + width / 2, y, width))
            x += width + _GAP
        self.boxes += made
        return made

    def _column(
        self, relations: Sequence[Relation], x: float, *, outward: bool, centre: Box
    ) -> None:
        shown = [(r.property, r.object if outward else r.subject) for r in relations[:COLUMN]]
        if len(relations) > COLUMN:
            shown.append(("", f"and {len(relations) - COLUMN} more"))
        step = _HEIGHT + 12
        y = -(len(shown) - 1) * step / 2
        for verb, text in shown:
            kind = (
                "more" if not verb else "literal" if text[:1] in '"-0123456789' else "individual"
            )
            width = _wide(text)
            box = Box(text, kind, x + width / 2 if outward else x - width / 2, y, width)
            self.boxes.append(box)
            self._curve(centre, box, verb, outward=outward)
            y += step

    def _arrow(self, lower: Box, upper: Box, *, faint: bool = False) -> None:
        a, b = lower.y - _HEIGHT / 2, upper.y + _HEIGHT / 2 + 7
        middle = (a + b) / 2
        dash = ' stroke-dasharray="3 4"' if faint else ""
        self.parts.append(
            f'<path class="e"{dash} marker-end="url(#a)" d="M{lower.x:.1f} {a:.1f}'
            f' C{lower.x:.1f} {middle:.1f} {upper.x:.1f} {middle:.1f} {upper.x:.1f} {b:.1f}"/>'
        )

    def _curve(self, centre: Box, box: Box, verb: str, *, outward: bool) -> None:
        sign = 1 if outward else -1
        start = centre.x + sign * centre.width / 2
        end = box.x - sign * (box.width / 2 + (7 if outward else 0))
        middle = (start + end) / 2
        marker = "end" if outward else "start"
        edge = start if outward else start - 7
        self.parts.append(
            f'<path class="e" marker-{marker}="url(#a)" d="M{edge:.1f} {centre.y:.1f}'
            f' C{middle:.1f} {centre.y:.1f} {middle:.1f} {box.y:.1f} {end:.1f} {box.y:.1f}"/>'
        )
        if verb:
            anchor = "end" if outward else "start"
            self.parts.append(
                f'<text class="l" text-anchor="{anchor}" x="{end - sign * 4:.1f}"'
                f' y="{box.y - 6:.1f}">{escape(verb)}</text>'
            )

    def _document(self) -> str:
        left = min(b.x - b.width / 2 for b in self.boxes) - 30
        right = max(b.x + b.width / 2 for b in self.boxes) + 30
        top = min(b.y for b in self.boxes) - 50
        bottom = max(b.y for b in self.boxes) + 56
        p = self.portrait
        title = p.label if p.label else p.term
        boxes = "".join(map(self._box, self.boxes))
        said = f"{title} · {p.kind} · {', '.join(p.iris[:2])}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="{left:.0f} {top:.0f}'
            f' {right - left:.0f} {bottom - top:.0f}" width="{right - left:.0f}"'
            f' height="{bottom - top:.0f}">\n<title>{escape(title)}</title>\n'
            f"<style>{_STYLE}</style>\n"
            '<defs><marker id="a" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="7"'
            ' markerHeight="7" orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z"'
            ' fill="#9aa3ad"/></marker></defs>\n'
            f'<rect x="{left:.0f}" y="{top:.0f}" width="100%" height="100%" fill="#fcfcfb"/>\n'
            f"{''.join(self.parts)}\n{boxes}\n"
            f'<text class="h" x="{left + 16:.0f}" y="{bottom - 16:.0f}">{escape(said)}</text>\n'
            "</svg>\n"
        )

    def _box(self, box: Box) -> str:
        fill, line = _FILL[box.kind]
        main = box.text == self.portrait.term and box.x == 0 and box.y == 0
        height = _HEIGHT + (8 if main else 0)
        return (
            f'<g><rect x="{box.x - box.width / 2:.1f}" y="{box.y - height / 2:.1f}"'
            f' width="{box.width:.1f}" height="{height:.0f}" rx="9" fill="{fill}"'
            f' stroke="{line}" stroke-width="{2.4 if main else 1.2}"/>'
            f'<text{" class=" + chr(34) + "t" + chr(34) if main else ""} x="{box.x:.1f}"'
            f' y="{box.y + (5 if main else 4):.1f}" text-anchor="middle" fill="{line}">'
            f"{escape(_cut(box.text))}</text></g>\n"
        )


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:18] + "…" + text[-20:]


def _wide(text: str, letter: float = _LETTER) -> float:
    return len(_cut(text)) * letter + 28
