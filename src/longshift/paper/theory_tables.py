"""The theory's quantities: prior discrepancy, margins, posterior discrepancy (Tables 7, 10 and 11, and Fig. 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from longshift.analysis import correlate, margin_summary, posterior_discrepancy, prior_discrepancy
from longshift.array_types import FloatArray
from longshift.errors import LongshiftError
from longshift.metrics import nan_mean
from longshift.paper.recipe import Impossible, Output, Picture, Recipe, Results, caption
from longshift.paper.studies import SETTINGS
from longshift.paper.workspace import Workspace
from longshift.report import (
    RULES,
    Cell,
    Column,
    Table,
    TableRow,
    float_or_none,
    method_rows,
    method_title,
    order_settings,
    with_places,
    with_spread_note,
)
from longshift.sweep import Job, averages

PRIOR_METHODS = ("erm", "mmd", "rdm", "pgrad", "tcri", "bsoftmax", "ginidg", "boda", "ndcl")
MARGIN_METHODS = ("pgrad", "tcri", "bsoftmax", "ginidg", "boda", "ndcl")
QUANTITIES = {"margin": ("Avg margin", True), "small_margin": ("Pr[margin <= 0]", False), "posterior": ("PD", False)}
DELTA = 0.0  # the paper's
PRIOR_LIMIT = 1_000  # samples per domain up to which the distance is exact; beyond, sliced
CLASS_LABELS = {
    "margin": "margin on the target\n(larger is better)",
    "posterior": "posterior discrepancy\n(smaller is better)",
}


def margin_jobs(workspace: Workspace) -> list[Job]:
    """The paper's six methods."""
    return workspace.grid(workspace.chosen_methods(MARGIN_METHODS), SETTINGS)


def with_quantities(results: Results) -> pd.DataFrame:
    """The chosen runs with the columns margin, small_margin and posterior (target; sources: held-out samples)."""

    def measure(fingerprint: str) -> tuple[float, ...]:
        sources, target = results.outputs(fingerprint)
        margins = margin_summary(target.logits, target.labels, DELTA, results.name(fingerprint))
        return margins.average, margins.small, posterior_discrepancy(sources, target).average

    return _with_columns(results, ("margin", "small_margin", "posterior"), measure)


def _with_columns(
    results: Results, names: Sequence[str], measure: Callable[[str], tuple[float | None, ...]]
) -> pd.DataFrame:
    """The chosen runs with what `measure` returns for each; NaN for a trial without a run."""
    empty = (None,) * len(names)
    rows = [empty if pd.isna(name) else measure(str(name)) for name in results.chosen["fingerprint"]]
    columns = np.array(rows, dtype=np.float64).reshape(-1, len(names))
    return results.chosen.assign(**dict(zip(names, columns.T, strict=True)))


def quantity_table(
    results: Results, frame: pd.DataFrame, measures: Mapping[str, tuple[str, bool | None]], name: str, title: str,
    text: str, digits: int = 3,
) -> Table:  # fmt: skip
    """Measures of the chosen runs: averaged over targets inside each trial, mean and standard error over trials."""
    found = averages(frame, list(measures))
    columns = tuple(
        Column(heading, setting, {"dataset": results.workspace.name, "setting": setting, "measure": measure}, better)
        for setting in order_settings(found["setting"])
        for measure, (heading, better) in measures.items()
    )
    records = {(str(r["setting"]), str(r["method"])): r for r in found.to_dict("records")}

    def cell(method: str, column: Column) -> Cell:
        record, measure = records[column.key["setting"], method], column.key["measure"]
        value, error = float_or_none(record[measure]), float_or_none(record[f"{measure}_stderr"])
        note = "" if value is not None else "no complete trial"
        return Cell(value, error, digits=digits, trials=int(record["trials"]), runs=int(record["runs"]), note=note)

    rows = method_rows(found["method"], lambda method: (cell(method, column) for column in columns))
    notes = with_spread_note(rows, results.missing)
    text += " " + caption("averaged", targets=frame["target"].nunique(), rule=RULES["validation"])
    return with_places(Table(name, "quantities", title, columns, rows, text, "validation", notes))


def _prior(results: Results) -> list[Output]:
    kinds: set[str] = set()

    def measure(fingerprint: str) -> tuple[float | None, ...]:
        found = prior_discrepancy(*results.outputs(fingerprint), limit=PRIOR_LIMIT)
        kinds.add(found.kind)  # how the distances were measured
        return found.source_source, found.source_target

    frame = _with_columns(results, ("source_source", "source_target"), measure)
    measures = {"source_source": ("SS", None), "source_target": ("ST", None)}
    if frame["source_source"].isna().all():
        raise Impossible("there is one source domain only: no distance between sources")
    title = f"Prior discrepancy in learned embeddings, {results.workspace.name}"
    return [quantity_table(results, frame, measures, "prior", title, caption("prior", kinds=kinds), digits=2)]


def _quantitative(results: Results) -> list[Output]:
    title = f"Margin and posterior discrepancy, {results.workspace.name}"
    measures: dict[str, tuple[str, bool | None]] = dict(QUANTITIES)
    text = caption("quantitative")
    return [quantity_table(results, with_quantities(results), measures, "quantitative", title, text)]


def _pearson(results: Results) -> list[Output]:
    frame = with_quantities(results)
    found = averages(frame, [*QUANTITIES, "target_accuracy"]).dropna(subset=[*QUANTITIES, "target_accuracy"])
    points = found.set_index([found["setting"], found["method"]])
    try:
        # Rounded, so that values that differ in rounding errors alone do not correlate with anything.
        rows = correlation_rows(points[list(QUANTITIES)].round(12), points["target_accuracy"])
    except LongshiftError as error:
        raise Impossible(str(error)) from error
    columns = tuple(Column(title, "", {"measure": q}, None) for q, (title, _) in QUANTITIES.items())
    title = f"Correlation of the theory's quantities with target accuracy, {results.workspace.name}"
    text, notes = caption("pearson", points=len(points)), (caption("pearson-definition"), *results.missing.notes())
    return [Table("pearson", "quantities", title, columns, rows, text, "validation", notes, head="")]


def correlation_rows(quantities: pd.DataFrame, accuracy: pd.Series[float]) -> tuple[TableRow, ...]:
    """Coefficient, p-value and interval of each quantity, one column per quantity."""
    table = correlate(quantities, accuracy)
    r, p, low, high = (np.asarray(table[name], dtype=np.float64) for name in ("correlation", "p_value", "low", "high"))
    flat = "a quantity that does not vary has no correlation"
    why = [flat if np.isnan(v) else "an interval needs 4 points" for v in r]
    return (
        TableRow("correlation", "Correlation", "", tuple(_cell(v, 3, flat) for v in r)),
        TableRow("p_value", "p-value", "", tuple(_cell(v, 8, flat, 1e-8) for v in p)),
        TableRow("low", "95 % interval, from", "", tuple(_cell(v, 3, w) for v, w in zip(low, why, strict=True))),
        TableRow("high", "95 % interval, to", "", tuple(_cell(v, 3, w) for v, w in zip(high, why, strict=True))),
    )


def _cell(value: float, digits: int, why: str, least: float = 0.0) -> Cell:
    return Cell(note=why) if np.isnan(value) else Cell(float(value), digits=digits, least=least)


def class_order(results: Results, setting: str) -> list[int]:
    """Classes by their training samples, summed over the targets' training sets; most first."""
    part = results.chosen[results.chosen["setting"] == setting]
    counts: Sequence[Any] = [
        np.asarray(results.result(str(f))["split"]["counts"], dtype=np.int64).sum(axis=0)
        for f in part["fingerprint"].dropna()
    ]
    total = np.sum(counts, axis=0)
    return sorted(range(len(total)), key=lambda k: (-int(total[k]), k))


def _per_class(results: Results) -> list[Output]:
    from longshift.report import class_curves

    classes = results.workspace.manifest.classes
    names: dict[str, list[str]] = {}
    panels: dict[str, dict[str, dict[str, FloatArray]]] = {quantity: {} for quantity in CLASS_LABELS}
    rows = []
    absent: set[str] = set()
    for setting in SETTINGS:
        order = class_order(results, setting)
        names[setting] = [classes[k] for k in order]
        part = results.chosen[results.chosen["setting"] == setting]
        for method in MARGIN_METHODS:
            runs = part.loc[part["method"] == method, "fingerprint"].dropna()
            if runs.empty:
                continue
            outputs = [results.outputs(str(f)) for f in runs]
            found = {
                "margin": [margin_summary(t.logits, t.labels, DELTA, t.name).per_class for _, t in outputs],
                "posterior": [posterior_discrepancy(sources, t).per_class for sources, t in outputs],
            }
            for quantity in CLASS_LABELS:
                values = nan_mean(np.stack(found[quantity]))[order]
                panels[quantity].setdefault(setting, {})[method_title(method)] = values
                absent |= {names[setting][i] for i in np.flatnonzero(np.isnan(values))}
                rows += [
                    {"setting": setting, "method": method, "quantity": quantity, "class": name, "mean": value}
                    for name, value in zip(names[setting], values, strict=True)
                ]
    heading = f"Margin and posterior discrepancy per class, {results.workspace.name}"
    drawing = class_curves(names, panels, CLASS_LABELS, heading)
    text = caption("per-class", results.missing, absent=absent)
    return [Picture("per-class", heading, drawing, text, pd.DataFrame(rows))]


RECIPES = (
    Recipe(
        "prior", "Tab. 7", "prior discrepancy in learned embeddings", "table",
        lambda workspace: workspace.grid(workspace.chosen_methods(PRIOR_METHODS), SETTINGS), _prior,
        predictions=True, paper="prior",
    ),
    Recipe(
        "quantitative", "Tab. 10", "margin and posterior discrepancy", "table", margin_jobs, _quantitative,
        predictions=True, paper="quantitative",
    ),
    Recipe(
        "pearson", "Tab. 11", "correlation of these with target accuracy", "table", margin_jobs, _pearson,
        predictions=True, paper="pearson",
    ),
    Recipe(
        "per-class", "Fig. 4", "margin and posterior discrepancy of each class", "figure", margin_jobs, _per_class,
        predictions=True,
    ),
)  # fmt: skip
