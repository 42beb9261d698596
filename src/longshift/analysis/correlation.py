"""Pearson's correlation of the quantities of the theory with target accuracy, as in the paper's table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from longshift.errors import LongshiftError
from longshift.metrics import FloatArray


@dataclass(frozen=True)
class Correlation:
    """Pearson's r with two-sided p-value and 95% interval; NaN if one side does not vary."""

    r: float
    p: float
    low: float
    high: float
    n: int


def pearson(x: FloatArray, y: FloatArray) -> Correlation:
    """Compute r = cov(x, y) / (sd(x) sd(y)), with p from t = r sqrt((n-2) / (1-r^2)) and n-2 degrees of freedom.

    The interval is Fisher's: tanh(atanh r +- 1.96 / sqrt(n-3)); it is NaN for n < 4.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise LongshiftError(f"expected as many values of the quantity as accuracies, found {x.shape} and {y.shape}")
    if len(x) < 3:
        raise LongshiftError(f"no correlation is possible: it needs at least 3 runs, found {len(x)}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise LongshiftError("no correlation is possible: a quantity or an accuracy is not a finite number")
    nan = float("nan")
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(nan, nan, nan, nan, len(x))
    result = stats.pearsonr(x, y)
    low, high = (nan, nan)
    if len(x) >= 4:
        interval = result.confidence_interval(0.95)
        low, high = float(interval.low), float(interval.high)
    return Correlation(float(result.statistic), float(result.pvalue), low, high, len(x))


def correlate(quantities: pd.DataFrame, accuracy: pd.Series[float]) -> pd.DataFrame:
    """Correlate each column of `quantities` with `accuracy`, matched by index (one row per run)."""
    if set(quantities.index) != set(accuracy.index):
        raise LongshiftError(
            f"expected the same runs in both: {len(quantities)} have quantities, {len(accuracy)} accuracies, "
            f"{len(set(quantities.index) & set(accuracy.index))} both"
        )
    y = np.asarray(accuracy.loc[quantities.index], dtype=np.float64)
    rows = {str(c): pearson(np.asarray(quantities[c], dtype=np.float64), y) for c in quantities.columns}
    return pd.DataFrame(
        [{"quantity": q, "correlation": c.r, "p_value": c.p, "low": c.low, "high": c.high, "n": c.n}
         for q, c in rows.items()]
    )  # fmt: skip
