"""Figures as inline SVG: plain numbers in, an `svg` element out."""

from longshift.report.figures.bars import class_bars
from longshift.report.figures.confusion import confusion_map
from longshift.report.figures.lines import Line, line_chart
from longshift.report.figures.ranks import rank_diagram
from longshift.report.figures.scatter import Points, scatter
from longshift.report.figures.splits import split_bars

__all__ = [
    "Line",
    "Points",
    "class_bars",
    "confusion_map",
    "line_chart",
    "rank_diagram",
    "scatter",
    "split_bars",
]
