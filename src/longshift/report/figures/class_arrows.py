"""Arrows: how the accuracy of each class changes from one method to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from longshift.report.figures.drawing import Drawing, draws, new_drawing
from longshift.report.figures.drawing_style import FAINT, INK, LINE, PALETTE, PAPER, legend, plain, short
from longshift.text import decimal

WIDTH = 900.0
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
    drawing = new_drawing(WIDTH, 30.0 * rows + 90, label, least=620)
    drawn = drawing.figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, changes) in zip(drawn, panels.items(), strict=True):
        _panel(drawing, axes, title, sorted(changes, key=lambda change: (-change.samples, change.name)), before, after)
    marks = [
        Line2D([], [], label=before, marker="o", color=FAINT, mfc=PAPER, ms=9, linestyle=""),
        Line2D([], [], label=f"{after}, higher than {before}", marker="o", color=GAIN, ms=9, linestyle="-", lw=2.5),
        Line2D([], [], label=f"{after}, lower", marker="s", color=LOSS, ms=8, linestyle="-", lw=2.5),
    ]
    legend(drawing.figure, marks, WIDTH, 12)
    return drawing


def _panel(drawing: Drawing, axes: Axes, title: str, changes: Sequence[ClassChange], before: str, after: str) -> None:
    plain(axes, title, size=12)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=LINE, lw=0.8)
    axes.set_xlim(0, 100)
    axes.set_ylim(len(changes) - 0.5, -0.6)
    axes.set_xticks([0, 25, 50, 75, 100], ["0", "25%", "50%", "75%", "100%"])
    axes.set_yticks(
        range(len(changes)), [f"{short(change.name)}  ({change.samples:,})" for change in changes], color=INK
    )
    beside = blended_transform_factory(axes.transAxes, axes.transData)
    for y, change in enumerate(changes):
        color, mark = (GAIN, "o") if change.gain >= 0 else (LOSS, "s")
        tip = (
            f"{change.name}, {change.samples:,} training images: {before} {100 * change.before:.1f}%, "
            f"{after} {100 * change.after:.1f}% ({decimal(change.gain, signed=True)} points)"
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
