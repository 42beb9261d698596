"""The two failure modes: misaligned long tails, and small domains absorbed by large ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from longshift.array_types import FloatArray
from longshift.report.figures.drawing import Drawing, draws, new_drawing
from longshift.report.figures.drawing_style import (
    BELOW,
    FAINT,
    INK,
    PALETTE,
    class_axis,
    headline,
    legend,
    plain,
    series_style,
    short,
)  # fmt: skip
from longshift.report.figures.heat_maps import number_map

MOST_NAMES = 25


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
