"""Figures of the paper: positives and negatives, quantities of classes, parameters, the two failure modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from longshift.array_types import FloatArray, IntArray
from longshift.report.drawing import (
    BELOW,
    FAINT,
    INK,
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
from longshift.report.table import DASH

MAP = "cividis"  # even in gray and for every kind of color blindness
MOST_NAMES = 30  # class names on an axis


@draws
def negative_bars(classes: Sequence[str], positives: IntArray, negatives: IntArray, heading: str) -> Drawing:
    """Draw two panels with one class axis: samples of each class, and samples of all other classes."""
    width = max(470.0, min(860.0, 180 + 32 * len(classes)))
    drawing = new_drawing(width, 330, heading)
    upper, lower = drawing.figure.subplots(2, 1, sharex=True)
    for axes, values, color, label in (
        (upper, positives, PALETTE[0], "positives"), (lower, negatives, PALETTE[1], "negatives"),
    ):  # fmt: skip
        plain(axes, "", "classes, from most to fewest training samples" if axes is lower else "", label)
        axes.bar(range(len(classes)), values, 0.82, color=color, zorder=3)
        axes.set_ylim(0, float(values.max()) * 1.15)
        if len(classes) <= 20:
            for k, value in enumerate(values):
                axes.annotate(
                    str(value), (k, value), (0, 2), textcoords="offset points", ha="center", va="bottom", fontsize=7.5
                )  # fmt: skip
    class_axis(lower, classes, width - 60)
    headline(drawing.figure, heading)
    return drawing


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


@draws
def accuracy_grids(exponents: Sequence[int], panels: Mapping[str, Mapping[str, FloatArray]], heading: str) -> Drawing:
    """Draw `panels[setting][group]`: accuracy (%) by alpha (rows, upwards) and beta (columns), axes in log10."""
    groups = list(dict.fromkeys(group for found in panels.values() for group in found))
    size = 45 + 26 * len(exponents)
    drawing = new_drawing(44 + size * len(groups), 54 + (size + 15) * len(panels), heading)
    grid = drawing.figure.subplots(len(panels), len(groups), squeeze=False)
    for i, (setting, found) in enumerate(panels.items()):
        for j, group in enumerate(groups):
            axes = grid[i, j]
            if group not in found:
                axes.set_axis_off()
                continue
            number_map(axes, found[group], "%.0f")
            last = "log10 beta" if i == len(panels) - 1 else ""
            plain(axes, f"{setting}: {group}" if j == 0 else group, last, "log10 alpha" if j == 0 else "")
            axes.set_xticks(range(len(exponents)), [str(e) for e in exponents])
            axes.set_yticks(range(len(exponents)), [str(e) for e in exponents])
            axes.invert_yaxis()
            axes.grid(visible=False)
            if np.isfinite(found[group]).any():  # a frame around the best
                y, x = np.unravel_index(int(np.nanargmax(found[group])), found[group].shape)
                axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, ec=PALETTE[1], lw=2, zorder=5))
    headline(drawing.figure, heading)
    return drawing


def number_map(axes: Axes, values: FloatArray, form: str, limits: tuple[float, float] | None = None) -> None:
    """Draw a map with a number in each cell, dark on light and light on dark."""
    low, high = limits or (float(np.nanmin(values)), float(np.nanmax(values)))
    axes.imshow(np.ma.masked_invalid(values), cmap=MAP, vmin=low, vmax=high if high > low else low + 1, aspect="equal")
    small = values.shape[1] > 8
    for (i, j), value in np.ndenumerate(values):
        share = (value - low) / (high - low) if high > low else 0.0
        text = form % value if np.isfinite(value) else DASH
        color = INK if not np.isfinite(value) or share > 0.55 else PAPER
        axes.text(j, i, text, ha="center", va="center", fontsize=6.5 if small else 8, color=color)


@dataclass(frozen=True, eq=False)
class Misalignment:
    """One row of the first study."""

    rates: Mapping[str, tuple[FloatArray, FloatArray, FloatArray]]  # domain -> grid, (K, G) true positives, (K,) areas
    centroids: Mapping[str, FloatArray]  # domain -> (K,) distance of each class to the domain's centroid
    between_domains: float
    between_heads: float


@draws
def misalignment_panels(rows: Mapping[str, Misalignment], classes: Sequence[str], heading: str) -> Drawing:
    """Draw one row per method: ROC curves of each domain, then distances of classes to their domain's centroid."""
    domains = list(next(iter(rows.values())).rates)
    drawing = new_drawing(828, 65 + 176 * len(rows), heading)
    grid = drawing.figure.subplots(len(rows), 3, squeeze=False, width_ratios=(1, 1, 1.9))
    widest = max(float(np.nanmax(values)) for row in rows.values() for values in row.centroids.values())
    for i, (name, row) in enumerate(rows.items()):
        last = i == len(rows) - 1
        for j, domain in enumerate(domains):
            x, curves, areas = row.rates[domain]
            axes = grid[i, j]
            plain(axes, "", "false positive rate" if last else "", "true positive rate" if j == 0 else "")
            axes.set_title(f"{name}: {short(domain, 18)}", loc="left", fontsize=9, color=INK)
            axes.text(0.98, 0.05, f"mean AUC {np.nanmean(areas):.3f}", ha="right", fontsize=8.5, color=INK, zorder=6)
            for curve in curves:
                axes.plot(x, curve, color=PALETTE[j], lw=0.7, alpha=0.35)
            axes.plot(x, np.nanmean(curves, axis=0), color=PALETTE[j], lw=2.2)
            axes.plot([0, 1], [0, 1], color=FAINT, lw=0.8, ls=(0, (3, 3)))
            axes.set_xlim(-0.02, 1.02)
            axes.set_ylim(-0.02, 1.04)
            axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes = grid[i, 2]
        label = f"classes, from {domains[0]}'s largest to {domains[1]}'s largest"
        plain(axes, "", label if last else "", "distance to centroid")
        text = f"distance of domains {row.between_domains:.2f}, of their largest classes {row.between_heads:.2f}"
        axes.set_title(text, loc="left", fontsize=9, color=INK)
        width = 0.84 / len(domains)
        for j, domain in enumerate(domains):
            left = np.arange(len(classes)) + (j - (len(domains) - 1) / 2) * width
            axes.bar(left, row.centroids[domain], width * 0.92, color=PALETTE[j], zorder=3)
        axes.set_ylim(0, widest * 1.08)
        class_axis(axes, classes, 380, MOST_NAMES, shown=last)
    handles = [
        Line2D([], [], color=FAINT, lw=2.2, label="ROC, mean over classes"),
        Line2D([], [], color=FAINT, lw=0.7, label="ROC, one class"),
        *(Patch(color=PALETTE[j], label=domain) for j, domain in enumerate(domains)),
    ]
    legend(drawing.figure, handles, 828, place=BELOW)
    headline(drawing.figure, heading)
    return drawing


@dataclass(frozen=True, eq=False)
class Absorption:
    """One row of the second study."""

    steps: Sequence[int]
    losses: Mapping[str, Sequence[float]]  # source -> validation loss at each step
    names: Sequence[str]  # of the map: sources, then the target
    distances: FloatArray


@draws
def absorption_panels(rows: Mapping[str, Absorption], roles: Mapping[str, str], heading: str) -> Drawing:
    """Draw one row per method: validation loss of each source along training, and distances between domains."""
    drawing = new_drawing(756, 65 + 198 * len(rows), heading)
    grid = drawing.figure.subplots(len(rows), 2, squeeze=False, width_ratios=(1.55, 1))
    values = np.concatenate([row.distances[np.triu_indices(len(row.names), 1)] for row in rows.values()])
    limits = (0.0, float(values.max()) or 1.0)
    top = max(max(losses) for row in rows.values() for losses in row.losses.values())
    for i, (name, row) in enumerate(rows.items()):
        last = i == len(rows) - 1
        axes = grid[i, 0]
        plain(axes, name, "training step" if last else "", "validation loss")
        for j, losses in enumerate(row.losses.values()):
            axes.plot(row.steps, losses, lw=1.8, **(series_style(j) | {"marker": ""}))
        axes.set_ylim(0, top * 1.05)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        chart = grid[i, 1]
        shown = row.distances.copy()
        np.fill_diagonal(shown, np.nan)
        number_map(chart, shown, "%.2f", limits)
        labels = [short(name, 12) + ("" if name in roles else "\n(target)") for name in row.names]
        chart.set_xticks(range(len(labels)), labels if last else [""] * len(labels), fontsize=8)
        chart.set_yticks(range(len(labels)), labels, fontsize=8)
        chart.tick_params(left=False, bottom=False, colors=INK)
        chart.spines[:].set_visible(False)
        chart.set_title("distance between domains", loc="left", fontsize=9, color=INK)
    first = next(iter(rows.values()))
    handles = [
        Line2D([], [], lw=1.8, label=f"{source} ({roles[source]})", **(series_style(j) | {"marker": ""}))
        for j, source in enumerate(first.losses)
    ]
    legend(drawing.figure, handles, 756, place=BELOW)
    headline(drawing.figure, heading)
    return drawing
