"""The critical-difference diagram: average ranks, bars join methods that do not differ significantly."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from longshift.report.svg import FAINT, INK, LINE, Svg, colour, short

AXIS, SIDE, ROW = 420.0, 130.0, 16.0
LETTER, LONGEST = 6.4, 30  # width of one; letters of a name that are shown (all of it on hover)


def rank_diagram(
    ranks: dict[str, float], critical_difference: float, groups: Sequence[Sequence[str]], cases: int
) -> Markup:
    """`ranks`: method -> average rank, 1 the best; `groups` as `analysis.rank_groups` gives them."""
    names = sorted(ranks, key=lambda name: ranks[name])
    count = len(names)
    axis = 58.0
    # Room for the longest name, its rank and the gap to the axis.
    side = max(SIDE, LETTER * max(len(short(name, LONGEST)) for name in names) + 50)
    width = AXIS + 2 * side

    def px(rank: float) -> float:
        return side + (rank - 1) / max(count - 1, 1) * AXIS

    half = (count + 1) // 2
    bars = axis + 14 + 7 * len(groups)
    svg = Svg(width, bars + ROW * half + 18, f"Average ranks of {count} methods over {cases} cases", least=560)
    end = px(1 + min(critical_difference, count - 1))
    more = " (wider than the axis)" if critical_difference > count - 1 else ""
    svg.line(px(1), 20, end, 20, INK, stroke_width=2)
    for x in (px(1), end):
        svg.line(x, 15, x, 25, INK, stroke_width=2)
    svg.text(px(1), 11, f"critical difference {critical_difference:.2f}{more}", 11, fill=INK)
    svg.line(px(1), axis, px(count), axis, INK)
    every = 1 if count <= 13 else 2
    for rank in range(1, count + 1, every):
        svg.line(px(rank), axis - 5, px(rank), axis, INK)
        svg.text(px(rank), axis - 9, str(rank), 10, "middle", FAINT)
    for g, group in enumerate(groups):
        y = axis + 10 + 7 * g
        first, last = min(ranks[m] for m in group), max(ranks[m] for m in group)
        svg.add(
            "line", f"no significant difference: {', '.join(group)}", x1=px(first) - 3, x2=px(last) + 3, y1=y, y2=y,
            stroke=colour(1), stroke_width=4, stroke_linecap="round",
        )  # fmt: skip
    for i, name in enumerate(names):
        left = i < half
        y = bars + ROW * ((i if left else count - 1 - i) + 0.5) + 8
        x, edge = px(ranks[name]), side - 8 if left else width - side + 8
        svg.add("polyline", points=f"{x:.1f},{axis} {x:.1f},{y:.1f} {edge:.1f},{y:.1f}", fill="none", stroke=LINE)
        svg.add("circle", f"{name}: average rank {ranks[name]:.2f}", cx=x, cy=axis, r=3.5, fill=colour(0))
        shown = short(name, LONGEST)
        text = f"{shown} {ranks[name]:.2f}" if left else f"{ranks[name]:.2f} {shown}"
        svg.text(edge + (-4 if left else 4), y + 4, text, 11, "end" if left else "start")
    return svg.render()
