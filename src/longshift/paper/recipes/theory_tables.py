"""Tab. 7, 10 and 11: prior discrepancy, margins and posterior discrepancy, and how they go with accuracy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from longshift.errors import LongshiftError
from longshift.paper.chosen_runs import Results
from longshift.paper.recipe import Impossible, Output, Recipe, require_methods
from longshift.paper.recipes.variants import SETTINGS
from longshift.paper.theory_quantities import with_prior, with_quantities
from longshift.paper.workspace import Workspace
from longshift.report import (
    RULES,
    Cell,
    Column,
    Row,
    Table,
    float_or_none,
    method_rows,
    order_settings,
    with_places,
    with_spread_note,
)
from longshift.results import averages
from longshift.sweep import Job

PRIOR_METHODS = ("erm", "mmd", "rdm", "pgrad", "tcri", "bsoftmax", "ginidg", "boda", "ndcl")
MARGIN_METHODS = ("pgrad", "tcri", "bsoftmax", "ginidg", "boda", "ndcl")
QUANTITIES = {"margin": ("Avg margin", True), "small_margin": ("Pr[margin <= 0]", False), "posterior": ("PD", False)}
BY_DEFINITION = (
    "A margin is positive exactly where the prediction is right, so Pr[margin <= 0] on the target is one minus the "
    "accuracy: its correlation is -1 by definition, up to ties."
)
HELD_OUT = "Sources: their held-out samples (validation and test)."


def prior_jobs(workspace: Workspace) -> list[Job]:
    """The paper's nine methods."""
    return workspace.grid(workspace.chosen_methods(PRIOR_METHODS), SETTINGS)


def margin_jobs(workspace: Workspace) -> list[Job]:
    """The paper's six methods."""
    return workspace.grid(workspace.chosen_methods(MARGIN_METHODS), SETTINGS)


def quantity_table(
    results: Results, frame: pd.DataFrame, measures: Mapping[str, tuple[str, bool | None]], name: str, title: str,
    caption: str, digits: int = 3,
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
    targets = frame["target"].nunique()
    over = f"Averaged within each trial over {targets} targets" if targets > 1 else "One target"
    rule = f"Selection: validation ({RULES['validation']})."
    notes = with_spread_note(rows, results.missing)
    text = f"{caption} {over}; mean ± standard error over trials. {rule}"
    return with_places(Table(name, "quantities", title, columns, rows, text, "validation", notes))


def _prior(results: Results) -> list[Output]:
    require_methods(results, PRIOR_METHODS)
    frame, kinds = with_prior(results)
    measures = {"source_source": ("SS", None), "source_target": ("ST", None)}
    if frame["source_source"].isna().all():
        raise Impossible("there is one source domain only: no distance between sources")
    how = " and ".join(sorted(kinds))
    caption = (
        f"2-Wasserstein distance ({how}) between the embeddings of domains: mean over pairs of sources (SS), mean over "
        f"sources to the target (ST). {HELD_OUT} The paper does not state the scale of its distances."
    )
    title = f"Prior discrepancy in learned embeddings, {results.workspace.name}"
    return [quantity_table(results, frame, measures, "prior", title, caption, digits=2)]


def _quantitative(results: Results) -> list[Output]:
    require_methods(results, MARGIN_METHODS)
    caption = (
        "Margin gamma(h) = p_y - max p_k over k != y on the target; PD: Jensen-Shannon divergence (nats) between the "
        f"mean posteriors of a class in a source and in the target, averaged over classes and sources. {HELD_OUT}"
    )
    title = f"Margin and posterior discrepancy, {results.workspace.name}"
    measures: dict[str, tuple[str, bool | None]] = dict(QUANTITIES)
    return [quantity_table(results, with_quantities(results), measures, "quantitative", title, caption)]


def _pearson(results: Results) -> list[Output]:
    require_methods(results, MARGIN_METHODS)
    frame = with_quantities(results)
    found = averages(frame, [*QUANTITIES, "target_accuracy"]).dropna(subset=[*QUANTITIES, "target_accuracy"])
    points = found.set_index([found["setting"], found["method"]])
    try:
        # Rounded, so that values that differ in rounding errors alone do not correlate with anything.
        rows = correlation_rows(points[list(QUANTITIES)].round(12), points["target_accuracy"])
    except LongshiftError as error:
        raise Impossible(str(error)) from error
    columns = tuple(Column(title, "", {"measure": q}, None) for q, (title, _) in QUANTITIES.items())
    caption = (
        f"Pearson's correlation with target accuracy over {len(points)} points (method and setting), each averaged "
        "over targets and trials; interval by Fisher's transformation."
    )
    title = f"Correlation of the theory's quantities with target accuracy, {results.workspace.name}"
    notes = (BY_DEFINITION, *results.missing.sentences())
    return [Table("pearson", "quantities", title, columns, rows, caption, "validation", notes, head="")]


def correlation_rows(quantities: pd.DataFrame, accuracy: pd.Series[float]) -> tuple[Row, ...]:
    """Coefficient, p-value and interval of each quantity, one column per quantity."""
    from longshift.analysis import correlate

    table = correlate(quantities, accuracy)
    r, p, low, high = (np.asarray(table[name], dtype=np.float64) for name in ("correlation", "p_value", "low", "high"))
    flat = "a quantity that does not vary has no correlation"
    why = [flat if np.isnan(v) else "an interval needs 4 points" for v in r]
    return (
        Row("correlation", "Correlation", "", tuple(_cell(v, 3, flat) for v in r)),
        Row("p_value", "p-value", "", tuple(_cell(v, 8, flat, 1e-8) for v in p)),
        Row("low", "95% interval, from", "", tuple(_cell(v, 3, w) for v, w in zip(low, why, strict=True))),
        Row("high", "95% interval, to", "", tuple(_cell(v, 3, w) for v, w in zip(high, why, strict=True))),
    )


def _cell(value: float, digits: int, why: str, least: float = 0.0) -> Cell:
    return Cell(note=why) if np.isnan(value) else Cell(float(value), digits=digits, least=least)


def theory_recipes() -> list[Recipe]:
    """Those in this file."""
    parts = (
        ("prior", "Tab. 7", "prior discrepancy in learned embeddings", prior_jobs, _prior),
        ("quantitative", "Tab. 10", "margin and posterior discrepancy", margin_jobs, _quantitative),
        ("pearson", "Tab. 11", "correlation of these with target accuracy", margin_jobs, _pearson),
    )
    return [Recipe(*part[:3], "table", *part[3:], predictions=True, paper=part[0]) for part in parts]
