"""Curves: margins, validation accuracy, loss, anything over a common axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from longshift.report.svg import DASHES, FAINT, INK, Svg, colour, ticks

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 560.0, 310.0, 38.0, 38.0, 24.0
MOST_TIPS = 60  # points with a value on hover, a curve


@dataclass(frozen=True)
class Line:
    """A curve; `spread` (half the height of its band) may be empty."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] = ()


def line_chart(
    lines: Sequence[Line], x_label: str, y_label: str, percent: bool = True, y_range: tuple[float, float] | None = None
) -> Markup:
    """`percent`: y is a share of one, shown in percent. Names stand beside the ends of their curves."""
    drawn = [line for line in lines if len(line.x)]
    names = ", ".join(line.name for line in drawn)
    svg = Svg(WIDTH, HEIGHT, f"{y_label} over {x_label} for {names}", least=350)
    if not drawn:
        svg.text(WIDTH / 2, HEIGHT / 2, "nothing to draw", anchor="middle", fill=FAINT)
        return svg.render()
    right = 26 + 7.6 * max(len(line.name) for line in drawn)
    low_x, high_x = min(min(line.x) for line in drawn), max(max(line.x) for line in drawn)
    low, high = y_range or _limits(drawn)
    unit = 100 if percent else 1
    span_x, span = (high_x - low_x) or 1, (high - low) or 1

    def px(x: float) -> float:
        return LEFT + (x - low_x) / span_x * (WIDTH - LEFT - right)

    def py(y: float) -> float:
        return TOP + (1 - (y - low) / span) * (HEIGHT - TOP - BOTTOM)

    for tick in ticks(low * unit, high * unit, 6):
        svg.line(LEFT, py(tick / unit), WIDTH - right, py(tick / unit))
        svg.text(LEFT - 6, py(tick / unit) + 3.5, f"{tick:g}", 12, "end", FAINT)
    for tick in ticks(low_x, high_x, 8):
        svg.text(px(tick), HEIGHT - BOTTOM + 16, f"{tick:g}", 12, "middle", FAINT)
    svg.text((LEFT + WIDTH - right) / 2, HEIGHT - 4, x_label, 12.5, "middle", FAINT)
    svg.text(2, 12, f"{y_label} (%)" if percent else y_label, 12.5, fill=FAINT)
    for i, line in enumerate(drawn):
        _curve(svg, line, i, [(px(x), py(y)) for x, y in zip(line.x, line.y, strict=True)], py, x_label, unit)
    _names(svg, drawn, [py(line.y[-1]) for line in drawn], WIDTH - right + 8)
    return svg.render()


def _limits(lines: Sequence[Line]) -> tuple[float, float]:
    values = [v for line in lines for v in line.y]
    low, high = min(values), max(values)
    room = 0.06 * ((high - low) or 0.1)
    return low - room, high + room


def _curve(
    svg: Svg, line: Line, index: int, points: list[tuple[float, float]], py: object, x_label: str, unit: int
) -> None:  # fmt: skip
    assert callable(py)
    if line.spread:
        upper = [(x, py(v + s)) for (x, _), v, s in zip(points, line.y, line.spread, strict=True)]
        lower = [(x, py(v - s)) for (x, _), v, s in zip(points, line.y, line.spread, strict=True)]
        area = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*upper, *reversed(lower)])
        svg.add("polygon", points=area, fill=colour(index), fill_opacity=0.13)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    svg.add(
        "polyline", points=path, fill="none", stroke=colour(index), stroke_width=2,
        stroke_dasharray=DASHES[index % len(DASHES)] or "none", stroke_linejoin="round",
    )  # fmt: skip
    every = max(1, len(points) // MOST_TIPS)
    for (x, y), a, b in list(zip(points, line.x, line.y, strict=True))[::every]:
        sign = " %" if unit == 100 else ""
        svg.add("circle", f"{line.name}: {x_label} {a:g}, {b * unit:.3g}{sign}", cx=x, cy=y, r=6.0, fill="transparent")


def _names(svg: Svg, lines: Sequence[Line], heights: Sequence[float], x: float) -> None:
    """Names at the ends of the curves, pushed apart where they would overlap."""
    order = sorted(range(len(lines)), key=lambda i: heights[i])
    wanted = [heights[i] for i in order]
    for k in range(1, len(wanted)):
        wanted[k] = max(wanted[k], wanted[k - 1] + 15)
    over = max(0.0, wanted[-1] - (HEIGHT - BOTTOM))
    for k, i in enumerate(order):
        y = wanted[k] - over
        svg.line(x - 4, y, x + 8, y, colour(i), stroke_width=2, stroke_dasharray=DASHES[i % len(DASHES)] or "none")
        svg.text(x + 12, y + 3.5, lines[i].name, 12.5, fill=INK)
