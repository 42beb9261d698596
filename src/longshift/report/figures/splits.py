"""What a training set is made of: samples of each class, stacked by source domain."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from longshift.report.svg import FAINT, Svg, colour, legend, short, ticks

WIDTH, LEFT, PLOT = 560.0, 44.0, 150.0
MOST_NAMES = 24  # classes with their names below; beyond, hover tells


def split_bars(
    classes: Sequence[str], sources: Sequence[str], counts: Sequence[Sequence[int]], shots: Sequence[str] | None = None
) -> Markup:
    """`counts[source][class]` training samples; the largest class stands first."""
    totals = [sum(row[k] for row in counts) for k in range(len(classes))]
    order = sorted(range(len(classes)), key=lambda k: (-totals[k], k))
    svg = Svg(WIDTH, 0, f"Training samples of {len(classes)} classes from {', '.join(sources)}", least=350)
    top = 14 + legend(svg, [(name, colour(i)) for i, name in enumerate(sources)], LEFT, 12, WIDTH - LEFT) + 14
    bottom = top + PLOT
    high = max([*totals, 1])
    for tick in ticks(0, high, 4):
        y = bottom - tick / high * PLOT
        svg.line(LEFT, y, WIDTH - 4, y)
        svg.text(LEFT - 6, y + 3.5, f"{tick:g}", 12, "end", FAINT)
    step = (WIDTH - LEFT - 8) / max(len(classes), 1)
    for i, k in enumerate(order):
        x, y = LEFT + 2 + i * step, bottom
        parts = ", ".join(f"{name} {row[k]}" for name, row in zip(sources, counts, strict=True))
        group = f", {shots[k]}" if shots else ""
        tip = f"{classes[k]}{group}: {totals[k]} samples ({parts})"
        for d, row in enumerate(counts):
            height = row[k] / high * PLOT
            if height:
                y -= height
                svg.rect(x + 0.06 * step, y, 0.88 * step, height, colour(d), tip)
        svg.rect(x, top, step, PLOT, "transparent", tip)  # so that the smallest class can be hovered too
        if len(classes) <= MOST_NAMES:
            a, b = x + step / 2 + 3, bottom + 10
            svg.text(a, b, short(classes[k], 12), 12, "end", tip=tip, transform=f"rotate(-40 {a:.1f} {b:.1f})")
    if shots:
        _groups(svg, [shots[k] for k in order], LEFT + 2, step, top, bottom)
    svg.height = bottom + (62 if len(classes) <= MOST_NAMES else 24)
    if len(classes) > MOST_NAMES:
        svg.text(LEFT, bottom + 16, f"{len(classes)} classes by their number of training samples", 12, fill=FAINT)
    return svg.render()


def _groups(svg: Svg, shots: Sequence[str], left: float, step: float, top: float, bottom: float) -> None:
    for i, group in enumerate(shots):
        if i == 0 or group != shots[i - 1]:
            x = left + i * step
            if i:
                svg.line(x, top - 12, x, bottom, FAINT, stroke_dasharray="3 3")
            svg.text(x + 3, top - 5, group, 12, fill=FAINT)
