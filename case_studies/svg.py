"""Just enough SVG to draw with: elements as text, escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

Attribute = str | int | float


def element(name: str, *inside: str, **attributes: Attribute) -> str:
    """One element; ``stroke_width`` is written ``stroke-width``, ``class_`` is ``class``."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{said}>{''.join(inside)}</{name}>" if inside else f"<{name}{said}/>"


def text(said: str, x: float, y: float, **attributes: Attribute) -> str:
    """Words at a place."""
    return element("text", escape(said, quote=False), x=x, y=y, **attributes)


def title(said: str) -> str:
    """What a reader sees who rests on a shape."""
    return element("title", escape(said, quote=False))


def polygon(rings: Iterable[Iterable[tuple[float, float]]]) -> str:
    """The path of closed rings."""
    return " ".join(
        "M" + " L".join(f"{_number(x)} {_number(y)}" for x, y in ring) + " Z" for ring in rings
    )


def document(width: int, height: int, style: str, *inside: str, name: str) -> str:
    """A whole picture with its name for readers that cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img" font-family="Inter, Helvetica, Arial, sans-serif">\n'
        + title(name)
        + element("style", style)
        + "\n"
        + "\n".join(inside)
        + "\n</svg>\n"
    )


def _number(value: Attribute) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
