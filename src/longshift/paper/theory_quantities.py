"""The theory's quantities of single runs: margins, posterior and prior discrepancy, per run and per class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from longshift.analysis import margin_summary, posterior_discrepancy, prior_discrepancy
from longshift.metrics import FloatArray
from longshift.paper.chosen_runs import Results

DELTA = 0.0  # the paper's
PRIOR_LIMIT = 1_000  # samples a domain up to which the distance is exact; beyond, sliced


@dataclass(frozen=True, eq=False)
class ClassQuantities:
    """Means of one run per class; NaN where a class has no sample."""

    margin: FloatArray  # (K,) on the target
    posterior: FloatArray  # (K,) sources against the target


def with_quantities(results: Results) -> pd.DataFrame:
    """The chosen runs with the columns margin, small_margin and posterior (target; sources: held-out samples)."""
    rows = []
    for fingerprint in results.chosen["fingerprint"]:
        if pd.isna(fingerprint):
            rows.append((np.nan, np.nan, np.nan))
            continue
        sources, target = results.outputs(str(fingerprint))
        margins = margin_summary(target.logits, target.labels, DELTA, results.name(str(fingerprint)))
        rows.append((margins.average, margins.small, posterior_discrepancy(sources, target).average))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return results.chosen.assign(
        margin=columns[:, 0], small_margin=columns[:, 1], posterior=columns[:, 2]
    )  # fmt: skip


def with_prior(results: Results) -> tuple[pd.DataFrame, set[str]]:
    """The chosen runs with the columns source_source and source_target, and how the distances were measured."""
    rows: list[tuple[float, float]] = []
    kinds: set[str] = set()
    for fingerprint in results.chosen["fingerprint"]:
        if pd.isna(fingerprint):
            rows.append((np.nan, np.nan))
            continue
        sources, target = results.outputs(str(fingerprint))
        found = prior_discrepancy(sources, target, limit=PRIOR_LIMIT)
        kinds.add(found.kind)
        rows.append((np.nan if found.source_source is None else found.source_source, found.source_target))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return results.chosen.assign(source_source=columns[:, 0], source_target=columns[:, 1]), kinds


def class_quantities(results: Results, fingerprint: str) -> ClassQuantities:
    """Margin and posterior discrepancy of each class."""
    sources, target = results.outputs(fingerprint)
    margins = margin_summary(target.logits, target.labels, DELTA, results.name(fingerprint))
    return ClassQuantities(margins.per_class, posterior_discrepancy(sources, target).per_class)
