"""Whether validation accuracy had stopped rising when the runs ended."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from markupsafe import Markup

from longshift.report.figures import Line, line_chart
from longshift.report.html_page import Section, figure, fold, stack
from longshift.report.run_lengths import Group, curve_groups
from longshift.report.sections.tables import table_html
from longshift.report.table import Table, number
from longshift.results import standard_error
from longshift.text import counted


def length_section(tables: Sequence[Table], runs: pd.DataFrame) -> Section:
    """The curves of all settings, the tables of kind "length"; the long ones are folded away."""
    groups = curve_groups(runs)
    number_of = counted(sum(len(group.runs) for group in groups), "run")
    caption = (
        f"Balanced validation set of the training domains, {number_of}: mean over all finished runs of a setting, "
        "band: standard error."
    )
    parts = [figure(length_chart(groups), caption)]
    parts += [fold(table.title, table_html(table)) if table.long else table_html(table) for table in tables]
    intro = "Where the last third of the training brought next to nothing, validation accuracy had stopped rising."
    return Section("Length of the runs", stack(*parts), intro, "length")


def length_chart(groups: Sequence[Group]) -> Markup:
    """Mean validation accuracy over steps with its standard error, a line a setting."""
    lines = []
    for group in groups:
        values = [pd.Series(group.values(step)) for step in group.steps]
        spread = [number(standard_error(v)) or 0.0 for v in values]
        lines.append(Line(group.title, group.steps, [float(v.mean()) for v in values], spread))
    return line_chart(lines, "step", "validation accuracy")
