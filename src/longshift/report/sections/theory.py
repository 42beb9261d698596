"""Margins and posterior discrepancies against target accuracy: the table of correlations and its picture."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from markupsafe import Markup

from longshift.report.figures import Points, scatter
from longshift.report.html_page import Section, figure, stack
from longshift.report.sections.tables import table_html
from longshift.report.table import Table
from longshift.report.theory import ACCURACY, QUANTITIES, measured, theory_runs
from longshift.report.titles import FAMILIES, family, method_title
from longshift.text import counted

DRAWN = ("posterior_target", "target_margin")
INTRO = (
    "The theory bounds the risk on an unseen domain by terms that fall with the margin and rise with the posterior "
    "discrepancy: the Jensen-Shannon divergence between the mean predictions for a class in two domains."
)


def theory_section(tables: Sequence[Table], chosen: pd.DataFrame) -> Section:
    """The tables of kind "theory", and a point a run for the two quantities that the bound is about."""
    runs = theory_runs(chosen)
    drawn = [name for name in DRAWN if name in measured(runs)]
    pictures = [figure(theory_scatter(runs, name), _caption(runs, name)) for name in drawn]
    grid = Markup('<div class="grid">{}</div>').format(stack(*pictures)) if pictures else Markup()
    return Section("Theory", stack(grid, *map(table_html, tables)), INTRO, "theory")


def theory_scatter(runs: pd.DataFrame, name: str) -> Markup:
    """A quantity against target accuracy, a point a run, coloured by family of methods."""
    known = runs[runs[name].notna()]
    groups = []
    for kind, (key, title) in enumerate(FAMILIES.items()):
        part = known[known["method"].map(lambda method, key=key: family(str(method)) == key).astype(bool)]
        names = [
            f"{method_title(str(r['method']))}, {r['dataset']}, {r['setting']}, {r['target']}, trial {r['trial']}"
            for r in part.to_dict("records")
        ]
        groups.append(Points(title, [*map(float, part[name])], [*map(float, part[ACCURACY])], names, kind))
    return scatter(groups, QUANTITIES[name][0].casefold(), "target accuracy")


def _caption(runs: pd.DataFrame, name: str) -> str:
    return f"{QUANTITIES[name][0]} and target accuracy, {counted(int(runs[name].notna().sum()), 'run')}."
