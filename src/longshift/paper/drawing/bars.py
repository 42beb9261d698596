"""Bars: positives and negatives of each class."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from longshift.array_types import IntArray
from longshift.paper.drawing.style import PALETTE, new_figure, plain, shortened, title

MOST_NAMES = 40


def draw_negatives(classes: Sequence[str], positives: IntArray, negatives: IntArray, heading: str) -> Figure:
    """Two panels with one class axis: samples of each class, and samples of all other classes."""
    figure = new_figure(max(6.5, min(12.0, 2.5 + 0.45 * len(classes))), 4.6)
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, values, colour, label in (
        (upper, positives, PALETTE[0], "positives"), (lower, negatives, PALETTE[1], "negatives"),
    ):  # fmt: skip
        bottom = axes is lower
        plain(axes, "", "classes, from most to fewest training samples" if bottom else "", label)
        axes.bar(range(len(classes)), values, 0.82, color=colour, zorder=3)
        axes.set_ylim(0, float(values.max()) * 1.15)
        if len(classes) <= 20:
            for k, value in enumerate(values):
                axes.annotate(
                    str(value), (k, value), (0, 2), textcoords="offset points", ha="center", va="bottom", fontsize=7.5
                )  # fmt: skip
        axes.set_xlim(-0.6, len(classes) - 0.4)
    if len(classes) <= MOST_NAMES:
        tilt = max(map(len, classes)) * len(classes) > 70
        lower.set_xticks(
            range(len(classes)), shortened(classes), rotation=45 if tilt else 0, ha="right" if tilt else "center"
        )
    else:
        lower.set_xticks([])
    title(figure, heading)
    return figure
