"""The theory's quantities of single runs: margins, posterior and prior discrepancy, per run and per class."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from longshift.analysis import margin_summary, posterior_discrepancy, prior_discrepancy
from longshift.array_types import FloatArray
from longshift.paper.chosen_runs import Results

DELTA = 0.0  # the paper's
PRIOR_LIMIT = 1_000  # samples per domain up to which the distance is exact; beyond, sliced


def with_quantities(results: Results) -> pd.DataFrame:
    """The chosen runs with the columns margin, small_margin and posterior (target; sources: held-out samples)."""

    def measure(fingerprint: str) -> tuple[float, ...]:
        sources, target = results.outputs(fingerprint)
        margins = margin_summary(target.logits, target.labels, DELTA, results.name(fingerprint))
        return margins.average, margins.small, posterior_discrepancy(sources, target).average

    return _with_columns(results, ("margin", "small_margin", "posterior"), measure)


def with_prior(results: Results) -> tuple[pd.DataFrame, set[str]]:
    """The chosen runs with the columns source_source and source_target, and how the distances were measured."""
    kinds: set[str] = set()

    def measure(fingerprint: str) -> tuple[float | None, ...]:
        found = prior_discrepancy(*results.outputs(fingerprint), limit=PRIOR_LIMIT)
        kinds.add(found.kind)
        return found.source_source, found.source_target

    return _with_columns(results, ("source_source", "source_target"), measure), kinds


def _with_columns(
    results: Results, names: Sequence[str], measure: Callable[[str], tuple[float | None, ...]]
) -> pd.DataFrame:
    """The chosen runs with what `measure` returns for each; NaN for a trial without a run."""
    empty = (None,) * len(names)
    rows = [empty if pd.isna(name) else measure(str(name)) for name in results.chosen["fingerprint"]]
    columns = np.array(rows, dtype=np.float64).reshape(-1, len(names))
    return results.chosen.assign(**dict(zip(names, columns.T, strict=True)))


def class_quantities(results: Results, fingerprint: str) -> dict[str, FloatArray]:
    """Margin on the target and posterior discrepancy of each class; NaN where a class has no sample."""
    sources, target = results.outputs(fingerprint)
    margins = margin_summary(target.logits, target.labels, DELTA, results.name(fingerprint))
    return {"margin": margins.per_class, "posterior": posterior_discrepancy(sources, target).per_class}
