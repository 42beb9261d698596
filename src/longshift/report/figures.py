"""Figures of pages: accuracy of classes and sites, curves, ranks, confusions, training sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm, to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from matplotlib.transforms import blended_transform_factory

from longshift.array_types import IntArray
from longshift.report.drawing import (
    BELOW,
    FAINT,
    INK,
    LETTER,
    LINE,
    MARKS,
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
from longshift.settings import SHOTS, SplitRecipe, ratios
from longshift.text import counted

# Narrow, so that text can be read where a figure shrinks to a phone's width.
BARS_WIDTH, DOTS_WIDTH = 440.0, 500.0
WIDTH, HEIGHT = 440.0, 260.0
MOST_TIPS = 60  # points of a curve that show their value on hover
DARKEST = 0.58  # of a cell of a confusion matrix
MOST_SHARES = 16  # classes of a confusion matrix; beyond, cells hold no numbers
MOST_BARS = 400  # of a training set; beyond, and with more sources than colors, a panel is a map
MOST_NAMES = 40  # class names on an axis
MOST_NUMBERS = 36  # bars with their number above them
PAGE_WIDTH, PAGE_HEIGHT = 500.0, 250.0


@draws
def class_bars(
    classes: Sequence[str],
    accuracy: Mapping[str, Sequence[float | None]],
    shots: Sequence[str] | None = None,
    counts: Sequence[int] | None = None,
) -> Drawing:
    """Draw a bar for the first method and a mark for each other one; `accuracy[method]` has a number per class.

    Classes are ordered by their number of training samples; `shots` groups them.
    """
    methods = list(accuracy)
    order = sorted(range(len(classes)), key=lambda k: (-(counts[k] if counts else 0), k))
    grouped = shots is not None and len(set(shots)) > 1  # one group needs no heading
    heads = [i for i, k in enumerate(order) if shots and grouped and (i == 0 or shots[k] != shots[order[i - 1]])]
    row = 24.0 if len(classes) <= 15 else 17.0
    places = [i + 0.75 * sum(head <= i for head in heads) for i in range(len(order))]
    length = places[-1] + 1
    label = f"Accuracy of each of {len(classes)} classes for {', '.join(methods)}"
    drawing = new_drawing(BARS_WIDTH, row * length + 50 + 8 * (len(methods) > 3), label)
    axes = drawing.figure.add_subplot(ylim=(length - 0.5, -0.5))
    _percent_axis(axes)
    axes.set_yticks(places, [short(classes[k]) for k in order], color=INK)
    for text, k in zip(axes.get_yticklabels(), order, strict=True):
        drawing.tip(text, f"{classes[k]}, {counts[k]} training samples" if counts else classes[k])
    across = blended_transform_factory(drawing.figure.transFigure, axes.transData)
    for head in heads:
        y = places[head] - 0.55
        axes.plot([0.01, 0.99], [y, y], color=LINE, lw=1, transform=across, clip_on=False, in_layout=False)
        words = f"classes with {shots[order[head]] if shots else ''} samples"
        axes.text(
            0.01, y - 0.12, words, transform=across, fontsize=12, color=FAINT, fontweight="bold", va="bottom",
            in_layout=False,
        )  # fmt: skip
    beside = blended_transform_factory(axes.transAxes, axes.transData)
    for m, method in enumerate(methods):
        for y, k in zip(places, order, strict=True):
            value = accuracy[method][k]
            if value is None:
                if m == 0:
                    axes.text(1, y, "no sample", fontsize=9.5, color=FAINT, va="center")
                continue
            tip = f"{classes[k]}: {method} {100 * value:.1f} %"
            if m == 0:
                drawing.tip(axes.barh(y, 100 * value, 0.8, color=PALETTE[0], zorder=2, clip_on=False).patches[0], tip)
                axes.text(1.03, y, f"{100 * value:.0f} %", transform=beside, fontsize=11.5, color=INK, va="center")
            else:
                (mark,) = axes.plot(100 * value, y, zorder=3, clip_on=False, **_mark(m))
                drawing.tip(mark, tip)
    handles: list[Artist] = [Patch(color=PALETTE[0], label=methods[0])]
    handles += [Line2D([], [], label=method, **_mark(m)) for m, method in enumerate(methods[1:], 1)]
    legend(drawing.figure, handles, BARS_WIDTH, 12)
    return drawing


def _percent_axis(axes: Axes) -> None:
    plain(axes, size=12)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=LINE, lw=0.8)
    axes.set_xlim(0, 100)
    axes.set_xticks([0, 25, 50, 75, 100], ["0", "25 %", "50 %", "75 %", "100 %"])


def _mark(index: int) -> dict[str, Any]:
    """A shape of its own for each method."""
    color = PALETTE[index % len(PALETTE)]
    return {"marker": MARKS[(index - 1) % len(MARKS)], "color": color, "ms": 8, "mec": PAPER, "mew": 1, "linestyle": ""}


@dataclass(frozen=True)
class SiteDots:
    """A site: the accuracy of models that did not know it, and of those that did (None: not measured)."""

    name: str
    unseen: float
    known: float | None = None


@dataclass(frozen=True)
class NewSite:
    """A site without labels: the interval of its accuracy and, where one is expected, a number in it."""

    name: str
    low: float
    high: float
    mean: float | None = None


@draws
def site_dots(sites: Sequence[SiteDots], new: NewSite | None = None) -> Drawing:
    """Draw a row per site, the lowest first; the last row is the new site."""
    ordered = sorted(sites, key=lambda site: site.unseen)
    rows = len(ordered) + (new is not None)
    drawing = new_drawing(DOTS_WIDTH, 96 + 30.0 * rows, f"Accuracy at {len(sites)} held-out sites")
    axes = drawing.figure.add_subplot(ylim=(rows - 0.4, -0.6))
    _percent_axis(axes)
    axes.set_yticks(range(rows), [short(name) for name in (*(s.name for s in ordered), *([new.name] if new else []))])
    held_out: dict[str, Any] = {"marker": "o", "ls": "", "ms": 8, "color": PALETTE[0]}
    known = held_out | {"mfc": "none", "mew": 1.8}
    for row, site in enumerate(ordered):
        if site.known is not None:
            axes.plot([100 * site.unseen, 100 * site.known], [row, row], color=FAINT, lw=1.5, zorder=2)
            dot = axes.plot(100 * site.known, row, zorder=3, **known)[0]
            drawing.tip(dot, f"{site.name}, while known: {100 * site.known:.1f} %")
        dot = axes.plot(100 * site.unseen, row, zorder=4, **held_out)[0]
        drawing.tip(dot, f"{site.name}, while held out: {100 * site.unseen:.1f} %")
    handles = [Line2D([], [], label="while held out", **held_out)]
    if any(site.known is not None for site in ordered):
        handles.append(Line2D([], [], label="while known", **known))
    if new is not None:
        low, high = 100 * new.low, 100 * new.high
        bar = axes.plot([low, high], [rows - 1] * 2, color=PALETTE[1], lw=5, solid_capstyle="round", zorder=2)[0]
        drawing.tip(bar, f"{new.name}: {low:.0f} to {high:.0f} %")
        if new.mean is not None:
            dot = axes.plot(100 * new.mean, rows - 1, "D", ms=9, color=PALETTE[1], mec=PAPER, zorder=3)[0]
            drawing.tip(dot, f"{new.name}, expected: {100 * new.mean:.0f} %")
        what = "80 % interval" if new.mean is None else "expected, with 80 % interval"
        mark: dict[str, Any] = {} if new.mean is None else {"marker": "D", "ms": 9, "mec": PAPER}
        handles.append(Line2D([], [], color=PALETTE[1], lw=5, label=what, **mark))
    legend(drawing.figure, handles, DOTS_WIDTH, 11.5, BELOW)
    return drawing


@dataclass(frozen=True)
class Line:
    """A curve; `spread`, half the height of its band, may be empty."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] = ()


@draws
def line_chart(lines: Sequence[Line], x_label: str, y_label: str) -> Drawing:
    """Draw curves; y is a share of one, shown in percent."""
    drawn = [line for line in lines if len(line.x)]
    drawing = new_drawing(WIDTH, HEIGHT, f"{y_label} over {x_label} for {', '.join(line.name for line in drawn)}")
    axes = drawing.figure.add_subplot()
    if not drawn:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "nothing to draw", ha="center", color=FAINT)
        return drawing
    plain(axes, "", x_label, size=12)
    axes.set_title(f"{y_label} (%)", loc="left", fontsize=12.5, color=FAINT)
    low, high = _limits(drawn)
    axes.set_ylim(100 * low, 100 * high)
    first, last = min(min(line.x) for line in drawn), max(max(line.x) for line in drawn)
    if first < last:
        axes.set_xlim(first, last)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    for i, line in enumerate(drawn):
        _curve(drawing, axes, line, i, x_label)
    handles = [Line2D([], [], lw=2, label=line.name, **_curve_style(i)) for i, line in enumerate(drawn)]
    legend(drawing.figure, handles, WIDTH, 12, BELOW)
    return drawing


def _curve_style(index: int) -> dict[str, Any]:
    return series_style(index) | {"marker": ""}


def _limits(lines: Sequence[Line]) -> tuple[float, float]:
    """Room for the curves and their bands."""
    spans = [(np.asarray(line.y), np.asarray(line.spread or np.zeros(len(line.y)))) for line in lines]
    low, high = float(min((y - s).min() for y, s in spans)), float(max((y + s).max() for y, s in spans))
    room = 0.06 * ((high - low) or 0.1)
    if low >= 0 and high <= 1:
        return max(low - room, 0.0), min(high + room, 1.0)
    return low - room, high + room


def _curve(drawing: Drawing, axes: Axes, line: Line, index: int, x_label: str) -> None:
    style, y = _curve_style(index), 100 * np.asarray(line.y, dtype=float)
    if line.spread:
        reach = 100 * np.asarray(line.spread, dtype=float)
        axes.fill_between(line.x, y - reach, y + reach, color=style["color"], alpha=0.13, lw=0)
    axes.plot(line.x, y, lw=2, **style)
    every = max(1, len(y) // MOST_TIPS)
    points = list(zip(line.x, y, strict=True))[::every]
    (spots,) = axes.plot([a for a, _ in points], [b for _, b in points], "o", ms=12, alpha=0, clip_on=False)
    drawing.tip(spots, *(f"{line.name}: {x_label} {a:g}, {b:.3g} %" for a, b in points))


RANK_AXIS, RANK_SIDE, RANK_ROW, RANK_BAR = 420.0, 130.0, 16.0, 7.0  # points
LONGEST_NAME = 30  # letters of a name that are shown; all of it on hover


@draws
def rank_diagram(
    ranks: Mapping[str, float], difference: float, groups: Sequence[Sequence[str]], cases: int, heading: str = "",
    marked: str = "",
) -> Drawing:  # fmt: skip
    """Draw average ranks (1 is the best) with the groups of `analysis.rank_groups`; the name `marked` stands out."""
    names = sorted(ranks, key=lambda name: ranks[name])
    count, half = len(names), (len(names) + 1) // 2
    # Room for the longest name, its rank and the gap to the axis.
    side = max(RANK_SIDE, LETTER * 11 * max(len(short(name, LONGEST_NAME)) for name in names) + 50)
    width, top = RANK_AXIS + 2 * side, 58.0 + 22 * bool(heading)
    bars = 14 + RANK_BAR * len(groups)
    height = top + bars + RANK_ROW * half + 12
    drawing = new_drawing(width, height, f"Average ranks of {count} methods over {cases} cases", 560)
    # One unit is one point; y is zero at the axis and grows downward.
    axes = drawing.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height - top, -top))
    drawing.figure.set_layout_engine("none")
    axes.set_axis_off()

    def px(rank: float) -> float:
        return side + (rank - 1) / max(count - 1, 1) * RANK_AXIS

    if heading:
        axes.text(8, 16 - top, heading, fontsize=12, color=INK, va="center")
    shown = min(difference, count - 1.0)
    axes.plot([px(1), px(1 + shown)], [-38, -38], color=INK, lw=2, marker="|", ms=10, mew=2)
    more = "" if shown == difference else " (wider than the axis)"
    axes.text(px(1), -47, f"critical difference {difference:.2f}{more}", fontsize=11, color=INK)
    axes.plot([px(1), px(max(count, 2))], [0, 0], color=INK, lw=1)
    for rank in range(1, count + 1, 1 if count <= 13 else 2):
        axes.plot([px(rank)] * 2, [-5, 0], color=INK, lw=1)
        axes.text(px(rank), -9, str(rank), ha="center", fontsize=10, color=FAINT)
    for i, group in enumerate(groups):
        ends = [px(min(ranks[m] for m in group)) - 3, px(max(ranks[m] for m in group)) + 3]
        (bar,) = axes.plot(ends, [10 + RANK_BAR * i] * 2, color=PALETTE[1], lw=4, solid_capstyle="round", zorder=4)
        drawing.tip(bar, f"no significant difference: {', '.join(group)}")
    for i, name in enumerate(names):
        left = i < half
        y = bars + RANK_ROW * ((i if left else count - 1 - i) + 0.5)
        x, edge = px(ranks[name]), side - 8 if left else width - side + 8
        axes.plot([x, x, edge], [0, y, y], color=LINE, lw=1, zorder=1)
        (dot,) = axes.plot(x, 0, "o", ms=7, color=PALETTE[0], mew=0, zorder=5)
        drawing.tip(dot, f"{name}: average rank {ranks[name]:.2f}")
        text = (
            f"{short(name, LONGEST_NAME)} {ranks[name]:.2f}"
            if left
            else f"{ranks[name]:.2f} {short(name, LONGEST_NAME)}"
        )
        axes.text(
            edge + (-4 if left else 4), y, text, ha="right" if left else "left", va="center", fontsize=11, color=INK,
            fontweight="bold" if name == marked else "normal",
        )  # fmt: skip
    return drawing


@draws
def confusion_map(classes: Sequence[str], counts: Sequence[Sequence[int]]) -> Drawing:
    """Draw `counts[true][predicted]` as shares of the true class, correct ones in one hue, mistakes in another."""
    n = len(classes)
    cell = max(9.0, min(34.0, 560.0 / n))
    font = max(6.5, min(11.0, cell * 0.85))
    edge = 30 + 0.62 * font * max(len(short(name)) for name in classes)
    size = edge + cell * n
    drawing = new_drawing(max(size + 8, 230), size + 26, f"Confusion matrix of {n} classes", int(min(size, 620)))
    axes = drawing.figure.add_subplot(aspect="equal", xlim=(0, n), ylim=(n, 0))
    plain(axes, "", "predicted class", "true class", size=10.5)
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
            # A square root makes the rare confusions visible; DARKEST keeps a contrast of 4.5 to 1 with the numbers.
            shade = DARKEST * max(0.1, share**0.5)
            low_x, high_x, low_y, high_y = j + gap, j + 1 - gap, i + gap, i + 1 - gap
            squares.append([(low_x, low_y), (high_x, low_y), (high_x, high_y), (low_x, high_y)])
            fills.append(to_rgba(PALETTE[0 if i == j else 1], shade))
            tips.append(f"{classes[i]} classified as {classes[j]}: {count} of {total} ({100 * share:.1f} %)")
            if n <= MOST_SHARES and share >= 0.005:
                axes.text(j + 0.5, i + 0.5, f"{100 * share:.0f}", ha="center", va="center", fontsize=10, color=INK)
    cells = PolyCollection(squares, facecolors=fills, linewidths=0, zorder=1, clip_on=False)
    drawing.tip(axes.add_collection(cells), *tips)
    return drawing


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
    drawing = new_drawing(PAGE_WIDTH, max(PAGE_HEIGHT, 12.0 * len(given.sources)), label)
    axes = drawing.figure.add_subplot()
    colors = dict(zip(given.sources, PALETTE * len(given.sources), strict=False))
    _panel(drawing, axes, given, colors, int(given.counts.max()), PAGE_WIDTH - 50, 11)
    if not _as_map(given.counts):
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
    one_axis = not _as_map(recipes[0].counts)
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


def _as_map(counts: IntArray) -> bool:
    return len(counts) > len(PALETTE) or counts.size > MOST_BARS


def _panel(
    drawing: Drawing, axes: Axes, given: SplitCounts, colors: Mapping[str, str], largest: int, room: float, size: float
) -> None:  # fmt: skip
    order = given.order
    counts, names = given.counts[:, order], [given.classes[k] for k in order]
    many = len(names) > MOST_NAMES
    plain(axes, "", f"{len(names)} classes, from most to fewest samples" if many else "", size=size + 1)
    class_axis(axes, names, room, MOST_NAMES, size)
    if _as_map(counts):
        _map(drawing, axes, given, counts)
        return
    width = 0.84 / len(given.sources)
    for d, source in enumerate(given.sources):
        x = np.arange(len(names)) + (d - (len(given.sources) - 1) / 2) * width
        bars = axes.bar(x, counts[d], width * 0.94, color=colors[source], zorder=3)
        for bar, n, name in zip(bars, counts[d], names, strict=True):
            drawing.tip(bar, f"{name}, {source}: {counted(n, 'sample')}")
        if counts.size <= MOST_NUMBERS:
            axes.bar_label(bars, padding=1.5, fontsize=0.8 * size, color=INK, zorder=4)
    # Logarithmic, since one sample and seven hundred share the figure; a factor of room above for numbers.
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
    _groups(axes, [given.shots[k] for k in order] if given.shots else [], size)


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
