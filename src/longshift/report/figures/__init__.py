"""Figures: plain numbers in, a `Drawing` out. All of them are drawn by matplotlib in one style."""

from longshift.report.figures.bars import (
    ClassChange as ClassChange,
    SiteDots as SiteDots,
    class_bars as class_bars,
    class_changes as class_changes,
    confidence_histogram as confidence_histogram,
    negative_bars as negative_bars,
    site_dots as site_dots,
)
from longshift.report.figures.curves import (
    Line as Line,
    Points as Points,
    class_curves as class_curves,
    line_chart as line_chart,
    parameter_curves as parameter_curves,
    rank_diagram as rank_diagram,
    scatter as scatter,
)
from longshift.report.figures.drawing import Drawing as Drawing
from longshift.report.figures.maps import (
    Absorption as Absorption,
    Misalignment as Misalignment,
    absorption_panels as absorption_panels,
    accuracy_grids as accuracy_grids,
    confusion_map as confusion_map,
    misalignment_panels as misalignment_panels,
)
from longshift.report.figures.splits import (
    SplitCounts as SplitCounts,
    split_bars as split_bars,
    split_panels as split_panels,
)
