"""Accuracy at each site while it was held out and while it was known, and the range to expect at a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.lines import Line2D

from longshift.report.figures.drawing import Drawing, draws, new_drawing
from longshift.report.figures.drawing_style import BELOW, FAINT, LINE, PALETTE, legend, plain, short

WIDTH, ROW, EDGE = 620.0, 30.0, 96.0
SIZE = 11.5


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
    drawing = new_drawing(WIDTH, EDGE + ROW * rows, f"Accuracy at {len(sites)} held-out sites")
    axes = drawing.figure.add_subplot(xlim=(0, 100), ylim=(rows - 0.4, -0.6))
    plain(axes, "", "accuracy (%)", size=SIZE)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=LINE, lw=0.8)
    names = [short(site.name) for site in ordered] + ["a new site"] * (expected is not None)
    axes.set_yticks(range(rows), names)
    for row, site in enumerate(ordered):
        if site.known is not None:
            axes.plot([100 * site.unseen, 100 * site.known], [row, row], color=FAINT, lw=1.5, zorder=2)
            dot = axes.plot(100 * site.known, row, "o", ms=8, mfc="none", mec=PALETTE[0], mew=1.8, zorder=3)[0]
            drawing.tip(dot, f"{site.name}, while known: {100 * site.known:.1f}%")
        dot = axes.plot(100 * site.unseen, row, "o", ms=8, color=PALETTE[0], zorder=4)[0]
        drawing.tip(dot, f"{site.name}, while held out: {100 * site.unseen:.1f}%")
    handles = [Line2D([], [], color=PALETTE[0], marker="o", ls="", ms=8, label="while held out")]
    if any(site.known is not None for site in ordered):
        open_dot = Line2D([], [], marker="o", ls="", ms=8, mfc="none", mec=PALETTE[0], mew=1.8, label="while known")
        handles.append(open_dot)
    if expected is not None:
        low, high = (100 * value for value in expected)
        bar = axes.plot([low, high], [rows - 1, rows - 1], color=PALETTE[1], lw=5, solid_capstyle="round", zorder=2)[0]
        drawing.tip(bar, f"a new site: {low:.0f} to {high:.0f}%")
        handles.append(Line2D([], [], color=PALETTE[1], lw=5, label="80% interval for a new site"))
    legend(drawing.figure, handles, WIDTH, SIZE, BELOW)
    return drawing
