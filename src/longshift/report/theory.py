"""The theory checked: do margins and posterior discrepancies go with target accuracy?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from longshift.metrics.arrays import FloatArray
from longshift.report.compare import Published
from longshift.report.names import RULES, is_averaged, order_datasets, order_settings
from longshift.report.relation import Relation, relate, relate_within
from longshift.report.table import Cell, Column, Row, Table, number
from longshift.sweep.selection import averages
from longshift.words import counted

ACCURACY = "target_accuracy"
CELL = ["dataset", "setting", "target"]
QUANTITIES = {  # with the sign that the theory expects
    "target_margin": ("Margin on the target", "+"),
    "validation_margin": ("Margin on validation", "+"),
    "posterior_target": ("Posterior discrepancy to the target", "-"),
    "posterior_sources": ("Posterior discrepancy among sources", "-"),
}
COLUMNS = (
    Column("n", "", {"measure": "n"}, None),
    Column("r", "Pearson", {"measure": "pearson"}, None),
    Column("95 % from", "Pearson", {"measure": "pearson_low"}, None),
    Column("to", "Pearson", {"measure": "pearson_high"}, None),
    Column("p", "Pearson", {"measure": "pearson_p"}, None),
    Column("rho", "Spearman", {"measure": "spearman"}, None),
    Column("p", "Spearman", {"measure": "spearman_p"}, None),
)
CAPTION = (
    "Correlation with target accuracy; + or -: the sign that the theory expects. A point is a run that counts (of each "
    "trial the best draw). Within cells: both minus their means over the runs of the same dataset, setting and target; "
    "the means cost degrees of freedom, n - cells - 1 are left for p and interval (n - 2 elsewhere). Means: a point is "
    "a method in a setting, averaged over targets and trials. Interval: Fisher's transformation. p takes runs of "
    "one method as independent and so is rather too small."
)
BY_DEFINITION = (
    "A margin is positive where the prediction is right: on the target it goes with accuracy by definition, and only "
    "the strength is a finding."
)
FLAT = "does not vary"
FEW = "too few points"


def theory_runs(chosen: pd.DataFrame) -> pd.DataFrame:
    """The chosen runs with a target accuracy; averaged weights are left out, they are those of the same runs."""
    own = ~chosen["method"].map(lambda name: is_averaged(str(name))).astype(bool)
    return chosen[own & chosen[ACCURACY].notna()]


def measured(runs: pd.DataFrame) -> list[str]:
    """The quantities that vary over the runs, which have a number in three or more of them."""
    found = {name: runs[name].dropna().round(12) for name in QUANTITIES if name in runs}
    return [name for name, values in found.items() if len(values) >= 3 and values.nunique() > 1]


def why_no_theory(chosen: pd.DataFrame) -> str:
    """One line if nothing can be said, else nothing."""
    if measured(theory_runs(chosen)):
        return ""
    return "Theory: left out, since margins and posterior discrepancies are empty or all the same in these runs."


def theory_tables(chosen: pd.DataFrame) -> list[Table]:
    """One table: each quantity over all runs, within cells, over means of methods, and setting by setting."""
    runs = theory_runs(chosen)
    names = measured(runs)
    if not names:
        return []
    rows = [row for name in names for row in _rows(runs, name)]
    lacking = [title for name, (title, _) in QUANTITIES.items() if name not in names]
    notes = [BY_DEFINITION] if "target_margin" in names else []
    if lacking:
        notes.append(f"Left out, since empty or all the same: {', '.join(lacking)}.")
    rule = str(chosen["rule"].iloc[0])
    caption = f"{CAPTION} Selection: {rule} ({RULES[rule]})."
    title = "Theory: correlation of margins and posterior discrepancies with target accuracy"
    return [Table("theory", "theory", title, COLUMNS, tuple(rows), caption, rule, tuple(notes), head="Quantity")]


def _rows(runs: pd.DataFrame, name: str) -> Iterator[Row]:
    known = runs[runs[name].notna()]
    yield _row(name, "all", "all runs", relate(_values(known, name), _values(known, ACCURACY)), len(known))
    places = [tuple(place) for place in known[CELL].itertuples(index=False)]
    if len(set(places)) > 1:
        found, cells = relate_within(_values(known, name), _values(known, ACCURACY), places)
        yield _row(name, "within", f"within {counted(cells, 'cell')}", found, len(known))
    means = averages(known, [name, ACCURACY]).dropna(subset=[name, ACCURACY])
    yield _row(name, "means", "means", relate(_values(means, name), _values(means, ACCURACY)), len(means))
    datasets, settings = order_datasets(known["dataset"]), order_settings(known["setting"])
    for setting in settings if len(settings) > 1 else ():
        part = known[known["setting"] == setting]
        yield _row(name, setting, setting, relate(_values(part, name), _values(part, ACCURACY)), len(part))
    for dataset in datasets if len(datasets) > 1 else ():
        part = known[known["dataset"] == dataset]
        yield _row(name, dataset, dataset, relate(_values(part, name), _values(part, ACCURACY)), len(part))


def _row(name: str, scope: str, words: str, found: Relation | None, points: int) -> Row:
    title, sign = QUANTITIES[name]
    if found is None:
        cells = [Cell(points, digits=0, runs=points), *[Cell(note=FEW, runs=points)] * 6]
    else:
        one, other, n = found.pearson, found.spearman, found.pearson.n
        values = (one.r, one.low, one.high, one.p, other.r, other.p)
        cells = [Cell(n, digits=0, runs=n)]
        for value, kind in zip(values, ("r", "r", "r", "p", "r", "p"), strict=True):
            cells.append(_p(value, n) if kind == "p" else _coefficient(value, n, FLAT if np.isnan(one.r) else FEW))
    return Row(f"{name}: {scope}", f"{title} ({sign}), {words}", name, tuple(cells))


def _coefficient(value: float, n: int, why: str = FLAT) -> Cell:
    found = number(value)
    return Cell(found, digits=3, signed=True, note="" if found is not None else why, runs=n)


def _p(value: float, n: int) -> Cell:
    found = number(value)
    return Cell(found, digits=3, least=0.001, note="" if found is not None else FLAT, runs=n)


def _values(frame: pd.DataFrame, name: str) -> FloatArray:
    return frame[name].to_numpy(dtype=np.float64)


def beside_published(tables: Sequence[Table], against: Published) -> list[Table]:
    """The tables, with a row of published correlations below the measured ones of the same quantity."""
    return [_with_published(table, against) if table.kind == "theory" else table for table in tables]


def _with_published(table: Table, against: Published) -> Table:
    rows: list[Row] = []
    for name, block in table.families():
        rows += block
        there = against.correlations.get(name)
        if there is not None:
            title, sign = QUANTITIES[name]
            blank = Cell(note=f"not printed in {against.source}")
            cells = (
                Cell(there.points, digits=0), _coefficient(there.r, 0), blank, blank, _p(there.p, 0), blank, blank,
            )  # fmt: skip
            rows.append(Row(f"{name}: published", f"{title} ({sign}), {against.source}", name, cells))
    if len(rows) == len(table.rows):
        return table
    places = sorted({there.place for there in against.correlations.values()})
    note = f'Rows of {against.source}: means, on {", ".join(places)}, with {against.backbone}; compare with "means".'
    return replace(table, rows=tuple(rows), notes=(*table.notes, note))
