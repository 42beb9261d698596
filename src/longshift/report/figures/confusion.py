"""What is taken for what: a heat map of the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from longshift.report.svg import FAINT, INK, LINE, PAPER, Svg, colour, short

MOST_NUMBERS = 16  # classes; beyond, cells hold no numbers


def confusion_map(classes: Sequence[str], counts: Sequence[Sequence[int]]) -> Markup:
    """`counts[true][predicted]`; shades are shares of the true class, right answers in one hue, wrong in another."""
    n = len(classes)
    cell = max(9.0, min(34.0, 560.0 / n))
    size = cell * n
    font = max(6.5, min(11.0, cell * 0.85))
    longest = max(len(short(name)) for name in classes)
    edge = 14 + 0.62 * font * longest
    svg = Svg(edge + size + 8, edge + size + 26, f"Confusion matrix of {n} classes", least=int(min(edge + size, 620)))
    svg.text(edge + size / 2, edge + size + 18, "row: true class, column: predicted class", 10.5, "middle", FAINT)
    for k, name in enumerate(classes):
        middle = edge + (k + 0.5) * cell
        svg.text(edge - 5, middle + font * 0.35, short(name), font, "end", tip=name)
        x = edge + (k + 0.5) * cell + font * 0.35
        svg.text(x, edge - 5, short(name), font, tip=name, transform=f"rotate(-90 {x:.1f} {edge - 5:.1f})")
    svg.rect(edge, edge, size, size, "none", stroke=LINE)
    for i, row in enumerate(counts):
        total = sum(row)
        if not total:
            svg.text(edge + 4, edge + (i + 0.5) * cell + font * 0.35, "no sample", font, fill=FAINT)
            continue
        for j, count in enumerate(row):
            if not count:
                continue
            share = count / total
            tip = f"{classes[i]} taken for {classes[j]}: {count} of {total} ({100 * share:.1f} %)"
            x, y = edge + j * cell, edge + i * cell
            # A square root makes the rare confusions visible.
            shade = round(max(0.08, share**0.5), 3)
            gap = 0.5 if cell > 12 else 0.25
            svg.rect(
                x + gap, y + gap, cell - 2 * gap, cell - 2 * gap, colour(0 if i == j else 1), tip, fill_opacity=shade
            )
            if n <= MOST_NUMBERS and share >= 0.005:
                ink = PAPER if shade > 0.62 else INK
                svg.text(
                    x + cell / 2, y + cell / 2 + 3.5, f"{100 * share:.0f}", 10, "middle", ink, pointer_events="none"
                )
    return svg.render()
