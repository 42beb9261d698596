"""The critical-difference diagram: average ranks on a line; bars join methods without a significant difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from longshift.report.figures.drawing import Drawing, draws, new_drawing
from longshift.report.figures.drawing_style import FAINT, INK, LETTER, LINE, PALETTE, short

AXIS, SIDE, ROW, BAR = 420.0, 130.0, 16.0, 7.0  # points
LONGEST = 30  # letters of a name that are shown; all of it on hover


@draws
def rank_diagram(
    ranks: Mapping[str, float], difference: float, groups: Sequence[Sequence[str]], cases: int, heading: str = "",
    marked: str = "",
) -> Drawing:  # fmt: skip
    """Draw average ranks (1 is the best) with the groups of `analysis.rank_groups`; the name `marked` stands out."""
    names = sorted(ranks, key=lambda name: ranks[name])
    count, half = len(names), (len(names) + 1) // 2
    # Room for the longest name, its rank and the gap to the axis.
    side = max(SIDE, LETTER * 11 * max(len(short(name, LONGEST)) for name in names) + 50)
    width, top = AXIS + 2 * side, 58.0 + 22 * bool(heading)
    bars = 14 + BAR * len(groups)
    height = top + bars + ROW * half + 12
    drawing = new_drawing(width, height, f"Average ranks of {count} methods over {cases} cases", 560)
    # One unit is one point; y is zero at the axis and grows downward.
    axes = drawing.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height - top, -top))
    drawing.figure.set_layout_engine("none")
    axes.set_axis_off()

    def px(rank: float) -> float:
        return side + (rank - 1) / max(count - 1, 1) * AXIS

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
        (bar,) = axes.plot(ends, [10 + BAR * i] * 2, color=PALETTE[1], lw=4, solid_capstyle="round", zorder=4)
        drawing.tip(bar, f"no significant difference: {', '.join(group)}")
    for i, name in enumerate(names):
        left = i < half
        y = bars + ROW * ((i if left else count - 1 - i) + 0.5)
        x, edge = px(ranks[name]), side - 8 if left else width - side + 8
        axes.plot([x, x, edge], [0, y, y], color=LINE, lw=1, zorder=1)
        (dot,) = axes.plot(x, 0, "o", ms=7, color=PALETTE[0], mew=0, zorder=5)
        drawing.tip(dot, f"{name}: average rank {ranks[name]:.2f}")
        text = f"{short(name, LONGEST)} {ranks[name]:.2f}" if left else f"{ranks[name]:.2f} {short(name, LONGEST)}"
        axes.text(
            edge + (-4 if left else 4), y, text, ha="right" if left else "left", va="center", fontsize=11, color=INK,
            fontweight="bold" if name == marked else "normal",
        )  # fmt: skip
    return drawing
