"""Fig. 5 and 10: what alpha, beta and rho do to NDCL."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from longshift.paper.chosen_runs import Results
from longshift.paper.recipe import Impossible, Output, Picture, Recipe
from longshift.paper.recipes.variants import SETTINGS
from longshift.paper.workspace import Workspace
from longshift.report import GROUPS
from longshift.results import averages
from longshift.sweep import Job

MEASURES = {f"target_{name}": title for name, title in GROUPS.items()}


def _study(workspace: Workspace, label: str, hparams: dict[str, Any]) -> list[Job]:
    if "ndcl" not in workspace.methods:
        return []
    return [
        workspace.job("ndcl", setting, target, trial, 0, label, hparams)
        for trial in range(workspace.scale.study_trials)
        for setting in SETTINGS
        for target in workspace.study_targets
    ]


def weight_jobs(workspace: Workspace) -> list[Job]:
    """The grid of alpha and beta, the other hyper-parameters at their defaults."""
    grid = product(workspace.scale.exponents, repeat=2)
    return [
        job for a, b in grid for job in _study(workspace, _label(a, b), {"alpha": 10.0**a, "beta": 10.0**b})
    ]  # fmt: skip


def _label(a: int, b: int) -> str:
    return f"NDCL, log10 alpha {a}, log10 beta {b}"


def rho_jobs(workspace: Workspace) -> list[Job]:
    """NDCL with each rho."""
    return [job for rho in workspace.scale.rhos for job in _study(workspace, f"NDCL, rho {rho:g}", {"rho": rho})]


def _means(results: Results) -> pd.DataFrame:
    if not results.jobs:
        raise Impossible("it is a study of NDCL, which does not take part")
    return averages(results.chosen, list(MEASURES)).set_index(["setting", "method"])


def _at(means: pd.DataFrame, row: tuple[str, str], column: str) -> float:
    return float(means[column].astype(float)[row])


def _shape(results: Results) -> str:
    scale, targets = results.workspace.scale, results.workspace.study_targets
    trials = f"{scale.study_trials} trials" if scale.study_trials > 1 else "1 trial"
    over = f"{len(targets)} targets" if len(targets) > 1 else f"the target {targets[0]}"
    lost = results.missing.sentences()
    return " ".join([f"Mean over {over} and {trials}.", *lost])


def _weights(results: Results) -> list[Output]:
    from longshift.report import accuracy_grids

    means, exponents = _means(results), results.workspace.scale.exponents
    panels: dict[str, dict[str, Any]] = {}
    rows = []
    for setting, (measure, group) in product(SETTINGS, MEASURES.items()):
        values = np.full((len(exponents), len(exponents)), np.nan)
        for (i, a), (j, b) in product(enumerate(exponents), repeat=2):
            values[i, j] = 100 * _at(means, (setting, _label(a, b)), measure)
            rows.append({"setting": setting, "group": group, "log10_alpha": a, "log10_beta": b, "mean": values[i, j]})
        if np.isfinite(values).any():
            panels.setdefault(setting, {})[group] = values
    heading = f"NDCL's target accuracy (%) by alpha and beta, {results.workspace.name}"
    caption = (
        "Rows: log10 of alpha, the weight of the contrastive term; columns: log10 of beta, that of the alignment. "
        f"A frame marks the best cell; colors are scaled in each panel. {_shape(results)}"
    )
    drawing = accuracy_grids(exponents, panels, heading)
    return [Picture("alpha-beta", heading, drawing, caption, pd.DataFrame(rows))]


def _rho(results: Results) -> list[Output]:
    from longshift.report import parameter_curves

    means, rhos = _means(results), results.workspace.scale.rhos
    panels: dict[str, dict[str, Any]] = {}
    rows = []
    for setting, (measure, group) in product(SETTINGS, MEASURES.items()):
        keys = [(setting, f"NDCL, rho {rho:g}") for rho in rhos]
        mean = np.array([100 * _at(means, key, measure) for key in keys])
        error = np.array([100 * _at(means, key, f"{measure}_stderr") for key in keys])
        rows += [
            {"setting": setting, "group": group, "rho": r, "mean": m, "stderr": e}
            for r, m, e in zip(rhos, mean, error, strict=True)
        ]
        if np.isfinite(mean).any():
            panels.setdefault(setting, {})[group] = (mean, error)
    heading = f"NDCL's target accuracy (%) by rho, {results.workspace.name}"
    caption = (
        "Mixing coefficients are drawn from Beta(rho, rho): near 0 and 1 for rho < 1, near 1/2 for rho > 1. "
        f"{_shape(results)}"
    )
    drawing = parameter_curves(rhos, panels, "rho", heading)
    return [Picture("rho", heading, drawing, caption, pd.DataFrame(rows))]


def parameter_recipes() -> list[Recipe]:
    """Those in this file."""
    return [
        Recipe("alpha-beta", "Fig. 5", "target accuracy by alpha and beta", "figure", weight_jobs, _weights),
        Recipe("rho", "Fig. 10", "target accuracy by rho", "figure", rho_jobs, _rho),
    ]
