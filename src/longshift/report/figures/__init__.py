"""Figures: plain numbers in, a `Drawing` out. All of them are drawn by matplotlib in one style."""

from longshift.report.figures.bars import class_bars, negative_bars
from longshift.report.figures.curves import Line, class_curves, line_chart, parameter_curves
from longshift.report.figures.drawing import Drawing
from longshift.report.figures.failure_modes import Absorption, Misalignment, absorption_panels, misalignment_panels
from longshift.report.figures.heat_maps import accuracy_grids, confusion_map
from longshift.report.figures.points import Points, scatter
from longshift.report.figures.ranks import rank_diagram
from longshift.report.figures.splits import TrainingSet, split_bars, split_panels

__all__ = [
    "Absorption",
    "Drawing",
    "Line",
    "Misalignment",
    "Points",
    "TrainingSet",
    "absorption_panels",
    "accuracy_grids",
    "class_bars",
    "class_curves",
    "confusion_map",
    "line_chart",
    "misalignment_panels",
    "negative_bars",
    "parameter_curves",
    "rank_diagram",
    "scatter",
    "split_bars",
    "split_panels",
]
