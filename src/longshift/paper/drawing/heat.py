"""Heat maps with their numbers written in: accuracy over two parameters, distances between domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from longshift.metrics import FloatArray
from longshift.paper.drawing.style import INK, new_figure, plain, title
from longshift.report import DASH

MAP = "cividis"  # even in grey and for every kind of colour blindness


def draw_grids(
    exponents: Sequence[int], panels: Mapping[str, Mapping[str, FloatArray]], heading: str
) -> Figure:  # fmt: skip
    """`panels[setting][group]`: accuracy (%) by alpha (rows, upwards) and beta (columns), axes in log10."""
    groups = list(dict.fromkeys(group for found in panels.values() for group in found))
    size = 0.62 + 0.36 * len(exponents)
    figure = new_figure(0.6 + size * len(groups), 0.75 + (size + 0.2) * len(panels))
    grid = figure.subplots(len(panels), len(groups), squeeze=False)
    for i, (setting, found) in enumerate(panels.items()):
        for j, group in enumerate(groups):
            axes = grid[i, j]
            if group not in found:
                axes.set_axis_off()
                continue
            write_grid(axes, found[group], "%.0f")
            ticks = range(len(exponents))
            plain(axes, f"{setting}: {group}" if j == 0 else group, "log10 beta" if i == len(panels) - 1 else "")
            axes.set_xticks(ticks, [str(e) for e in exponents])
            axes.set_yticks(ticks, [str(e) for e in exponents])
            axes.invert_yaxis()
            axes.grid(visible=False)
            axes.spines[:].set_visible(False)
            if j == 0:
                axes.set_ylabel("log10 alpha", fontsize=9, color=INK)
            _frame_best(axes, found[group])
    title(figure, heading)
    return figure


def write_grid(axes: Axes, values: FloatArray, form: str, limits: tuple[float, float] | None = None) -> None:
    """A map with a number in each cell, dark on light and light on dark."""
    low, high = limits or (float(np.nanmin(values)), float(np.nanmax(values)))
    axes.imshow(np.ma.masked_invalid(values), cmap=MAP, vmin=low, vmax=high if high > low else low + 1, aspect="equal")
    small = values.shape[1] > 8
    for (i, j), value in np.ndenumerate(values):
        share = (value - low) / (high - low) if high > low else 0.0
        text = form % value if np.isfinite(value) else DASH
        colour = "#111111" if not np.isfinite(value) or share > 0.55 else "white"
        axes.text(j, i, text, ha="center", va="center", fontsize=6.5 if small else 8, color=colour)


def _frame_best(axes: Axes, values: FloatArray) -> None:
    if not np.isfinite(values).any():
        return
    i, j = np.unravel_index(int(np.nanargmax(values)), values.shape)
    axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, ec="#D55E00", lw=2, zorder=5))
