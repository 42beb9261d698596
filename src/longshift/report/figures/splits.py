"""Training sets: how many samples of each class each source domain gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter

from longshift.array_types import FloatArray, IntArray
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
    short,
)  # fmt: skip
from longshift.settings import SHOTS, SplitRecipe, ratios
from longshift.text import counted

MOST_BARS = 110  # in one panel; beyond, a panel holds points
MOST_COLORS = len(PALETTE)  # sources; beyond, a panel is a map
MOST_NAMES = 40  # class names on an axis
MOST_NUMBERS = 36  # bars with their number above them
PAGE_WIDTH, PAGE_HEIGHT = 560.0, 250.0


@dataclass(frozen=True, eq=False)
class SplitCounts:
    """`counts[source, class]` samples; `shots` names the group (many, medium, few) of each class, if known."""

    title: str
    classes: Sequence[str]
    sources: Sequence[str]
    counts: IntArray
    shots: Sequence[str] = ()

    @property
    def order(self) -> list[int]:
        """Classes, from most to fewest samples."""
        totals = self.counts.sum(axis=0)
        return sorted(range(len(self.classes)), key=lambda k: (-int(totals[k]), k))


@draws
def split_bars(given: SplitCounts) -> Drawing:
    """Draw one training set for a page; the title is left to the caption."""
    label = f"Training samples of {len(given.classes)} classes from {', '.join(given.sources)}"
    tall = 12.0 * len(given.sources) if len(given.sources) > MOST_COLORS else 0.0
    drawing = new_drawing(PAGE_WIDTH, max(PAGE_HEIGHT, tall), label)
    axes = drawing.figure.add_subplot()
    colors = dict(zip(given.sources, PALETTE * len(given.sources), strict=False))
    _panel(drawing, axes, given, colors, int(given.counts.max()), PAGE_WIDTH - 50, 11)
    if len(given.sources) <= MOST_COLORS:
        legend(drawing.figure, [Patch(color=colors[name], label=name) for name in given.sources], PAGE_WIDTH, 12)
    return drawing


@draws
def split_panels(recipes: Sequence[SplitRecipe]) -> Drawing:
    """Draw one panel per recipe, usually the targets of one dataset, two side by side."""
    columns = 1 if len(recipes) == 1 else 2
    rows = math.ceil(len(recipes) / columns)
    named = max(len(recipe.classes) for recipe in recipes) in range(11, MOST_NAMES + 1)
    width, height = (576.0, 281.0) if len(recipes) == 1 else (936.0, 223.0)
    names = dict.fromkeys(f"{recipe.dataset}, {recipe.setting}" for recipe in recipes)
    heading = f"Training samples per class: {'; '.join(names)}"
    drawing = new_drawing(width, 65 + (height + 43 * named) * rows, heading)
    one_axis = len(recipes[0].sources) <= MOST_COLORS
    panels = list(drawing.figure.subplots(rows, columns, squeeze=False, sharey=one_axis).flat)
    domains = list(dict.fromkeys(name for recipe in recipes for name in sorted((*recipe.sources, recipe.target))))
    colors = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(domains)}
    largest = max(int(recipe.counts.max()) for recipe in recipes)
    for axes, recipe in zip(panels, recipes, strict=False):
        found = ratios(recipe.counts, recipe.sources)
        title = f"target: {recipe.target}   (CR {found.cr:.4g}, DR {found.dr:.4g})"
        given = SplitCounts(title, recipe.classes, recipe.sources, recipe.counts, recipe.shots)
        _panel(drawing, axes, given, colors, largest, width / columns - 50, 8)
        axes.set_title(title, loc="left", fontsize=10, color=INK)
    for axes in panels[len(recipes) :]:
        axes.set_axis_off()
    headline(drawing.figure, heading)
    if one_axis:
        used = [name for name in domains if any(name in recipe.sources for recipe in recipes)]
        legend(drawing.figure, [Patch(color=colors[name], label=name) for name in used], width, place=BELOW)
    return drawing


def _panel(
    drawing: Drawing, axes: Axes, given: SplitCounts, colors: Mapping[str, str], largest: int, room: float, size: float
) -> None:  # fmt: skip
    order = given.order
    counts, names = given.counts[:, order], [given.classes[k] for k in order]
    many = len(names) > MOST_NAMES
    plain(axes, "", f"{len(names)} classes, from most to fewest samples" if many else "", size=size + 1)
    class_axis(axes, names, room, MOST_NAMES, size)
    if len(given.sources) > MOST_COLORS:
        _map(drawing, axes, given, counts)
        return
    width = 0.84 / len(given.sources)
    for d, source in enumerate(given.sources):
        x: FloatArray = np.arange(len(names), dtype=np.float64) + (d - (len(given.sources) - 1) / 2) * width
        if counts.size <= MOST_BARS:
            _bars(drawing, axes, x, counts[d], (width, colors[source], size), [f"{k}, {source}" for k in names])
        else:
            shown = np.where(counts[d] > 0, counts[d], np.nan)
            axes.plot(x, shown, ".", ms=4, color=colors[source], zorder=3)
    _count_axis(axes, largest, size)
    _groups(axes, [given.shots[k] for k in order] if given.shots else [], size)


def _bars(
    drawing: Drawing, axes: Axes, x: FloatArray, counts: IntArray, look: tuple[float, str, float],
    names: Sequence[str],
) -> None:  # fmt: skip
    width, color, size = look
    for bar, n, name in zip(axes.bar(x, counts, width * 0.94, color=color, zorder=3), counts, names, strict=True):
        drawing.tip(bar, f"{name}: {counted(n, 'sample')}")
    if len(counts) * 0.84 / width <= MOST_NUMBERS:
        for position, n in zip(x, counts, strict=True):
            axes.annotate(
                str(n), (position, max(n, 0.75)), (0, 1.5), textcoords="offset points", ha="center", va="bottom",
                fontsize=0.8 * size, color=INK, zorder=4,
            )  # fmt: skip


def _map(drawing: Drawing, axes: Axes, given: SplitCounts, counts: IntArray) -> None:
    shown = np.ma.masked_less(counts.astype(float), 1)
    image = axes.imshow(
        shown, aspect="auto", cmap="cividis", norm=LogNorm(1, max(2, int(counts.max()))), interpolation="nearest"
    )
    step = math.ceil(len(given.sources) / MOST_NAMES)
    labels = [short(name) for name in given.sources[::step]]
    axes.set_yticks(range(0, len(given.sources), step), labels, fontsize=8, color=INK)
    axes.grid(visible=False)
    bar = drawing.figure.colorbar(image, ax=axes, pad=0.01, format=FuncFormatter(lambda value, _: f"{value:g}"))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.set_label("samples", color=FAINT)
    bar.outline.set_visible(False)
    bar.ax.tick_params(which="both", length=0, labelcolor=FAINT)


def _count_axis(axes: Axes, largest: int, size: float) -> None:
    """Logarithmic, since one sample and seven hundred share the figure; a factor of room above for numbers."""
    if largest > 20:
        axes.set_yscale("log")
        axes.set_ylim(0.7, largest * 2.6)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(which="minor", left=False)
    else:
        axes.set_ylim(0, largest * 1.35 + 1)
    place = axes.get_subplotspec()
    if place is None or place.is_first_col():
        axes.set_ylabel("training samples", fontsize=size + 1, color=FAINT)


def _groups(axes: Axes, shots: Sequence[str], size: float) -> None:
    """Mark each run of classes of one group; ordered by size, each group is one run."""
    for group in SHOTS:
        members = [k for k, shot in enumerate(shots) if shot == group]
        if not members:
            continue
        left, right = members[0] - 0.5, members[-1] + 0.5
        above = axes.get_xaxis_transform()
        if group != "medium":
            axes.axvspan(left, right, color=LINE, alpha=0.3, zorder=0, lw=0)
        axes.text((left + right) / 2, 0.985, group, transform=above, ha="center", va="top", fontsize=size, color=FAINT)
        if members[-1] + 1 < len(shots):
            axes.plot([right] * 2, [0, 1], transform=above, color=PAPER, lw=1.5, zorder=1)
