"""The critical-difference diagram: average ranks on a line, bars join methods that do not differ significantly."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from longshift.paper.drawing.style import FAINT, INK, PALETTE, new_figure

ROW, BAR = 0.2, 0.11  # inches a name and a bar
LEADER = "#B9C0C9"


def draw_ranks(
    ranks: dict[str, float], difference: float, groups: Sequence[Sequence[str]], heading: str, marked: str = ""
) -> Figure:
    """`ranks`: title -> average rank, best first; `marked` stands out."""
    names = list(ranks)
    count, half = len(names), (len(names) + 1) // 2
    height = 1.3 + BAR * len(groups) + ROW * half
    figure = new_figure(9.5, height)
    axes = figure.add_subplot()
    axes.set_axis_off()
    low, high = 1.0, float(max(count, 2))
    side = 0.34 * (high - low)
    axes.set_xlim(low - side, high + side)
    axes.set_ylim(-0.25 - BAR * len(groups) - ROW * half, 0.62)
    axes.plot([low, high], [0, 0], color=INK, lw=1)
    for rank in range(1, int(high) + 1, 1 if count <= 13 else 2):
        axes.plot([rank, rank], [0, 0.06], color=INK, lw=1)
        axes.text(rank, 0.09, str(rank), ha="center", va="bottom", fontsize=8, color=FAINT)
    shown = min(difference, high - low)
    axes.plot([low, low + shown], [0.36, 0.36], color=INK, lw=1.6, marker="|", markersize=8, markeredgewidth=1.6)
    more = "" if shown == difference else ", wider than the axis"
    axes.text(low, 0.44, f"critical difference {difference:.2f}{more}", fontsize=8.5, color=INK, va="bottom")
    for i, group in enumerate(groups):
        y = -0.1 - BAR * i
        first, last = min(ranks[m] for m in group), max(ranks[m] for m in group)
        axes.plot([first - 0.06, last + 0.06], [y, y], color=PALETTE[5], lw=3.6, solid_capstyle="round", zorder=4)
    start = -0.2 - BAR * len(groups)
    for i, name in enumerate(names):
        left = i < half
        y = start - ROW * ((i if left else count - 1 - i) + 0.5)
        edge = low - 0.03 * side if left else high + 0.03 * side
        axes.plot([ranks[name], ranks[name], edge], [0, y, y], color=LEADER, lw=1.0, zorder=1)
        axes.plot(ranks[name], 0, "o", ms=4.5, color=PALETTE[0], zorder=5)
        text = f"{name}  {ranks[name]:.2f}" if left else f"{ranks[name]:.2f}  {name}"
        axes.text(
            edge, y, f" {text} ", ha="right" if left else "left", va="center", fontsize=9, color=INK,
            fontweight="bold" if name == marked else "normal",
        )  # fmt: skip
    axes.set_title(heading, loc="left", fontsize=11, color=INK)
    return figure
