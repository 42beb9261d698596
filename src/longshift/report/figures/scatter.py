"""One point a run: a quantity against an accuracy, methods of a family alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from longshift.report.svg import FAINT, Svg, colour, mark, ticks

WIDTH, PLOT, LEFT, BOTTOM, RIGHT = 560.0, 270.0, 38.0, 38.0, 10.0
MOST_TIPS = 1500  # points with their name on hover


@dataclass(frozen=True)
class Points:
    """The points of one family; `names` are shown on hover."""

    title: str
    x: Sequence[float]
    y: Sequence[float]
    names: Sequence[str]
    kind: int  # which colour and shape


def scatter(groups: Sequence[Points], x_label: str, y_label: str) -> Markup:
    """y is a share of one, shown in percent."""
    drawn = [group for group in groups if len(group.x)]
    count = sum(len(group.x) for group in drawn)
    svg = Svg(WIDTH, 0, f"{y_label} over {x_label} of {count} runs", least=350)
    top = _legend(svg, drawn) + 26
    xs, ys = [x for g in drawn for x in g.x], [y for g in drawn for y in g.y]
    (low_x, high_x), (low, high) = _limits(xs), _limits(ys)
    svg.height = top + PLOT + BOTTOM

    def px(x: float) -> float:
        return LEFT + (x - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT)

    def py(y: float) -> float:
        return top + (1 - (y - low) / (high - low)) * PLOT

    for tick in ticks(100 * low, 100 * high, 6):
        svg.line(LEFT, py(tick / 100), WIDTH - RIGHT, py(tick / 100))
        svg.text(LEFT - 6, py(tick / 100) + 3.5, f"{tick:g}", 12, "end", FAINT)
    for tick in ticks(low_x, high_x, 8):
        svg.line(px(tick), top, px(tick), top + PLOT)
        svg.text(px(tick), top + PLOT + 16, f"{tick:g}", 12, "middle", FAINT)
    svg.text((LEFT + WIDTH - RIGHT) / 2, svg.height - 4, x_label, 12.5, "middle", FAINT)
    svg.text(2, top - 8, f"{y_label} (%)", 12.5, fill=FAINT)
    for group in drawn:
        for x, y, name in zip(group.x, group.y, group.names, strict=True):
            tip = f"{name}: {x_label} {x:.3g}, {100 * y:.1f} %" if count <= MOST_TIPS else ""
            mark(svg, group.kind, px(x), py(y), colour(group.kind), tip, 0.8, fill_opacity=0.7)
    return svg.render()


def _legend(svg: Svg, groups: Sequence[Points]) -> float:
    """Names with the shape and colour of their points, in as many lines as they need; the height used."""
    left, y = LEFT, 14.0
    for group in groups:
        need = 34 + 7.0 * len(group.title)
        if left > LEFT and left + need > WIDTH:
            left, y = LEFT, y + 18
        mark(svg, group.kind, left + 6, y - 4, colour(group.kind))
        svg.text(left + 16, y, group.title, 12)
        left += need
    return y


def _limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.04 * ((high - low) or 1.0)
    return low - room, high + room
