"""One look for all figures: colors that every eye can tell apart, little ink, room for names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito: distinguishable with every common kind of color blindness. A page replaces these colors with its own
# (`drawing.PAGE_COLORS`), so that figures follow the light or dark theme.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A7B00", "#5A5A5A")
INK, FAINT, LINE, PAPER = "#222222", "#666666", "#DDDDDD", "#FFFFFF"
DASHES: tuple[Any, ...] = (
    "-", (0, (3, 1.5)), (0, (1, 1)), (0, (4, 1.5, 1, 1.5)), (0, (5, 2)), (0, (2, 2)), (0, (0.5, 1.5)),
    (0, (6, 1, 1, 1)),
)  # fmt: skip
MARKS = ("o", "D", "s", "^", "v", "P", "X", "h")
Place = Literal["outside upper left", "outside lower left"]
BELOW: Place = "outside lower left"
LETTER = 0.62  # width of a letter, in font sizes


def plain(axes: Axes, heading: str = "", x_label: str = "", y_label: str = "", size: float = 9) -> None:
    """Draw the axes with as little ink as possible."""
    axes.spines[:].set_visible(False)
    axes.patch.set_visible(False)
    axes.tick_params(left=False, bottom=False, colors=FAINT, labelsize=size)
    axes.grid(axis="y", color=LINE, lw=0.8)
    axes.set_axisbelow(True)
    if heading:
        axes.set_title(heading, loc="left", fontsize=size + 1, color=INK)
    axes.set_xlabel(x_label, fontsize=size, color=FAINT)
    axes.set_ylabel(y_label, fontsize=size, color=FAINT)


def headline(figure: Figure, text: str) -> None:
    """Put a title at the upper left."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=12, color=INK)


def series_style(index: int) -> dict[str, Any]:
    """Return color, dashes and mark of a series: color is never the only difference."""
    return {
        "color": PALETTE[index % len(PALETTE)], "linestyle": DASHES[index % len(DASHES)],
        "marker": MARKS[index % len(MARKS)],
    }  # fmt: skip


def legend(
    figure: Figure, handles: Sequence[Any], width: float, size: float = 9, place: Place = "outside upper left"
) -> None:
    """Put a legend above or below the axes, in as many columns as fit into `width` points."""
    lengths = [LETTER * size * len(str(handle.get_label())) + 4 * size for handle in handles]
    fitting = [n for n in range(len(lengths), 1, -1) if sum(max(lengths[k::n]) for k in range(n)) <= width]
    columns = max([*fitting, 1])
    by_row = [handle for column in range(columns) for handle in handles[column::columns]]  # it is filled by columns
    figure.legend(
        handles=by_row, loc=place, ncols=columns, frameon=False, fontsize=size,
        labelcolor=INK, handlelength=1.8, columnspacing=1.4, handletextpad=0.5, borderaxespad=0.2,
    )  # fmt: skip


def short(name: str, most: int = 16) -> str:
    """Cut a name to `most` letters."""
    return name if len(name) <= most else name[: most - 1] + "…"


def class_axis(
    axes: Axes, names: Sequence[str], room: float, most: int = 40, size: float = 8, shown: bool = True
) -> None:
    """Name the classes below the x axis, tilted where they would touch within `room` points; none beyond `most`."""
    axes.set_xlim(-0.6, len(names) - 0.4)
    if len(names) > most or not shown:
        axes.set_xticks([])
        return
    labels = [short(name, 14) for name in names]
    tilt = LETTER * size * (max(map(len, labels)) + 1) * len(labels) > room
    axes.set_xticks(
        range(len(names)), labels, fontsize=size, rotation=40 if tilt else 0, ha="right" if tilt else "center",
        rotation_mode="anchor" if tilt else "default", color=INK,
    )  # fmt: skip
