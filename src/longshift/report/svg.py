"""A small SVG writer. Text is always escaped; colours are CSS variables, so that figures follow light and dark."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from markupsafe import Markup

# Okabe and Ito: distinguishable with every common kind of colour blindness. The page defines --c0 ... --c7 (lighter
# in the dark); the second value is for viewers without that style sheet.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A7B00", "#5A5A5A")
DASHES = ("", "6 3", "2 2", "8 3 2 3", "10 4", "4 4", "1 3", "12 2 2 2")  # lines differ in more than colour


def colour(index: int) -> str:
    """The colour of a series."""
    index %= len(PALETTE)
    return f"var(--c{index},{PALETTE[index]})"


INK, FAINT, LINE, PAPER = "var(--ink,#222)", "var(--faint,#666)", "var(--line,#ddd)", "var(--paper,#fff)"


@dataclass
class Svg:
    """A drawing of fixed size in its own units; it scales with the page but never below `least` pixels wide."""

    width: float
    height: float
    label: str  # what it shows, for those who cannot see it
    least: int = 0
    parts: list[str] = field(default_factory=list)

    def add(self, name: str, tip: str = "", text: str = "", /, **attributes: object) -> None:
        """An element; `tip` is shown on hover, `_` in names stands for "-", a trailing one is dropped."""
        written = "".join(
            f" {key.rstrip('_').replace('_', '-')}={quoteattr(_value(value))}" for key, value in attributes.items()
        )
        inside = (f"<title>{escape(tip)}</title>" if tip else "") + escape(text)
        self.parts.append(f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>")

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = LINE, **more: object) -> None:
        """A straight line."""
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, **more)

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, tip: str = "", **more: object
    ) -> None:  # fmt: skip
        """A rectangle."""
        self.add("rect", tip, x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), fill=fill, **more)

    def text(
        self, x: float, y: float, text: str, size: float = 11, anchor: str = "start", fill: str = INK, tip: str = "",
        **more: object,
    ) -> None:  # fmt: skip
        """A line of text; its full form can be the tip."""
        self.add("text", tip, text, x=x, y=y, font_size=size, text_anchor=anchor, fill=fill, **more)

    def render(self) -> Markup:
        """The `svg` element, to stand in HTML."""
        style = f"min-width:{self.least}px;" if self.least else ""
        box = f"0 0 {_value(self.width)} {_value(self.height)}"
        head = (
            f'<svg viewBox="{box}" role="img" aria-label={quoteattr(self.label)} '
            f'style="{style}max-width:{_value(self.width * 1.25)}px">'
        )
        return Markup(head + "".join(self.parts) + "</svg>")  # all parts were escaped when added


def short(text: str, most: int = 16) -> str:
    """A name cut to `most` letters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def legend(svg: Svg, names: list[tuple[str, str]], x: float, y: float, width: float, size: float = 12) -> float:
    """Names with a square of their colour, in as many lines as they need; the height used."""
    left, line = x, 0
    for name, fill in names:
        need = 28 + 0.64 * size * len(name)
        if left > x and left + need > x + width:
            left, line = x, line + 1
        top = y + line * (size + 7)
        svg.rect(left, top - size + 2, size - 1, size - 1, fill, rx=2)
        svg.text(left + size + 3, top, name, size)
        left += need
    return (line + 1) * (size + 7)


def mark(
    svg: Svg, kind: int, x: float, y: float, fill: str, tip: str = "", size: float = 1.0, **more: object
) -> None:  # fmt: skip
    """A point in a shape of its own for each kind: colour is never the only difference."""
    s = size
    shapes = (
        f"M{x - 4 * s:.1f} {y:.1f}a{4 * s:g} {4 * s:g} 0 1 0 {8 * s:g} 0a{4 * s:g} {4 * s:g} 0 1 0 {-8 * s:g} 0z",
        f"M{x:.1f} {y - 5 * s:.1f}l{5 * s:g} {5 * s:g}l{-5 * s:g} {5 * s:g}l{-5 * s:g} {-5 * s:g}z",  # diamond
        f"M{x - 3.6 * s:.1f} {y - 3.6 * s:.1f}h{7.2 * s:g}v{7.2 * s:g}h{-7.2 * s:g}z",  # square
        f"M{x:.1f} {y - 4.4 * s:.1f}l{4.6 * s:g} {8.2 * s:g}h{-9.2 * s:g}z",  # triangle
        f"M{x:.1f} {y + 4.4 * s:.1f}l{4.6 * s:g} {-8.2 * s:g}h{-9.2 * s:g}z",  # triangle on its tip
    )
    svg.add("path", tip, d=shapes[kind % len(shapes)], fill=fill, stroke=PAPER, stroke_width=s, **more)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers inside an interval, `most` + 1 at the most."""
    least = max(high - low, 1e-9) / most
    power = 10.0 ** math.floor(math.log10(least))
    size = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= least * (1 - 1e-9))
    first, last = math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9)
    return [round(i * size, 10) for i in range(first, last + 1)]


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
