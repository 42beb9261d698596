"""Curves in panels: per class, over a parameter, over training steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from longshift.metrics import FloatArray
from longshift.paper.drawing.style import FAINT, INK, new_figure, plain, series_style, shortened, title

MOST_NAMES = 30  # class names on an axis


def draw_class_curves(
    classes: Mapping[str, Sequence[str]],
    panels: Mapping[str, Mapping[str, Mapping[str, FloatArray]]],
    rows: Mapping[str, str],
    heading: str,
) -> Figure:
    """`panels[quantity][setting][method]` is one number a class, in the order of `classes[setting]`.

    One row of panels a quantity (`rows` has its axis label), one column a setting.
    """
    settings = list(classes)
    figure = new_figure(6.4 * len(settings), 0.9 + 2.9 * len(panels))
    grid = figure.subplots(len(panels), len(settings), squeeze=False, sharey="row")
    methods = list(dict.fromkeys(m for parts in panels.values() for found in parts.values() for m in found))
    for i, (quantity, parts) in enumerate(panels.items()):
        for j, setting in enumerate(settings):
            axes = grid[i, j]
            last = i == len(panels) - 1
            plain(axes, setting if i == 0 else "", _class_label(len(classes[setting])) if last else "", "")
            if j == 0:
                axes.set_ylabel(rows[quantity], fontsize=9, color=INK)
            names = classes[setting]
            for m, method in enumerate(methods):
                if method in parts[setting]:
                    # Many classes leave no room for marks.
                    style = series_style(m) | ({} if len(names) <= MOST_NAMES else {"marker": ""})
                    front = 5 if method == "NDCL" else 3
                    axes.plot(range(len(names)), parts[setting][method], lw=1.5, ms=4, zorder=front, **style)
            axes.set_xlim(-0.4, len(names) - 0.6)
            axes.axhline(0, color=FAINT, lw=0.8, zorder=1)
            _class_ticks(axes, names, last)
    _legend(figure, methods)
    title(figure, heading)
    return figure


def _class_label(count: int) -> str:
    return "classes, from most to fewest training samples" if count > 1 else ""


def _class_ticks(axes: Axes, names: Sequence[str], shown: bool) -> None:
    if len(names) > MOST_NAMES or not shown:
        axes.set_xticks([] if len(names) > MOST_NAMES else range(len(names)), None)
        axes.set_xticklabels([])
        return
    tilt = max(map(len, names)) * len(names) > 60
    axes.set_xticks(
        range(len(names)), shortened(names), rotation=45 if tilt else 0, ha="right" if tilt else "center", fontsize=8
    )


def draw_parameter(
    x: Sequence[float], panels: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]], x_label: str, heading: str
) -> Figure:
    """One panel a setting; `panels[setting][group]` holds means and standard errors (NaN: none) over the values x."""
    figure = new_figure(5.2 * len(panels), 3.6)
    grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)
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
    _legend(figure, groups)
    title(figure, heading)
    return figure


def _legend(figure: Figure, names: Sequence[str]) -> None:
    handles = [Line2D([], [], lw=1.6, ms=5, label=name, **series_style(i)) for i, name in enumerate(names)]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(names), 9), frameon=False, fontsize=9)
