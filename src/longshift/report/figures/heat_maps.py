"""Heat maps: confusions, accuracy over two parameters, distances between domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from longshift.array_types import FloatArray
from longshift.report.figures.drawing import Drawing, draws, new_drawing
from longshift.report.figures.drawing_style import FAINT, INK, LINE, PALETTE, PAPER, headline, plain, short
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
            tips.append(f"{classes[i]} classified as {classes[j]}: {count} of {total} ({100 * share:.1f}%)")
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
            _frame_best(axes, found[group])
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


def _frame_best(axes: Axes, values: FloatArray) -> None:
    if np.isfinite(values).any():
        i, j = np.unravel_index(int(np.nanargmax(values)), values.shape)
        axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, ec=PALETTE[1], lw=2, zorder=5))
