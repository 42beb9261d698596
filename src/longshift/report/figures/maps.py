"""Heat maps: confusions, accuracy over two parameters, distances between domains; and the two failure modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from longshift.array_types import FloatArray
from longshift.report.figures.drawing import (
    BELOW,
    FAINT,
    INK,
    LINE,
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

MOST_NUMBERS = 16  # classes; beyond, cells hold no numbers
MAP = "cividis"  # even in gray and for every kind of color blindness


@draws
def confusion_map(classes: Sequence[str], counts: Sequence[Sequence[int]]) -> Drawing:
    """Draw `counts[true][predicted]` as shares of the true class, correct ones in one hue, mistakes in another."""
    n = len(classes)
    cell = max(9.0, min(34.0, 560.0 / n))
    font = max(6.5, min(11.0, cell * 0.85))
    edge = 16 + 0.62 * font * max(len(short(name)) for name in classes)
    size = edge + cell * n
    drawing = new_drawing(max(size + 8, 230), size + 26, f"Confusion matrix of {n} classes", int(min(size, 620)))
    axes = drawing.figure.add_subplot(aspect="equal", xlim=(0, n), ylim=(n, 0))
    plain(axes, "", "row: true class, column: predicted class", size=10.5)
    axes.grid(visible=False)
    axes.spines[:].set(visible=True, color=LINE)
    names, middle = [short(name) for name in classes], np.arange(n) + 0.5
    axes.set_yticks(middle, names, fontsize=font, color=INK)
    up: dict[str, Any] = {"rotation": 90, "rotation_mode": "anchor", "ha": "left", "va": "center"}
    axes.set_xticks(middle, names, fontsize=font, color=INK, **up)
    axes.tick_params(top=False, labeltop=True, labelbottom=False, pad=3)
    for labels in (axes.get_yticklabels(), axes.get_xticklabels()):
        for text, name in zip(labels, classes, strict=True):
            if name != short(name):
                drawing.tip(text, name)
    squares, fills, tips = [], [], []
    gap = (0.5 if cell > 12 else 0.25) / cell
    for i, row in enumerate(counts):
        total = sum(row)
        if not total:
            axes.text(0.1, i + 0.5, "no sample", fontsize=font, color=FAINT, va="center")
        for j, count in enumerate(row):
            if not count:
                continue
            share = count / total
            shade = max(0.08, share**0.5)  # a square root makes the rare confusions visible
            low_x, high_x, low_y, high_y = j + gap, j + 1 - gap, i + gap, i + 1 - gap
            squares.append([(low_x, low_y), (high_x, low_y), (high_x, high_y), (low_x, high_y)])
            fills.append(to_rgba(PALETTE[0 if i == j else 1], shade))
            tips.append(f"{classes[i]} classified as {classes[j]}: {count} of {total} ({100 * share:.1f} %)")
            if n <= MOST_NUMBERS and share >= 0.005:
                color = PAPER if shade > 0.62 else INK
                axes.text(j + 0.5, i + 0.5, f"{100 * share:.0f}", ha="center", va="center", fontsize=10, color=color)
    cells = PolyCollection(squares, facecolors=fills, linewidths=0, zorder=1, clip_on=False)
    drawing.tip(axes.add_collection(cells), *tips)
    return drawing


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


MOST_CLASS_NAMES = 25


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
        class_axis(axes, classes, 380, MOST_CLASS_NAMES, shown=last)
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
