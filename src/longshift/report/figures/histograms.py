"""How many predictions have which confidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longshift.report.figures.drawing import Drawing, draws, new_drawing
from longshift.report.figures.drawing_style import FAINT, INK, PALETTE, plain

WIDTH, HEIGHT, BINS = 520.0, 240.0, 20


@draws
def confidence_histogram(values: Sequence[float], threshold: float) -> Drawing:
    """Draw the number of predictions by probability, and a line at the threshold below which they are unsure."""
    drawing = new_drawing(WIDTH, HEIGHT, f"Probability of the predicted class of {len(values)} samples")
    axes = drawing.figure.add_subplot()
    plain(axes, "", "probability of the predicted class (%)", size=12)
    axes.set_title("number of samples", loc="left", fontsize=12.5, color=FAINT)
    counts, edges = np.histogram(np.asarray(values), bins=BINS, range=(0.0, 1.0))
    for count, low, high in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        bar = axes.bar(50 * (low + high), count, 95 / BINS, color=PALETTE[0], zorder=2).patches[0]
        drawing.tip(bar, f"{100 * low:.0f} to {100 * high:.0f}%: {count}")
    axes.set_xlim(0, 100)
    axes.axvline(100 * threshold, color=INK, lw=1.2, ls="--", zorder=3)
    axes.text(
        100 * threshold, 1.0, f" unsure below {100 * threshold:.0f}% ", transform=axes.get_xaxis_transform(), va="top",
        ha="left" if threshold < 0.5 else "right", fontsize=11, color=INK,
    )  # fmt: skip
    return drawing
