"""Studies of NDCL: its parts (Tables 4, 6 and 8) and its parameters alpha, beta and rho (Figs. 5 and 10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from longshift.array_types import FloatArray
from longshift.paper.recipe import Output, Picture, Recipe, Results, caption
from longshift.paper.workspace import Workspace
from longshift.report import GROUPS, TableRow, average_tables
from longshift.sweep import Job, averages

SETTINGS = ("TotalHeavyTail", "Duality")
MEASURES = {f"target_{name}": title for name, title in GROUPS.items()}


@dataclass(frozen=True)
class Variant:
    """A row: what it is called, and the runs behind it."""

    label: str
    method: str
    hparams: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    block: str = ""  # rows of one block stand together


ABLATIONS = (
    Variant("ERM (baseline)", "erm", block="baseline"),
    Variant("NDCL-NoWeight", "ndcl", {"ablation": "no_weight"}, block="without"),
    Variant("NDCL-NoCon", "ndcl", {"ablation": "no_con"}, block="without"),
    Variant("NDCL-NoConst", "ndcl", {"ablation": "no_const"}, block="without"),
    Variant("NDCL-NoAug", "ndcl", {"ablation": "no_aug"}, block="without"),
    Variant("NDCL", "ndcl", block="whole"),
)
CONTRASTS = (
    Variant("NDCL, InfoNCE", "ndcl", {"contrast": "infonce"}, block="positives"),
    Variant("NDCL, SupCon", "ndcl", {"contrast": "supcon"}, block="positives"),
    Variant("NDCL, SupCon-ND", "ndcl", {"contrast": "supcon_nd"}, block="negatives"),
    Variant("NDCL, InfoNCE-ND", "ndcl", block="negatives"),
)
RESAMPLING = (
    Variant("BSoftmax, applied", "bsoftmax"),
    Variant("BSoftmax, omitted", "bsoftmax", keys={"sampling": "pooled"}),
)


def variant_jobs(workspace: Workspace, variants: Sequence[Variant]) -> list[Job]:
    """The runs of some variants under both settings of the paper's studies; none without the method they vary."""
    if variants[-1].method not in workspace.methods:
        return []
    return [
        job
        for v in variants
        if v.method in workspace.methods
        for job in workspace.grid([v.method], SETTINGS, v.hparams, v.label, **v.keys)
    ]


def variant_recipe(name: str, label: str, title: str, variants: Sequence[Variant], *notes: str) -> Recipe:
    """One table with the settings side by side, its rows in the order of the variants."""

    def make(results: Results) -> list[Output]:
        tables = average_tables(results.chosen, results.missing)
        columns = [replace(column, group=column.key["setting"]) for table in tables for column in table.columns]
        # Every variant is planned under every setting, so each table has its row, if only with dashes.
        found = [{row.name: row.cells for row in table.rows} for table in tables]
        rows = tuple(
            TableRow(v.label, v.label, v.block, tuple(cell for part in found for cell in part[v.label]))
            for v in variants
            if all(v.label in part for part in found)
        )
        said = dict.fromkeys([*(text for table in tables for text in table.notes), *map(caption, notes)])
        heading = f"Target accuracy (%): {title}, {results.workspace.name}"
        return [
            replace(
                tables[0], name=name, title=heading, columns=tuple(columns), rows=rows, head="Variant",
                notes=tuple(said),
            )
        ]  # fmt: skip

    return Recipe(
        name, label, title, "table", lambda workspace: variant_jobs(workspace, variants), make, paper=name
    )  # fmt: skip


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


def _values(results: Results, labels: Sequence[str]) -> Iterator[tuple[str, str, FloatArray, FloatArray]]:
    """Setting, group of classes, and the accuracy (%) of the rows of these labels with its standard error."""
    means = averages(results.chosen, list(MEASURES)).set_index(["setting", "method"])
    for setting, (measure, group) in product(SETTINGS, MEASURES.items()):
        rows = means.reindex([(setting, label) for label in labels])[[measure, f"{measure}_stderr"]]
        mean, error = 100 * rows.to_numpy(dtype=np.float64).T
        yield setting, group, mean, error


def _picture(name: str, results: Results, title: str, drawing: Any, rows: list[dict[str, Any]]) -> list[Output]:
    study = {"targets": results.workspace.study_targets, "trials": results.workspace.scale.study_trials}
    return [Picture(name, title, drawing, caption(name, results.missing, study=study), pd.DataFrame(rows))]


def _weights(results: Results) -> list[Output]:
    from longshift.report import accuracy_grids

    exponents = results.workspace.scale.exponents
    points = list(product(exponents, repeat=2))
    panels: dict[str, dict[str, Any]] = {}
    rows = []
    for setting, group, mean, _ in _values(results, [_label(a, b) for a, b in points]):
        rows += [
            {"setting": setting, "group": group, "log10_alpha": a, "log10_beta": b, "mean": value}
            for (a, b), value in zip(points, mean, strict=True)
        ]
        if np.isfinite(mean).any():
            panels.setdefault(setting, {})[group] = mean.reshape(len(exponents), -1)
    title = f"NDCL's target accuracy (%) by alpha and beta, {results.workspace.name}"
    return _picture("alpha-beta", results, title, accuracy_grids(exponents, panels, title), rows)


def _rho(results: Results) -> list[Output]:
    from longshift.report import parameter_curves

    rhos = results.workspace.scale.rhos
    panels: dict[str, dict[str, Any]] = {}
    rows = []
    for setting, group, mean, error in _values(results, [f"NDCL, rho {rho:g}" for rho in rhos]):
        rows += [
            {"setting": setting, "group": group, "rho": r, "mean": m, "stderr": e}
            for r, m, e in zip(rhos, mean, error, strict=True)
        ]
        if np.isfinite(mean).any():
            panels.setdefault(setting, {})[group] = (mean, error)
    title = f"NDCL's target accuracy (%) by rho, {results.workspace.name}"
    return _picture("rho", results, title, parameter_curves(rhos, panels, "rho", title), rows)


RECIPES = (
    variant_recipe("ablation", "Tab. 4", "ablation of NDCL", ABLATIONS),
    variant_recipe(
        "resampling", "Tab. 6", "domain-level resampling applied or omitted on BSoftmax", RESAMPLING, "resampling"
    ),
    variant_recipe("contrast", "Tab. 8", "contrastive objectives inside NDCL", CONTRASTS),
    Recipe("alpha-beta", "Fig. 5", "target accuracy by alpha and beta", "figure", weight_jobs, _weights),
    Recipe("rho", "Fig. 10", "target accuracy by rho", "figure", rho_jobs, _rho),
)
