"""A small SVG writer for curves beside each other, with logarithmic axes where asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT, MARGIN = 420, 300, 56
COLOURS = ("#0b5fa5", "#c2410c", "#15803d", "#7c3aed")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes; ``curves`` are a name and its points each."""

    title: str
    across: str
    up: str
    curves: Sequence[tuple[str, Points]]
    log_across: bool = False


def write(path: Path, panels: Sequence[Panel]) -> None:
    """Draw the panels from left to right; the upward axis is logarithmic."""
    drawn = [_panel(panel, number * WIDTH) for number, panel in enumerate(panels)]
    size = f'width="{WIDTH * len(panels)}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">'
    background = '<rect width="100%" height="100%" fill="white"/>'
    path.write_text("\n".join([head, background, *drawn, "</svg>\n"]), encoding="utf-8")


def _panel(panel: Panel, left: float) -> str:
    points = [point for _, curve in panel.curves for point in curve]
    x = _scale([p[0] for p in points], MARGIN, WIDTH - 16, panel.log_across)
    y = _scale([p[1] for p in points], HEIGHT - MARGIN, 40, True)
    out = [f'<g transform="translate({left:.0f} 0)" font-size="11">']
    out.append(_text(WIDTH / 2, 18, panel.title, "middle", 13))
    out.append(_text(WIDTH / 2, HEIGHT - 8, panel.across, "middle"))
    out.append(
        f'<text transform="translate(13 {HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(panel.up)}</text>"
    )
    for value in _decades([p[1] for p in points]):
        at = y(value)
        out.append(_line(MARGIN, at, WIDTH - 16, at, "#ddd"))
        out.append(_text(MARGIN - 5, at + 4, f"{value:g}", "end"))
    told = sorted({p[0] for p in points})
    for value in told[:: -(-len(told) // 7)]:
        out.append(_text(x(value), HEIGHT - MARGIN + 16, _short(value), "middle", 9))
    for number, (name, curve) in enumerate(panel.curves):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in curve)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [
            f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2.5" fill="{colour}"/>' for a, b in curve
        ]
        out.append(_text(MARGIN + 8, 36 + 14 * number, name, "start", colour=colour))
    return "\n".join([*out, "</g>"])


def _scale(
    values: Sequence[float], low: float, high: float, logarithmic: bool
) -> Callable[[float], float]:
    def place(value: float) -> float:
        return math.log10(max(value, 1e-9)) if logarithmic else value

    least, most = place(min(values)), place(max(values))
    if logarithmic:
        least, most = math.floor(least), math.ceil(most)
    span = (most - least) or 1
    return lambda value: low + (place(value) - least) / span * (high - low)


def _decades(values: Sequence[float]) -> list[float]:
    least = math.floor(math.log10(max(min(values), 1e-9)))
    most = math.ceil(math.log10(max(*values, 1e-9)))
    return [10.0**power for power in range(least, most + 1)]


def _short(value: float) -> str:
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value:g}"


def _text(
    x: float, y: float, text: str, anchor: str, size: int = 11, *, colour: str = "#222"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
        f' fill="{colour}">{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
