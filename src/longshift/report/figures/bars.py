"""Accuracy of each class: a bar for the first method, a mark for each other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from longshift.report.svg import FAINT, Svg, colour, legend, mark, short

WIDTH, RIGHT = 520.0, 46.0


def class_bars(
    classes: Sequence[str],
    accuracy: Mapping[str, Sequence[float | None]],
    shots: Sequence[str] | None = None,
    counts: Sequence[int] | None = None,
) -> Markup:
    """`accuracy`: method -> one number in [0, 1] a class. Classes stand by their number of training samples."""
    methods = list(accuracy)
    order = sorted(range(len(classes)), key=lambda k: (-(counts[k] if counts else 0), k))
    bands = [shots[k] if shots else "" for k in order]
    svg = Svg(WIDTH, 0, f"Accuracy of each of {len(classes)} classes for {', '.join(methods)}", least=350)
    top = 14 + legend(svg, [(m, colour(i)) for i, m in enumerate(methods)], 4, 14, WIDTH - 8)
    row = 24.0 if len(classes) <= 15 else 17.0
    left = 16 + 6.9 * max(len(short(name)) for name in classes)
    plot = WIDTH - left - RIGHT
    y = float(top)
    for i, k in enumerate(order):
        if shots and (i == 0 or bands[i] != bands[i - 1]):
            y += 16
            svg.text(4, y - 4, f"classes with {bands[i]} samples", 12, fill=FAINT, font_weight=600)
            svg.line(4, y, WIDTH - 4, y)
        size = f", {counts[k]} training samples" if counts else ""
        svg.text(left - 6, y + row / 2 + 4, short(classes[k]), 12, "end", tip=f"{classes[k]}{size}")
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            svg.line(left + share * plot, y, left + share * plot, y + row)
        for m, method in enumerate(methods):
            _value(svg, m, f"{classes[k]}: {method}", accuracy[method][k], y, row, left, plot)
        y += row
    for percent in (0, 25, 50, 75, 100):
        svg.text(left + percent / 100 * plot, y + 14, f"{percent} %" if percent else "0", 11.5, "middle", FAINT)
    svg.height = y + 20
    return svg.render()


def _value(
    svg: Svg, index: int, name: str, value: float | None, y: float, row: float, left: float, plot: float
) -> None:  # fmt: skip
    if value is None:
        if index == 0:
            svg.text(left + 4, y + row / 2 + 3.5, "no sample", 9.5, fill=FAINT)
        return
    x, tip = left + value * plot, f"{name} {100 * value:.1f} %"
    if index == 0:
        svg.rect(left, y + 2.5, x - left, row - 5, colour(0), tip, rx=1.5)
        svg.text(left + plot + 6, y + row / 2 + 4, f"{100 * value:.0f} %", 11.5)
    else:
        mark(svg, index - 1, x, y + row / 2, colour(index), tip)
