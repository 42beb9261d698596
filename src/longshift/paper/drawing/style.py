"""One look for all pictures: colours that every eye can tell apart, little ink, room for names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longshift.settings import FAINT, INK, PALETTE

DASHES: tuple[object, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)), (0, (9, 3)), (0, (3, 3)))
MARKS = ("o", "D", "s", "^", "v", "P", "X", "h")
GRID = "#E3E6EA"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure whose parts do not overlap."""
    return Figure(figsize=(width, height), layout="constrained")


def title(figure: Figure, text: str) -> None:
    """A headline, left, as in all our pictures."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=12, color=INK)


def plain(axes: Axes, heading: str = "", x_label: str = "", y_label: str = "") -> None:
    """Axes with as little ink as possible."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(length=0, colors=INK, labelsize=8)
    axes.grid(axis="y", color=GRID, lw=0.8, zorder=0)
    axes.set_axisbelow(True)
    if heading:
        axes.set_title(heading, loc="left", fontsize=10, color=INK)
    axes.set_xlabel(x_label, fontsize=9, color=INK)
    axes.set_ylabel(y_label, fontsize=9, color=INK)


def series_style(index: int) -> dict[str, Any]:
    """Colour, dash and mark of a series: colour is never the only difference."""
    return {
        "color": PALETTE[index % len(PALETTE)], "linestyle": DASHES[index % len(DASHES)],
        "marker": MARKS[index % len(MARKS)],
    }  # fmt: skip


def shortened(names: Sequence[str], most: int = 14) -> list[str]:
    """Names cut to `most` letters."""
    return [name if len(name) <= most else name[: most - 1] + "…" for name in names]


__all__ = ["FAINT", "GRID", "INK", "PALETTE", "new_figure", "plain", "series_style", "shortened", "title"]
