"""The generalization bound, term by term, for runs with kept predictions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from longshift.analysis import Bound, generalization_bound
from longshift.errors import LongshiftError
from longshift.report.run_records import KEEP_PREDICTIONS, Record, domain_predictions, read_records
from longshift.report.table import Cell, Column, Table, float_or_none, method_rows, slug
from longshift.report.table_registry import ReportRuns
from longshift.report.titles import RULES, order_places
from longshift.results import averages
from longshift.text import counted

TERMS = {
    "source_risk": "source risk", "margin": "Pr[margin <= 0]", "prior_in": "prior, in", "prior_out": "prior, out",
    "posterior_in": "posterior, in", "posterior_out": "posterior, out", "total": "sum of these",
    "target_risk": "target risk",
}  # fmt: skip
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
    # The tables show no intervals: draws for them would take minutes.
    return generalization_bound(sources, target, bootstrap=1)


def bound_tables(runs: ReportRuns) -> list[Table]:
    """One table per dataset and setting: the terms of each method, averaged over its runs."""
    found: dict[str, dict[str, float | None]] = {}
    for record in _records(runs):
        bound = bound_of(record)
        if bound is not None:
            found[str(record.folder)] = {name: getattr(bound, name).value for name in TERMS}
    if not found:
        raise LongshiftError(f"--table bound: expected runs with kept predictions, got none; {KEEP_PREDICTIONS}")
    frame = _with_terms(runs, found)
    return [
        _table(frame[(frame["dataset"] == dataset) & (frame["setting"] == setting)], dataset, setting)
        for dataset, setting in order_places(frame)
    ]


def _records(runs: ReportRuns) -> list[Record]:
    return read_records(runs.chosen, runs.folders, list(runs.chosen["method"].unique()))


def _with_terms(runs: ReportRuns, found: Mapping[str, Mapping[str, float | None]]) -> pd.DataFrame:
    """The chosen runs with a column per term; NaN where predictions were not kept."""
    places = [str(runs.folders.get(str(name), "")) for name in runs.chosen["fingerprint"]]
    columns = {name: np.array([found.get(place, {}).get(name) for place in places], dtype=float) for name in TERMS}
    return runs.chosen.assign(**columns)


def _table(part: pd.DataFrame, dataset: str, setting: str) -> Table:
    columns = tuple(
        Column(title, "", {"dataset": dataset, "setting": setting, "target": "", "measure": name}, None)
        for name, title in TERMS.items()
    )
    means = {str(row["method"]): row for row in averages(part, list(TERMS)).to_dict("records")}
    kept = part.groupby("method", observed=True)["total"].count()

    def cell(method: str, name: str) -> Cell:
        record = means[method]
        value, error = float_or_none(100 * record[name]), float_or_none(100 * record[f"{name}_stderr"])
        note = "" if value is not None else "no trial with predictions of all targets"
        return Cell(value, error, note=note, trials=int(record["trials"]), runs=int(kept[method]))

    rows = method_rows(means, lambda method: (cell(method, name) for name in TERMS))
    rule = str(part["rule"].iloc[0])
    caption = f"{CAPTION} {counted(int(kept.sum()), 'run')} with predictions. Selection: {rule} ({RULES[rule]})."
    title = f"Generalization bound on {dataset} under {setting}"
    return Table(f"bound-{slug(dataset)}-{slug(setting)}", "bound", title, columns, rows, caption, rule)
