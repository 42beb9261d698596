"""Bars and dots: accuracy of each class or site, its change, positives and negatives, confidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import blended_transform_factory

from longshift.array_types import IntArray
from longshift.report.figures.drawing import (
    BELOW,
    FAINT,
    INK,
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
    short,
)
from longshift.text import decimal

BARS_WIDTH = 520.0


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
    axes = drawing.figure.add_subplot()
    plain(axes, size=12)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=LINE, lw=0.8)
    axes.set_xlim(0, 100)
    axes.set_ylim(length - 0.5, -0.5)
    axes.set_xticks([0, 25, 50, 75, 100], ["0", "25 %", "50 %", "75 %", "100 %"])
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


def _mark(index: int) -> dict[str, Any]:
    """A shape of its own for each method."""
    color = PALETTE[index % len(PALETTE)]
    return {"marker": MARKS[(index - 1) % len(MARKS)], "color": color, "ms": 8, "mec": PAPER, "mew": 1, "linestyle": ""}


@draws
def negative_bars(classes: Sequence[str], positives: IntArray, negatives: IntArray, heading: str) -> Drawing:
    """Draw two panels with one class axis: samples of each class, and samples of all other classes."""
    width = max(470.0, min(860.0, 180 + 32 * len(classes)))
    drawing = new_drawing(width, 330, heading)
    upper, lower = drawing.figure.subplots(2, 1, sharex=True)
    for axes, values, color, label in (
        (upper, positives, PALETTE[0], "positives"), (lower, negatives, PALETTE[1], "negatives"),
    ):  # fmt: skip
        plain(axes, "", "classes, from most to fewest training samples" if axes is lower else "", label)
        axes.bar(range(len(classes)), values, 0.82, color=color, zorder=3)
        axes.set_ylim(0, float(values.max()) * 1.15)
        if len(classes) <= 20:
            for k, value in enumerate(values):
                axes.annotate(
                    str(value), (k, value), (0, 2), textcoords="offset points", ha="center", va="bottom", fontsize=7.5
                )  # fmt: skip
    class_axis(lower, classes, width - 60)
    headline(drawing.figure, heading)
    return drawing


ARROWS_WIDTH = 900.0
GAIN, LOSS = PALETTE[0], PALETTE[1]


@dataclass(frozen=True)
class ClassChange:
    """A class: its mean number of training images, and the accuracy with the first and with the second method."""

    name: str
    samples: int
    before: float
    after: float

    @property
    def gain(self) -> float:
        """The change in points."""
        return 100 * (self.after - self.before)


@draws
def class_changes(panels: Mapping[str, Sequence[ClassChange]], before: str, after: str) -> Drawing:
    """Draw an arrow for each class from the accuracy with `before` to that with `after`; one panel per title.

    Classes with the fewest training images stand last.
    """
    rows = max(map(len, panels.values()))
    label = f"Accuracy of each class with {before} and with {after}: {', '.join(panels)}"
    drawing = new_drawing(ARROWS_WIDTH, 30.0 * rows + 90, label, least=620)
    drawn = drawing.figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, changes) in zip(drawn, panels.items(), strict=True):
        _arrows(drawing, axes, title, sorted(changes, key=lambda change: (-change.samples, change.name)), before, after)
    marks = [
        Line2D([], [], label=before, marker="o", color=FAINT, mfc=PAPER, ms=9, linestyle=""),
        Line2D([], [], label=f"{after}, higher than {before}", marker="o", color=GAIN, ms=9, linestyle="-", lw=2.5),
        Line2D([], [], label=f"{after}, lower", marker="s", color=LOSS, ms=8, linestyle="-", lw=2.5),
    ]
    legend(drawing.figure, marks, ARROWS_WIDTH, 12)
    return drawing


def _arrows(drawing: Drawing, axes: Axes, title: str, changes: Sequence[ClassChange], before: str, after: str) -> None:
    plain(axes, title, size=12)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=LINE, lw=0.8)
    axes.set_xlim(0, 100)
    axes.set_ylim(len(changes) - 0.5, -0.6)
    axes.set_xticks([0, 25, 50, 75, 100], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.set_yticks(
        range(len(changes)), [f"{short(change.name)}  ({change.samples:,})" for change in changes], color=INK
    )
    beside = blended_transform_factory(axes.transAxes, axes.transData)
    for y, change in enumerate(changes):
        color, mark = (GAIN, "o") if change.gain >= 0 else (LOSS, "s")
        tip = (
            f"{change.name}, {change.samples:,} training images: {before} {100 * change.before:.1f} %, "
            f"{after} {100 * change.after:.1f} % ({decimal(change.gain, signed=True)} points)"
        )
        ends = (100 * change.before, 100 * change.after)
        (line,) = axes.plot(ends, (y, y), color=color, lw=2.5, zorder=2, clip_on=False)
        (start,) = axes.plot(
            ends[0], y, "o", ms=9, color=FAINT, mfc=PAPER, mew=1.6, zorder=3, clip_on=False
        )  # fmt: skip
        (end,) = axes.plot(ends[1], y, mark, ms=9, color=color, zorder=4, clip_on=False)
        for artist in (line, start, end):
            drawing.tip(artist, tip)
        axes.text(
            1.03, y, decimal(change.gain, 0, signed=True), transform=beside, fontsize=12, color=color, va="center",
            fontweight="bold",
        )  # fmt: skip


DOTS_WIDTH, DOTS_ROW, DOTS_EDGE = 620.0, 30.0, 96.0
DOTS_SIZE = 11.5


@dataclass(frozen=True)
class SiteDots:
    """A site: the accuracy of models that did not know it, and of those that did (None: not measured)."""

    name: str
    unseen: float
    known: float | None = None


@draws
def site_dots(sites: Sequence[SiteDots], expected: tuple[float, float] | None = None) -> Drawing:
    """Draw a row per site, the lowest first; `expected` is the range at a new site, in the last row."""
    ordered = sorted(sites, key=lambda site: site.unseen)
    rows = len(ordered) + (expected is not None)
    drawing = new_drawing(DOTS_WIDTH, DOTS_EDGE + DOTS_ROW * rows, f"Accuracy at {len(sites)} held-out sites")
    axes = drawing.figure.add_subplot(xlim=(0, 100), ylim=(rows - 0.4, -0.6))
    plain(axes, "", "accuracy (%)", size=DOTS_SIZE)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=LINE, lw=0.8)
    names = [short(site.name) for site in ordered] + ["a new site"] * (expected is not None)
    axes.set_yticks(range(rows), names)
    for row, site in enumerate(ordered):
        if site.known is not None:
            axes.plot([100 * site.unseen, 100 * site.known], [row, row], color=FAINT, lw=1.5, zorder=2)
            dot = axes.plot(100 * site.known, row, "o", ms=8, mfc="none", mec=PALETTE[0], mew=1.8, zorder=3)[0]
            drawing.tip(dot, f"{site.name}, while known: {100 * site.known:.1f} %")
        dot = axes.plot(100 * site.unseen, row, "o", ms=8, color=PALETTE[0], zorder=4)[0]
        drawing.tip(dot, f"{site.name}, while held out: {100 * site.unseen:.1f} %")
    handles = [Line2D([], [], color=PALETTE[0], marker="o", ls="", ms=8, label="while held out")]
    if any(site.known is not None for site in ordered):
        open_dot = Line2D([], [], marker="o", ls="", ms=8, mfc="none", mec=PALETTE[0], mew=1.8, label="while known")
        handles.append(open_dot)
    if expected is not None:
        low, high = (100 * value for value in expected)
        bar = axes.plot([low, high], [rows - 1, rows - 1], color=PALETTE[1], lw=5, solid_capstyle="round", zorder=2)[0]
        drawing.tip(bar, f"a new site: {low:.0f} to {high:.0f} %")
        handles.append(Line2D([], [], color=PALETTE[1], lw=5, label="80 % interval for a new site"))
    legend(drawing.figure, handles, DOTS_WIDTH, DOTS_SIZE, BELOW)
    return drawing


HISTOGRAM_WIDTH, HISTOGRAM_HEIGHT, BINS = 520.0, 240.0, 20


@draws
def confidence_histogram(values: Sequence[float], threshold: float) -> Drawing:
    """Draw the number of predictions by probability, and a line at the threshold below which they are unsure."""
    drawing = new_drawing(
        HISTOGRAM_WIDTH, HISTOGRAM_HEIGHT, f"Probability of the predicted class of {len(values)} samples"
    )
    axes = drawing.figure.add_subplot()
    plain(axes, "", "probability of the predicted class (%)", size=12)
    axes.set_title("number of samples", loc="left", fontsize=12.5, color=FAINT)
    counts, edges = np.histogram(np.asarray(values), bins=BINS, range=(0.0, 1.0))
    for count, low, high in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        bar = axes.bar(50 * (low + high), count, 95 / BINS, color=PALETTE[0], zorder=2).patches[0]
        drawing.tip(bar, f"{100 * low:.0f} to {100 * high:.0f} %: {count}")
    axes.set_xlim(0, 100)
    axes.axvline(100 * threshold, color=INK, lw=1.2, ls="--", zorder=3)
    axes.text(
        100 * threshold, 1.0, f" unsure below {100 * threshold:.0f} % ", transform=axes.get_xaxis_transform(), va="top",
        ha="left" if threshold < 0.5 else "right", fontsize=11, color=INK,
    )  # fmt: skip
    return drawing
