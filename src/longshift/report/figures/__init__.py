"""Figures: plain numbers in, a `Drawing` out. All of them are drawn by matplotlib in one style."""

from longshift.report.figures.bars import class_bars as class_bars, negative_bars as negative_bars
from longshift.report.figures.class_arrows import ClassChange as ClassChange, class_changes as class_changes
from longshift.report.figures.curves import (
    Line as Line,
    class_curves as class_curves,
    line_chart as line_chart,
    parameter_curves as parameter_curves,
)
from longshift.report.figures.drawing import Drawing as Drawing
from longshift.report.figures.failure_modes import (
    Absorption as Absorption,
    Misalignment as Misalignment,
    absorption_panels as absorption_panels,
    misalignment_panels as misalignment_panels,
)
from longshift.report.figures.heat_maps import accuracy_grids as accuracy_grids, confusion_map as confusion_map
from longshift.report.figures.histograms import confidence_histogram as confidence_histogram
from longshift.report.figures.points import Points as Points, scatter as scatter
from longshift.report.figures.ranks import rank_diagram as rank_diagram
from longshift.report.figures.site_dots import SiteDots as SiteDots, site_dots as site_dots
from longshift.report.figures.splits import (
    TrainingSet as TrainingSet,
    split_bars as split_bars,
    split_panels as split_panels,
)
