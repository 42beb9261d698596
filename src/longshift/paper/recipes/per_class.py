"""Fig. 4: margin and posterior discrepancy of each class, from the largest to the smallest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from longshift.array_types import FloatArray
from longshift.metrics import nan_mean
from longshift.paper.chosen_runs import Results
from longshift.paper.recipe import Output, Picture, Recipe, require_methods
from longshift.paper.recipes.theory_tables import MARGIN_METHODS, margin_jobs
from longshift.paper.recipes.variants import SETTINGS
from longshift.paper.theory_quantities import class_quantities
from longshift.report import method_title

LABELS = {
    "margin": "margin on the target\n(larger is better)",
    "posterior": "posterior discrepancy\n(smaller is better)",
}


def class_order(results: Results, setting: str) -> list[int]:
    """Classes by their training samples, summed over the targets' training sets; most first."""
    part = results.chosen[results.chosen["setting"] == setting]
    counts: Sequence[Any] = [
        np.asarray(results.result(str(f))["split"]["counts"], dtype=np.int64).sum(axis=0)
        for f in part["fingerprint"].dropna()
    ]
    total = np.sum(counts, axis=0)
    return sorted(range(len(total)), key=lambda k: (-int(total[k]), k))


def _make(results: Results) -> list[Output]:
    from longshift.report import class_curves

    require_methods(results, MARGIN_METHODS)
    classes = results.workspace.manifest.classes
    names: dict[str, list[str]] = {}
    panels: dict[str, dict[str, dict[str, FloatArray]]] = {quantity: {} for quantity in LABELS}
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
            found = [class_quantities(results, str(f)) for f in runs]
            for quantity in LABELS:
                values = nan_mean(np.stack([one[quantity] for one in found]))[order]
                panels[quantity].setdefault(setting, {})[method_title(method)] = values
                absent |= {names[setting][i] for i in np.flatnonzero(np.isnan(values))}
                rows += [
                    {"setting": setting, "method": method, "quantity": quantity, "class": name, "mean": value}
                    for name, value in zip(names[setting], values, strict=True)
                ]
    gap = f" Not measurable, since the target or all sources lack them: {', '.join(sorted(absent))}." if absent else ""
    heading = f"Margin and posterior discrepancy per class, {results.workspace.name}"
    caption = (
        "Mean over targets and trials. Margin: p_y - max p_k over k != y, positive where the prediction is right. "
        "Posterior discrepancy: Jensen-Shannon divergence of mean posteriors between sources (held-out samples) and "
        f"target.{gap} {' '.join(results.missing.sentences())}"
    ).strip()
    drawing = class_curves(names, panels, LABELS, heading)
    return [Picture("per-class", heading, drawing, caption, pd.DataFrame(rows))]


def per_class_recipes() -> list[Recipe]:
    """The one in this file."""
    return [
        Recipe(
            "per-class", "Fig. 4", "margin and posterior discrepancy of each class", "figure", margin_jobs, _make,
            predictions=True,
        )
    ]  # fmt: skip
