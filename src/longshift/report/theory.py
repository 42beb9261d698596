"""The theory checked: do margins and posterior discrepancies go with target accuracy?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from longshift.analysis import Relation, relate, relate_within
from longshift.array_types import FloatArray
from longshift.report.comparison import Published
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


def _row(name: str, scope: str, words: str, part: pd.DataFrame) -> TableRow:
    return _relation_row(name, scope, words, relate(_values(part, name), _values(part, ACCURACY)), len(part))


def _relation_row(name: str, scope: str, words: str, found: Relation | None, points: int) -> TableRow:
    if found is None:
        cells = [Cell(points, digits=0, runs=points), *[Cell(note=FEW, runs=points)] * 6]
    else:
        one, other, n = found.pearson, found.spearman, found.pearson.n
        why = FLAT if np.isnan(one.r) else FEW
        cells = [Cell(n, digits=0, runs=n), *(_coefficient(value, n, why) for value in (one.r, one.low, one.high))]
        cells += [_p(one.p, n, why), _coefficient(other.r, n, why), _p(other.p, n, why)]
    return TableRow(f"{name}: {scope}", words, "", tuple(cells))


def _coefficient(value: float, n: int, why: str = FLAT) -> Cell:
    return Cell(float_or_none(value), digits=3, signed=True, note=why if np.isnan(value) else "", runs=n)


def _p(value: float, n: int, why: str = FLAT) -> Cell:
    return Cell(float_or_none(value), digits=3, least=0.001, note=why if np.isnan(value) else "", runs=n)


def _values(frame: pd.DataFrame, name: str) -> FloatArray:
    return frame[name].to_numpy(dtype=np.float64)


def beside_published(tables: Sequence[Table], against: Published) -> list[Table]:
    """The tables, with a row of the published correlation at the end of those on theory that have one."""
    shown = []
    for table in tables:
        name = table.rows[0].name.partition(":")[0] if table.kind == "theory" else ""
        there = against.correlations.get(name)
        if there is not None:
            blank = Cell(note=f"not printed in {against.source}")
            numbers = Cell(there.points, digits=0), _coefficient(there.r, 0), blank, blank, _p(there.p, 0), blank, blank
            row = TableRow(f"{name}: published", against.source, against.source, numbers)
            note = words(
                "published_correlation_note", source=against.source, backbone=against.backbone, place=there.place
            )
            table = replace(table, rows=(*table.rows, row), notes=(*table.notes, note))
        shown.append(table)
    return shown
