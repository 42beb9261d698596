"""The two failure modes: misaligned long tails, and small domains absorbed by large ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from longshift.metrics import FloatArray
from longshift.paper.drawing.heat import write_grid
from longshift.paper.drawing.style import FAINT, INK, PALETTE, new_figure, plain, series_style, shortened, title

MOST_NAMES = 25


@dataclass(frozen=True, eq=False)
class Misalignment:
    """One row of the first study."""

    rates: Mapping[str, tuple[FloatArray, FloatArray, FloatArray]]  # domain -> grid, (K, G) true positives, (K,) areas
    centroids: Mapping[str, FloatArray]  # domain -> (K,) distance of each class to the domain's centroid
    between_domains: float
    between_heads: float


def draw_misalignment(rows: Mapping[str, Misalignment], classes: Sequence[str], heading: str) -> Figure:
    """One row a method: ROC curves of each domain, then the distances of classes to their domain's centroid."""
    domains = list(next(iter(rows.values())).rates)
    figure = new_figure(11.5, 0.9 + 2.45 * len(rows))
    grid = figure.subplots(len(rows), 3, squeeze=False, width_ratios=(1, 1, 1.9))
    widest = max(float(np.nanmax(values)) for row in rows.values() for values in row.centroids.values())
    for i, (name, row) in enumerate(rows.items()):
        for j, domain in enumerate(domains):
            x, curves, areas = row.rates[domain]
            axes = grid[i, j]
            last = i == len(rows) - 1
            plain(axes, "", "false positive rate" if last else "", "true positive rate" if j == 0 else "")
            axes.set_title(f"{name}: {shortened([domain], 18)[0]}", loc="left", fontsize=9, color=INK)
            axes.text(0.98, 0.05, f"mean AUC {np.nanmean(areas):.3f}", ha="right", fontsize=8.5, color=INK, zorder=6)
            for curve in curves:
                axes.plot(x, curve, color=PALETTE[j], lw=0.7, alpha=0.35)
            axes.plot(x, np.nanmean(curves, axis=0), color=PALETTE[j], lw=2.2)
            axes.plot([0, 1], [0, 1], color=FAINT, lw=0.8, ls=(0, (3, 3)))
            axes.set_xlim(-0.02, 1.02)
            axes.set_ylim(-0.02, 1.04)
            axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        _bars(grid[i, 2], row, domains, classes, widest, i == len(rows) - 1)
    handles = [
        Line2D([], [], color=FAINT, lw=2.2, label="ROC, mean over classes"),
        Line2D([], [], color=FAINT, lw=0.7, label="ROC, one class"),
        *(Patch(color=PALETTE[j], label=domain) for j, domain in enumerate(domains)),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    title(figure, heading)
    return figure


def _bars(
    axes: Axes, row: Misalignment, domains: Sequence[str], classes: Sequence[str], widest: float, last: bool
) -> None:  # fmt: skip
    plain(
        axes,
        "",
        f"classes, from {domains[0]}'s largest to {domains[1]}'s largest" if last else "",
        "distance to centroid",
    )
    text = f"distance of domains {row.between_domains:.2f}, of their largest classes {row.between_heads:.2f}"
    axes.set_title(text, loc="left", fontsize=9, color=INK)
    width = 0.84 / len(domains)
    for j, domain in enumerate(domains):
        x = np.arange(len(classes)) + (j - (len(domains) - 1) / 2) * width
        axes.bar(x, row.centroids[domain], width * 0.92, color=PALETTE[j], zorder=3)
    axes.set_ylim(0, widest * 1.08)
    axes.set_xlim(-0.6, len(classes) - 0.4)
    if len(classes) <= MOST_NAMES:
        tilt = max(map(len, classes)) * len(classes) > 50
        names = shortened(classes) if last else [""] * len(classes)
        axes.set_xticks(range(len(classes)), names, rotation=30 if tilt else 0, ha="right" if tilt else "center")
    else:
        axes.set_xticks([])


@dataclass(frozen=True, eq=False)
class Absorption:
    """One row of the second study."""

    steps: Sequence[int]
    losses: Mapping[str, Sequence[float]]  # source -> validation loss at each step
    names: Sequence[str]  # of the map: sources, then the target
    distances: FloatArray


def draw_absorption(rows: Mapping[str, Absorption], roles: Mapping[str, str], heading: str) -> Figure:
    """One row a method: validation loss of each source while training, and the distances between domains."""
    figure = new_figure(10.5, 0.9 + 2.75 * len(rows))
    grid = figure.subplots(len(rows), 2, squeeze=False, width_ratios=(1.55, 1))
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
        write_grid(chart, shown, "%.2f", limits)
        short = zip(row.names, shortened(row.names, 12), strict=True)
        labels = [text if name in roles else f"{text}\n(target)" for name, text in short]
        chart.set_xticks(range(len(labels)), labels if last else [""] * len(labels), fontsize=8)
        chart.set_yticks(range(len(labels)), labels, fontsize=8)
        chart.tick_params(length=0, colors=INK)
        chart.spines[:].set_visible(False)
        chart.set_title("distance between domains", loc="left", fontsize=9, color=INK)
    first = next(iter(rows.values()))
    handles = [
        Line2D([], [], lw=1.8, label=f"{source} ({roles[source]})", **(series_style(j) | {"marker": ""}))
        for j, source in enumerate(first.losses)
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=3, frameon=False, fontsize=9)
    title(figure, heading)
    return figure
