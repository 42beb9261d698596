"""The theory checked: do margins and posterior discrepancies go with target accuracy?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from longshift.analysis import Relation, relate, relate_within
from longshift.array_types import FloatArray
from longshift.report.runs import each_once
from longshift.report.table import Cell, Column, Table, TableRow, float_or_none, slug
from longshift.report.titles import order_datasets, order_settings, words
from longshift.sweep import averages
from longshift.text import counted

ACCURACY = "target_accuracy"
CELL = ["dataset", "setting", "target"]
QUANTITIES = {  # with the sign that the theory expects
    "target_margin": ("Margin on the target", "+"),
    "validation_margin": ("Margin on validation", "+"),
    "posterior_target": ("Posterior discrepancy to the target", "-"),
    "posterior_sources": ("Posterior discrepancy among sources", "-"),
}
COLUMNS = tuple(  # narrow enough for a terminal of 80 columns
    Column(title, "", {"measure": measure}, None)
    for measure, title in (
        ("n", "n"), ("pearson", "r"), ("pearson_low", "from"), ("pearson_high", "to"), ("pearson_p", "p"),
        ("spearman", "rho"), ("spearman_p", "p"),
    )
)  # fmt: skip
FLAT = "does not vary"
FEW = "too few points"


def theory_runs(chosen: pd.DataFrame) -> pd.DataFrame:
    """The chosen runs with a target accuracy, each once.

    Averaged weights are left out, they are those of the same runs; so is a variant that rests on another row's run.
    """
    return each_once(chosen[chosen[ACCURACY].notna()])


def measured(runs: pd.DataFrame) -> list[str]:
    """The quantities that vary over the runs, which have a number in three or more of them."""
    found = {name: runs[name].dropna().round(12) for name in QUANTITIES if name in runs}
    return [name for name, values in found.items() if len(values) >= 3 and values.nunique() > 1]


def theory_tables(chosen: pd.DataFrame) -> list[Table]:
    """One table per quantity: over all runs, in cells, over means of methods, and setting by setting."""
    runs = theory_runs(chosen)
    names = measured(runs)
    lacking = [title for name, (title, _) in QUANTITIES.items() if name not in names]
    rule = str(chosen["rule"].iloc[0])
    tables: list[Table] = []
    for name in names:
        title, sign = QUANTITIES[name]
        caption = words("theory_caption", first=QUANTITIES[names[0]][0] if tables else "", rule=rule)
        notes = [words("margin_note")] if name == "target_margin" else []
        notes += [words("lacking_note", lacking=lacking)] if lacking and name == names[-1] else []
        tables.append(
            Table(
                f"theory-{slug(name)}", "theory", f"{title} and target accuracy (expected sign: {sign})", COLUMNS,
                tuple(_rows(runs, name)), caption, rule, tuple(notes), head="Points",
            )
        )  # fmt: skip
    return tables


def _rows(runs: pd.DataFrame, name: str) -> Iterator[TableRow]:
    known = runs[runs[name].notna()]
    yield _row(name, "all", "all runs", known)
    places = [tuple(place) for place in known[CELL].itertuples(index=False)]
    if len(set(places)) > 1:
        found, cells = relate_within(_values(known, name), _values(known, ACCURACY), places)
        yield _relation_row(name, "within", f"in {counted(cells, 'cell')}", found, len(known))
    yield _row(name, "means", "means", averages(known, [name, ACCURACY]).dropna(subset=[name, ACCURACY]))
    for key, ordered in (("setting", order_settings(known["setting"])), ("dataset", order_datasets(known["dataset"]))):
        for value in ordered if len(ordered) > 1 else ():
            yield _row(name, value, value, known[known[key] == value])


def _row(name: str, scope: str, title: str, part: pd.DataFrame) -> TableRow:
    return _relation_row(name, scope, title, relate(_values(part, name), _values(part, ACCURACY)), len(part))


def _relation_row(name: str, scope: str, title: str, found: Relation | None, points: int) -> TableRow:
    cells = [Cell(points, digits=0, runs=points), *[Cell(note=FEW, runs=points)] * 6]
    if found is not None:
        one, other, n = found.pearson, found.spearman, found.pearson.n
        why = FLAT if np.isnan(one.r) else FEW
        cells = [Cell(n, digits=0, runs=n)]
        for value, is_p in ((one.r, 0), (one.low, 0), (one.high, 0), (one.p, 1), (other.r, 0), (other.p, 1)):
            note = why if np.isnan(value) else ""
            cells.append(Cell(float_or_none(value), None, None, note, 3, not is_p, runs=n, least=0.001 * is_p))
    return TableRow(f"{name}: {scope}", title, "", tuple(cells))


def _values(frame: pd.DataFrame, name: str) -> FloatArray:
    return frame[name].to_numpy(dtype=np.float64)
