"""Pictures of settings: how many training samples of each class each source domain gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter

from longshift.files import replacing
from longshift.settings.imbalance_ratios import ratios
from longshift.settings.shots import SHOTS
from longshift.settings.split_file import SplitRecipe

# Okabe and Ito: distinguishable with every common kind of colour blindness.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#5A5A5A")
BANDS = {"many": "#E9EDF2", "medium": "#F6F7F9", "few": "#E9EDF2"}
INK, FAINT = "#222222", "#888888"
MOST_BARS = 110  # in one panel; beyond, a panel holds lines
MOST_LINES = len(PALETTE)  # beyond, a panel is a map
MOST_NAMES = 40  # class names on an axis


def plot_settings(recipes: Sequence[SplitRecipe], path: Path | str, dpi: int = 150) -> None:
    """Draw one panel for each recipe (usually the targets of one dataset) into a PNG."""
    figure = draw_settings(recipes)
    with replacing(Path(path)) as temporary:
        figure.savefig(temporary, format="png", dpi=dpi, facecolor="white")


def draw_settings(recipes: Sequence[SplitRecipe]) -> Figure:
    """The figure, two panels a row."""
    columns = 1 if len(recipes) == 1 else 2
    rows = math.ceil(len(recipes) / columns)
    classes = max(len(recipe.classes) for recipe in recipes)
    width = 8.0 if len(recipes) == 1 else 13.0
    height = (3.9 if len(recipes) == 1 else 3.1) + (0.6 if 10 < classes <= MOST_NAMES else 0)
    figure = Figure(figsize=(width, 0.9 + height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=len(recipes[0].sources) <= MOST_LINES)
    domains = list(dict.fromkeys(name for recipe in recipes for name in sorted((*recipe.sources, recipe.target))))
    colours = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(domains)}
    largest = max(int(recipe.counts.max()) for recipe in recipes)  # the panels share their axis
    panels = list(grid.flat)
    for axes, recipe in zip(panels, recipes, strict=False):
        _panel(figure, axes, recipe, colours, largest)
    for axes in panels[len(recipes) :]:
        axes.set_axis_off()
    first = recipes[0]
    names = dict.fromkeys(f"{recipe.dataset}, {recipe.setting}" for recipe in recipes)
    figure.suptitle(f"Training samples per class: {'; '.join(names)}", x=0.01, ha="left", fontsize=12, color=INK)
    if len(first.sources) <= MOST_LINES:
        used = [name for name in domains if any(name in recipe.sources for recipe in recipes)]
        handles = [Patch(color=colours[name], label=name) for name in used]
        figure.legend(
            handles=handles, loc="outside lower center", ncols=8, frameon=False, title="source domain", fontsize=9
        ).get_title().set_fontsize(9)
    return figure


def _panel(figure: Figure, axes: Axes, recipe: SplitRecipe, colours: dict[str, str], largest: int) -> None:
    order = sorted(range(len(recipe.classes)), key=lambda k: (-int(recipe.counts[:, k].sum()), k))
    counts = recipe.counts[:, order]
    found = ratios(recipe.counts, recipe.sources)
    axes.set_title(
        f"target: {recipe.target}   (CR {found.cr:.4g}, DR {found.dr:.4g})", loc="left", fontsize=10, color=INK
    )
    axes.spines[["top", "right"]].set_visible(False)
    _class_axis(axes, [recipe.classes[k] for k in order])
    if len(recipe.sources) > MOST_LINES:
        _map(figure, axes, recipe, counts)
        return
    if counts.size <= MOST_BARS:
        _bars(axes, recipe, counts, colours)
    else:
        for d, source in enumerate(recipe.sources):
            shown = np.where(counts[d] > 0, counts[d], np.nan)
            x = np.arange(len(shown)) + (d - (len(recipe.sources) - 1) / 2) * 0.84 / len(recipe.sources)
            axes.plot(x, shown, ".", ms=4, color=colours[source], zorder=3)
    _count_axis(axes, largest)
    _bands(axes, [recipe.shots[k] for k in order])


def _bars(axes: Axes, recipe: SplitRecipe, counts: np.typing.NDArray[np.int64], colours: dict[str, str]) -> None:
    width = 0.84 / len(recipe.sources)
    for d, source in enumerate(recipe.sources):
        x = np.arange(counts.shape[1]) + (d - (len(recipe.sources) - 1) / 2) * width
        axes.bar(x, counts[d], width * 0.94, bottom=0, color=colours[source], zorder=3)
        if counts.size <= 36:
            for position, n in zip(x, counts[d], strict=True):
                axes.annotate(
                    str(n), (position, max(n, 0.75)), (0, 1.5), textcoords="offset points",
                    ha="center", va="bottom", fontsize=6.5, color=INK, zorder=4,
                )  # fmt: skip


def _map(figure: Figure, axes: Axes, recipe: SplitRecipe, counts: np.typing.NDArray[np.int64]) -> None:
    shown = np.ma.masked_less(counts.astype(float), 1)
    image = axes.imshow(
        shown, aspect="auto", cmap="cividis", norm=LogNorm(1, max(2, int(counts.max()))), interpolation="nearest"
    )
    step = math.ceil(len(recipe.sources) / MOST_NAMES)
    axes.set_yticks(range(0, len(recipe.sources), step), recipe.sources[::step], fontsize=6)
    axes.spines[["left", "bottom"]].set_visible(False)
    figure.colorbar(image, ax=axes, label="samples", pad=0.01)


def _class_axis(axes: Axes, names: Sequence[str]) -> None:
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.tick_params(length=0, colors=INK)
    if len(names) > MOST_NAMES:
        axes.set_xticks([])
        axes.set_xlabel(f"{len(names)} classes, ordered by size", fontsize=9, color=INK)
        return
    tilt = len(names) > 10 or max(map(len, names)) * len(names) > 75
    labels = [name if len(name) <= 18 else name[:17] + "…" for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=45 if tilt else 0, ha="right" if tilt else "center", fontsize=8)


def _count_axis(axes: Axes, largest: int) -> None:
    """Logarithmic, since one sample and seven hundred share the picture; a factor of room above for numbers."""
    if largest > 20:
        axes.set_yscale("log")
        axes.set_ylim(0.7, largest * 2.6)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, largest * 1.35 + 1)
    specification = axes.get_subplotspec()
    if specification is None or specification.is_first_col():
        axes.set_ylabel("training samples", fontsize=9, color=INK)
    axes.grid(axis="y", color="white", lw=0.9, zorder=1)


def _bands(axes: Axes, shots: Sequence[str]) -> None:
    """A background for each run of classes of one group; ordered by size, each group is one run."""
    for group in SHOTS:
        members = [k for k, shot in enumerate(shots) if shot == group]
        if not members:
            continue
        left, right = members[0] - 0.5, members[-1] + 0.5
        axes.axvspan(left, right, color=BANDS[group], zorder=0, lw=0)
        axes.text(
            (left + right) / 2, 0.985, group, transform=axes.get_xaxis_transform(), ha="center", va="top",
            fontsize=8, color=FAINT, style="italic",
        )  # fmt: skip
        if members[-1] + 1 < len(shots):
            axes.add_line(Line2D([right] * 2, [0, 1], transform=axes.get_xaxis_transform(), color="#C4CAD2", lw=0.8))
