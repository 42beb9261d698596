"""The generalization bound, term by term, for runs with kept predictions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from longshift.analysis import Bound, generalization_bound
from longshift.errors import LongshiftError
from longshift.report.run_records import Record, domain_predictions, read_records
from longshift.report.table import Cell, Column, Row, Table, number, slug
from longshift.report.table_registry import ReportRuns
from longshift.report.titles import RULES, family, method_title, order_datasets, order_methods, order_settings
from longshift.results import averages
from longshift.text import counted

TERMS = {
    "source_risk": "source risk", "margin": "Pr[margin <= 0]", "prior_in": "prior, in", "prior_out": "prior, out",
    "posterior_in": "posterior, in", "posterior_out": "posterior, out", "total": "sum of these",
    "target_risk": "target risk",
}  # fmt: skip
KEEP = "train with --save-predictions, or set save_predictions = true under [runtime] in the sweep file"
CAPTION = (
    "In percent; the theorem bounds the target risk by the sum of these terms and a term that cannot be computed "
    "(lambda). Sources: their held-out samples, weighted by the mixture that is closest to the target. Averaged over "
    "targets inside each trial; mean ± standard error over trials."
)


def bound_of(record: Record) -> Bound | None:
    """Return the terms of one run; None if it kept no predictions."""
    arrays = record.predictions()
    if arrays is None or "target_features" not in arrays:
        return None
    sources, target = domain_predictions(arrays, record.folder.name)
    return generalization_bound(sources, target)


def why_no_bound(runs: ReportRuns) -> str:
    """Return one line if no chosen run kept predictions, else nothing."""
    if any(record.predictions() is not None for record in _records(runs)):
        return ""
    return f"Bound: left out because no run kept its predictions; {KEEP}."


def bound_tables(runs: ReportRuns) -> list[Table]:
    """One table per dataset and setting: the terms of each method, averaged over its runs."""
    found: dict[str, dict[str, float]] = {}
    for record in _records(runs):
        bound = bound_of(record)
        if bound is not None:
            found[str(record.folder)] = {name: _value(getattr(bound, name).value) for name in TERMS}
    if not found:
        raise LongshiftError(f"--table bound: expected runs with kept predictions, got none; {KEEP}")
    frame = _with_terms(runs, found)
    tables = []
    for setting in order_settings(frame["setting"]):
        for dataset in order_datasets(frame.loc[frame["setting"] == setting, "dataset"]):
            tables.append(
                _table(frame[(frame["setting"] == setting) & (frame["dataset"] == dataset)], dataset, setting)
            )
    return tables


def _records(runs: ReportRuns) -> list[Record]:
    return read_records(runs.chosen, runs.folders, list(runs.chosen["method"].unique()))


def _with_terms(runs: ReportRuns, found: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """The chosen runs with a column per term; NaN where predictions were not kept."""
    places = [str(runs.folders.get(str(name), "")) for name in runs.chosen["fingerprint"]]
    columns = {name: [found.get(place, {}).get(name, np.nan) for place in places] for name in TERMS}
    return runs.chosen.assign(**columns)


def _table(part: pd.DataFrame, dataset: str, setting: str) -> Table:
    columns = tuple(
        Column(title, "", {"dataset": dataset, "setting": setting, "target": "", "measure": name}, None)
        for name, title in TERMS.items()
    )
    means = {str(row["method"]): row for row in averages(part, list(TERMS)).to_dict("records")}
    rows = []
    for method in order_methods(means):
        record = means[method]
        trials, runs = int(record["trials"]), int(part.loc[part["method"] == method, "total"].notna().sum())
        cells = []
        for name in TERMS:
            value, error = number(record[name]), number(record[f"{name}_stderr"])
            note = "" if value is not None else "no trial with predictions of all targets"
            scaled = None if value is None else 100 * value
            cells.append(Cell(scaled, None if error is None else 100 * error, note=note, trials=trials, runs=runs))
        rows.append(Row(method, method_title(method), family(method), tuple(cells)))
    rule = str(part["rule"].iloc[0])
    kept = int(part["total"].notna().sum())
    caption = f"{CAPTION} {counted(kept, 'run')} with predictions. Selection: {rule} ({RULES[rule]})."
    title = f"Generalization bound on {dataset} under {setting}"
    return Table(f"bound-{slug(dataset)}-{slug(setting)}", "bound", title, columns, tuple(rows), caption, rule)


def _value(value: float | None) -> float:
    return float("nan") if value is None else value
