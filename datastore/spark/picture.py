"""Counts over time as a picture: an SVG that needs nothing else to be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT, _MARGIN = 860, 300, 48
_COLOURS = ("#9a6700", "#0550ae")


def bars(title: str, labels: Sequence[str], series: Sequence[tuple[str, Sequence[int]]]) -> str:
    """For each bucket a bar of each named series; ``labels`` are of the first and the last."""
    count = max((len(values) for _, values in series), default=0)
    most = max((value for _, values in series for value in values), default=0) or 1
    # A bucket's bars stand side by side, with a fifth of its width between buckets.
    slot = (_WIDTH - 2 * _MARGIN) / max(count, 1)
    width = 0.8 * slot / max(len(series), 1)

    def bar(at: int, number: int, value: int, colour: str) -> str:
        x = _MARGIN + slot * (at + 0.1) + width * number
        height = (_HEIGHT - 2 * _MARGIN) * value / most
        y = _HEIGHT - _MARGIN - height
        return (
            f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
            f'fill="{colour}"/>'
        )

    drawn = []
    for number, (name, values) in enumerate(series):
        colour = _COLOURS[number % len(_COLOURS)]
        drawn += [bar(at, number, value, colour) for at, value in enumerate(values) if value]
        drawn.append(_text(_MARGIN + 180 * number, 40, f"{name}: {sum(values)}", colour))
    base = _HEIGHT - _MARGIN
    drawn.append(
        f'<line x1="{_MARGIN}" y1="{base}" x2="{_WIDTH - _MARGIN}" y2="{base}" stroke="#888"/>'
    )
    drawn.append(_text(4, _MARGIN + 4, str(most)))
    drawn.append(_text(4, base, "0"))
    drawn += [
        _text(_MARGIN if not at else _WIDTH - _MARGIN, base + 18, label, anchor=anchor)
        for at, (label, anchor) in enumerate(zip(labels, ("start", "end"), strict=False))
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="white"/>{_text(_MARGIN, 20, title)}'
        f"{''.join(drawn)}</svg>\n"
    )


def _text(x: int, y: int, said: str, colour: str = "#222", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}">{escape(said)}</text>'
