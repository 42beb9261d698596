"""Methods against one of them: differences in the same (target, trial), so that easy and hard targets cancel."""

from __future__ import annotations

import pandas as pd

from longshift.errors import UsageError, unknown_name
from longshift.report.table import Cell, Column, Table, float_or_none, method_rows
from longshift.report.titles import RULES, method_title, order_methods, order_places
from longshift.results import standard_error
from longshift.text import counted

MEASURES = {"validation_accuracy": "Validation", "target_accuracy": "Target", "target_few": "Few"}
PAIR = ["dataset", "setting", "target", "trial"]
ALL = "all"


def paired_tables(chosen: pd.DataFrame, against: str) -> list[Table]:
    """One table: each method minus `against`, for every dataset and setting and, if there are several, over all."""
    known = order_methods(chosen["method"])
    spelled = {word.casefold(): name for name in reversed(known) for word in (method_title(name), name)}
    if against.casefold() not in spelled:
        raise UsageError(f"--against: {unknown_name('row', against, known)}")
    against = against if against in known else spelled[against.casefold()]
    places = order_places(chosen)
    parts = {(d, s): chosen[(chosen["dataset"] == d) & (chosen["setting"] == s)] for d, s in places}
    if len(places) > 1:
        parts[ALL, ALL] = chosen
    several = chosen["dataset"].nunique() > 1
    columns = tuple(
        Column(title, _heading(place, several), {"dataset": place[0], "setting": place[1], "measure": measure}, None)
        for place in parts
        for measure, title in MEASURES.items()
    )
    rows = method_rows(
        (method for method in known if method != against),
        lambda m: (_cell(part, m, against, measure) for part in parts.values() for measure in MEASURES),
    )
    width = len(MEASURES)
    most = max((cell.runs for row in rows for cell in row.cells[: width * len(places)]), default=0)
    every = max((cell.runs for row in rows for cell in row.cells[width * len(places) :]), default=0)
    each = f"in each {'dataset and setting' if several else 'setting'} and {every} over all" if len(places) > 1 else ""
    rule = str(chosen["rule"].iloc[0])
    caption = (
        f"Points of accuracy: on the validation set, on the target, and on its few-shot classes. Each trial on each "
        f"target is a pair, the method minus {method_title(against)}; mean ± standard error over pairs "
        f"(divisor n - 1), {' '.join(filter(None, (counted(most, 'pair'), each, 'at most')))}. "
        f"Selection: {rule} ({RULES[rule]})."
    )
    return [Table("paired", "paired", f"Paired differences from {method_title(against)}", columns, rows, caption, rule)]


def _heading(place: tuple[str, str], several: bool) -> str:
    dataset, setting = place
    return "All" if place == (ALL, ALL) else f"{dataset}, {setting}" if several else setting


def _cell(part: pd.DataFrame, method: str, against: str, measure: str) -> Cell:
    mine, other = (part[part["method"] == name].set_index(PAIR)[measure] for name in (method, against))
    gaps = (mine - other).dropna()
    if gaps.empty:
        return Cell(note="no pair with both numbers")
    stderr = float_or_none(100 * standard_error(gaps, ddof=1))
    return Cell(100 * float(gaps.mean()), stderr, digits=2, signed=True, runs=len(gaps))
