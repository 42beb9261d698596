"""One point per run: a quantity against an accuracy; methods of a family look alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from longshift.report.figures.drawing import Drawing, draws, new_drawing
from longshift.report.figures.drawing_style import FAINT, LINE, MARKS, PALETTE, PAPER, legend, plain

WIDTH, HEIGHT = 560.0, 350.0
MOST_TIPS = 1500  # points that show their name on hover


@dataclass(frozen=True)
class Points:
    """The points of one family; `names` are shown on hover."""

    title: str
    x: Sequence[float]
    y: Sequence[float]
    names: Sequence[str]
    kind: int  # color and shape


@draws
def scatter(groups: Sequence[Points], x_label: str, y_label: str) -> Drawing:
    """Draw the points; y is a share of one, shown in percent."""
    drawn = [group for group in groups if len(group.x)]
    count = sum(len(group.x) for group in drawn)
    drawing = new_drawing(WIDTH, HEIGHT, f"{y_label} over {x_label} of {count} runs")
    axes = drawing.figure.add_subplot()
    plain(axes, "", x_label, size=12)
    axes.grid(axis="x", color=LINE, lw=0.8)
    axes.margins(0.04)
    axes.set_title(f"{y_label} (%)", loc="left", fontsize=12.5, color=FAINT)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    handles = []
    for group in drawn:
        style: dict[str, Any] = {
            "marker": MARKS[group.kind % len(MARKS)], "color": PALETTE[group.kind % len(PALETTE)], "linestyle": "",
            "mec": PAPER, "mew": 0.6,
        }  # fmt: skip
        (points,) = axes.plot(group.x, [100 * y for y in group.y], ms=6.5, alpha=0.7, clip_on=False, **style)
        handles.append(Line2D([], [], ms=8, label=group.title, **style))
        if count <= MOST_TIPS:
            values = zip(group.names, group.x, group.y, strict=True)
            drawing.tip(points, *(f"{name}: {x_label} {x:.3g}, {100 * y:.1f}%" for name, x, y in values))
    legend(drawing.figure, handles, WIDTH, 12)
    return drawing
