"""Bars: the accuracy of each class; the positives and negatives of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import blended_transform_factory

from longshift.array_types import IntArray
from longshift.report.figures.drawing import Drawing, draws, new_drawing
from longshift.report.figures.drawing_style import (
    FAINT,
    INK,
    LINE,
    MARKS,
    PALETTE,
    PAPER,
    class_axis,
    headline,
    legend,
    plain,
    short,
)  # fmt: skip

WIDTH = 520.0


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
    drawing = new_drawing(WIDTH, row * length + 50 + 8 * (len(methods) > 3), label)
    axes = drawing.figure.add_subplot()
    plain(axes, size=12)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=LINE, lw=0.8)
    axes.set_xlim(0, 100)
    axes.set_ylim(length - 0.5, -0.5)
    axes.set_xticks([0, 25, 50, 75, 100], ["0", "25%", "50%", "75%", "100%"])
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
            tip = f"{classes[k]}: {method} {100 * value:.1f}%"
            if m == 0:
                drawing.tip(axes.barh(y, 100 * value, 0.8, color=PALETTE[0], zorder=2, clip_on=False).patches[0], tip)
                axes.text(1.03, y, f"{100 * value:.0f}%", transform=beside, fontsize=11.5, color=INK, va="center")
            else:
                (mark,) = axes.plot(100 * value, y, zorder=3, clip_on=False, **_mark(m))
                drawing.tip(mark, tip)
    handles: list[Artist] = [Patch(color=PALETTE[0], label=methods[0])]
    handles += [Line2D([], [], label=method, **_mark(m)) for m, method in enumerate(methods[1:], 1)]
    legend(drawing.figure, handles, WIDTH, 12)
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
