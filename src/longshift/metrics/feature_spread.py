"""How far apart two sets of feature vectors lie, in units of their own spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longshift.array_types import FloatArray
from longshift.metrics.arrays import Array, finite_rows


@dataclass(frozen=True, eq=False)
class FeatureSummary:
    """What the distance needs of a set: mean (D,), total variance and the number of samples."""

    mean: FloatArray
    variance: float  # summed over the columns
    n: int


def summarize_features(features: Array) -> FeatureSummary:
    """Compute mean and total variance of the rows."""
    rows = finite_rows(features, "features")
    spread = float(rows.var(axis=0, ddof=1).sum()) if len(rows) > 1 else 0.0
    return FeatureSummary(rows.mean(axis=0), spread, len(rows))


def feature_distance(a: FeatureSummary, b: FeatureSummary) -> float:
    """Distance of the means over the root of the mean total variance; 0 where samples of one set would give as much.

    The expected square of the distance between the means of two samples of one distribution is subtracted, so that
    small sets do not look far apart.

    >>> rng = np.random.default_rng(0)
    >>> near, far = rng.normal(0, 1, (500, 4)), rng.normal(3, 1, (500, 4))
    >>> round(feature_distance(summarize_features(near), summarize_features(far)), 1)
    3.0
    """
    gap = float(np.square(a.mean - b.mean).sum()) - a.variance / a.n - b.variance / b.n
    spread = (a.variance + b.variance) / 2
    return float(np.sqrt(max(gap, 0.0) / spread)) if spread > 0 else float(np.sqrt(max(gap, 0.0)))
