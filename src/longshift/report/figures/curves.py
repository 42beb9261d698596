"""Curves, points and ranks: accuracy over steps or a parameter, quantities of classes, one point per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from longshift.array_types import FloatArray
from longshift.report.figures.drawing import (
    BELOW,
    FAINT,
    INK,
    LETTER,
    LINE,
    MARKS,
    PALETTE,
    PAPER,
    Drawing,
    class_axis,
    draws,
    headline,
    legend,
    new_drawing,
    plain,
    series_style,
    short,
)

WIDTH, HEIGHT = 560.0, 310.0
MOST_TIPS = 60  # points of a curve that show their value on hover
MOST_NAMES = 30  # class names on an axis
APART = 0.06  # distance between names, in heights of the axes


@dataclass(frozen=True)
class Line:
    """A curve; `spread`, half the height of its band, may be empty."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] = ()


@draws
def line_chart(
    lines: Sequence[Line], x_label: str, y_label: str, y_range: tuple[float, float] | None = None
) -> Drawing:
    """Draw curves with their names at their ends; y is a share of one, shown in percent."""
    drawn = [line for line in lines if len(line.x)]
    drawing = new_drawing(WIDTH, HEIGHT, f"{y_label} over {x_label} for {', '.join(line.name for line in drawn)}")
    axes = drawing.figure.add_subplot()
    if not drawn:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "nothing to draw", ha="center", color=FAINT)
        return drawing
    plain(axes, "", x_label, size=12)
    axes.set_title(f"{y_label} (%)", loc="left", fontsize=12.5, color=FAINT)
    low, high = y_range or _limits(drawn)
    axes.set_ylim(100 * low, 100 * high)
    first, last = min(min(line.x) for line in drawn), max(max(line.x) for line in drawn)
    if first < last:
        axes.set_xlim(first, last)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    for i, line in enumerate(drawn):
        _curve(drawing, axes, line, i, x_label)
    _names(axes, drawn, [(line.y[-1] - low) / ((high - low) or 1) for line in drawn])
    return drawing


def _limits(lines: Sequence[Line]) -> tuple[float, float]:
    """Room for the curves and their bands."""
    spans = [(np.asarray(line.y), np.asarray(line.spread or np.zeros(len(line.y)))) for line in lines]
    low, high = float(min((y - s).min() for y, s in spans)), float(max((y + s).max() for y, s in spans))
    room = 0.06 * ((high - low) or 0.1)
    if low >= 0 and high <= 1:
        return max(low - room, 0.0), min(high + room, 1.0)
    return low - room, high + room


def _curve(drawing: Drawing, axes: Axes, line: Line, index: int, x_label: str) -> None:
    style, y = series_style(index) | {"marker": ""}, 100 * np.asarray(line.y, dtype=float)
    if line.spread:
        reach = 100 * np.asarray(line.spread, dtype=float)
        axes.fill_between(line.x, y - reach, y + reach, color=style["color"], alpha=0.13, lw=0)
    axes.plot(line.x, y, lw=2, **style)
    every = max(1, len(y) // MOST_TIPS)
    points = list(zip(line.x, y, strict=True))[::every]
    (spots,) = axes.plot([a for a, _ in points], [b for _, b in points], "o", ms=12, alpha=0, clip_on=False)
    drawing.tip(spots, *(f"{line.name}: {x_label} {a:g}, {b:.3g} %" for a, b in points))


def _names(axes: Axes, lines: Sequence[Line], heights: Sequence[float]) -> None:
    """Write names at the ends of the curves, pushed apart where they would overlap."""
    order = sorted(range(len(lines)), key=lambda i: -heights[i])
    wanted = [heights[i] for i in order]
    for k in range(1, len(wanted)):
        wanted[k] = min(wanted[k], wanted[k - 1] - APART)
    below = min(0.0, wanted[-1])
    for k, i in enumerate(order):
        y = wanted[k] - below
        style = series_style(i) | {"marker": ""}
        axes.plot([1.012, 1.045], [y, y], transform=axes.transAxes, clip_on=False, lw=2, **style)
        axes.text(1.06, y, lines[i].name, transform=axes.transAxes, va="center", fontsize=12.5, color=INK)


@draws
def class_curves(
    classes: Mapping[str, Sequence[str]],
    panels: Mapping[str, Mapping[str, Mapping[str, FloatArray]]],
    rows: Mapping[str, str],
    heading: str,
) -> Drawing:
    """Draw `panels[quantity][setting][method]`, one number per class in the order of `classes[setting]`.

    There is one row of panels per quantity (`rows` has its axis label) and one column per setting.
    """
    settings = list(classes)
    drawing = new_drawing(460 * len(settings), 65 + 210 * len(panels), heading)
    grid = drawing.figure.subplots(len(panels), len(settings), squeeze=False, sharey="row")
    methods = list(dict.fromkeys(m for parts in panels.values() for found in parts.values() for m in found))
    for i, (quantity, parts) in enumerate(panels.items()):
        for j, setting in enumerate(settings):
            axes, names, last = grid[i, j], classes[setting], i == len(panels) - 1
            label = "classes, from most to fewest training samples" if last and len(names) > 1 else ""
            plain(axes, setting if i == 0 else "", label, rows[quantity] if j == 0 else "")
            for m, method in enumerate(methods):
                if method in parts[setting]:
                    # Many classes leave no room for marks.
                    style = series_style(m) | ({} if len(names) <= MOST_NAMES else {"marker": ""})
                    front = 5 if method == "NDCL" else 3
                    axes.plot(range(len(names)), parts[setting][method], lw=1.5, ms=4, zorder=front, **style)
            axes.axhline(0, color=FAINT, lw=0.8, zorder=1)
            class_axis(axes, names, 400, MOST_NAMES, shown=last)
    _finish(drawing, methods, heading)
    return drawing


@draws
def parameter_curves(
    x: Sequence[float], panels: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]], x_label: str, heading: str
) -> Drawing:
    """Draw one panel per setting; `panels[setting][group]` holds means and standard errors (NaN: none) over x."""
    drawing = new_drawing(375 * len(panels), 260, heading)
    grid = drawing.figure.subplots(1, len(panels), squeeze=False, sharey=True)
    groups = list(dict.fromkeys(group for found in panels.values() for group in found))
    for j, (setting, found) in enumerate(panels.items()):
        axes = grid[0, j]
        plain(axes, setting, x_label, "target accuracy (%)" if j == 0 else "")
        for g, group in enumerate(groups):
            if group not in found:
                continue
            mean, error = found[group]
            style = series_style(g)
            axes.plot(x, mean, lw=2.2 if group == "Average" else 1.4, ms=4.5, zorder=4, **style)
            if np.isfinite(error).any():
                spread = np.nan_to_num(error)
                axes.fill_between(x, mean - spread, mean + spread, color=style["color"], alpha=0.13, lw=0, zorder=2)
        if min(x) > 0 and max(x) / min(x) > 5:
            axes.set_xscale("log")
        axes.set_xticks(list(x), [f"{value:g}" for value in x])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
    _finish(drawing, groups, heading)
    return drawing


def _finish(drawing: Drawing, names: Sequence[str], heading: str) -> None:
    handles = [Line2D([], [], lw=1.6, ms=5, label=name, **series_style(i)) for i, name in enumerate(names)]
    legend(drawing.figure, handles, 72 * drawing.figure.get_figwidth(), place=BELOW)
    headline(drawing.figure, heading)


POINTS_WIDTH, POINTS_HEIGHT = 560.0, 350.0
MOST_NAMED_POINTS = 1500  # points that show their name on hover


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
    drawing = new_drawing(POINTS_WIDTH, POINTS_HEIGHT, f"{y_label} over {x_label} of {count} runs")
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
        if count <= MOST_NAMED_POINTS:
            values = zip(group.names, group.x, group.y, strict=True)
            drawing.tip(points, *(f"{name}: {x_label} {x:.3g}, {100 * y:.1f} %" for name, x, y in values))
    legend(drawing.figure, handles, POINTS_WIDTH, 12)
    return drawing


RANK_AXIS, RANK_SIDE, RANK_ROW, RANK_BAR = 420.0, 130.0, 16.0, 7.0  # points
LONGEST_NAME = 30  # letters of a name that are shown; all of it on hover


@draws
def rank_diagram(
    ranks: Mapping[str, float], difference: float, groups: Sequence[Sequence[str]], cases: int, heading: str = "",
    marked: str = "",
) -> Drawing:  # fmt: skip
    """Draw average ranks (1 is the best) with the groups of `analysis.rank_groups`; the name `marked` stands out."""
    names = sorted(ranks, key=lambda name: ranks[name])
    count, half = len(names), (len(names) + 1) // 2
    # Room for the longest name, its rank and the gap to the axis.
    side = max(RANK_SIDE, LETTER * 11 * max(len(short(name, LONGEST_NAME)) for name in names) + 50)
    width, top = RANK_AXIS + 2 * side, 58.0 + 22 * bool(heading)
    bars = 14 + RANK_BAR * len(groups)
    height = top + bars + RANK_ROW * half + 12
    drawing = new_drawing(width, height, f"Average ranks of {count} methods over {cases} cases", 560)
    # One unit is one point; y is zero at the axis and grows downward.
    axes = drawing.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height - top, -top))
    drawing.figure.set_layout_engine("none")
    axes.set_axis_off()

    def px(rank: float) -> float:
        return side + (rank - 1) / max(count - 1, 1) * RANK_AXIS

    if heading:
        axes.text(8, 16 - top, heading, fontsize=12, color=INK, va="center")
    shown = min(difference, count - 1.0)
    axes.plot([px(1), px(1 + shown)], [-38, -38], color=INK, lw=2, marker="|", ms=10, mew=2)
    more = "" if shown == difference else " (wider than the axis)"
    axes.text(px(1), -47, f"critical difference {difference:.2f}{more}", fontsize=11, color=INK)
    axes.plot([px(1), px(max(count, 2))], [0, 0], color=INK, lw=1)
    for rank in range(1, count + 1, 1 if count <= 13 else 2):
        axes.plot([px(rank)] * 2, [-5, 0], color=INK, lw=1)
        axes.text(px(rank), -9, str(rank), ha="center", fontsize=10, color=FAINT)
    for i, group in enumerate(groups):
        ends = [px(min(ranks[m] for m in group)) - 3, px(max(ranks[m] for m in group)) + 3]
        (bar,) = axes.plot(ends, [10 + RANK_BAR * i] * 2, color=PALETTE[1], lw=4, solid_capstyle="round", zorder=4)
        drawing.tip(bar, f"no significant difference: {', '.join(group)}")
    for i, name in enumerate(names):
        left = i < half
        y = bars + RANK_ROW * ((i if left else count - 1 - i) + 0.5)
        x, edge = px(ranks[name]), side - 8 if left else width - side + 8
        axes.plot([x, x, edge], [0, y, y], color=LINE, lw=1, zorder=1)
        (dot,) = axes.plot(x, 0, "o", ms=7, color=PALETTE[0], mew=0, zorder=5)
        drawing.tip(dot, f"{name}: average rank {ranks[name]:.2f}")
        text = (
            f"{short(name, LONGEST_NAME)} {ranks[name]:.2f}"
            if left
            else f"{ranks[name]:.2f} {short(name, LONGEST_NAME)}"
        )
        axes.text(
            edge + (-4 if left else 4), y, text, ha="right" if left else "left", va="center", fontsize=11, color=INK,
            fontweight="bold" if name == marked else "normal",
        )  # fmt: skip
    return drawing
